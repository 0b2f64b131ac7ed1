"""HTTP headers that a browser adds to the request for a page. Without them, some platforms omit data or block."""

NAVIGATION_HEADERS = {
    "Accept-Language": "en-US,en;q=0.9",  # platforms send texts and dates in this language
    "Sec-Fetch-Dest": "document",
    "Sec-Fetch-Mode": "navigate",
    "Sec-Fetch-Site": "none",
    "Sec-Fetch-User": "?1",
    "Upgrade-Insecure-Requests": "1",
}
