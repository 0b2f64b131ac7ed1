"""The browser: one Chromium per process, the download handler, and what happens on a page."""
