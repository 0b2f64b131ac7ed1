"""``/docs``: the OpenAPI document as a page, rendered by a bundled viewer. It sends no requests to other hosts.

The viewer is the unmodified Swagger UI 5.35.0 (Apache-2.0), with its licences beside it.
"""

from __future__ import annotations

from functools import cache
from html import escape
from importlib.resources import files

from crawler.errors import ScraperNotFound, documented
from crawler.service.openapi import describe_error

MEDIA_TYPES = {
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "txt": "text/plain; charset=utf-8",
}

HEADERS = {
    # The viewer has inline styles, and icons in data URLs; everything else is loaded from this service.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'"
    " 'unsafe-inline'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
}

PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Social and retail data</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="docs/swagger-ui.css">
<link rel="stylesheet" href="docs/page.css">
</head>
<body>
<div id="viewer"></div>
<section class="errors">
<h2 id="errors">Errors</h2>
<table>
<tr><th>code</th><th>HTTP</th><th>type</th><th>retryable</th><th>when</th></tr>
{rows}
</table>
</section>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
"""


@cache
def page() -> bytes:
    """Return the page: the viewer, and a table of the errors."""
    rows = "\n".join(
        f'<tr id="{error.code}"><td><code>{error.code}</code></td><td>{error.http_status}</td><td>{error.type}</td>'
        f"<td>{'yes' if error.retryable else 'no'}</td><td>{escape(describe_error(error))}</td></tr>"
        for error in documented()
    )
    return PAGE.replace("{rows}", rows).encode()


@cache
def bundled_files() -> dict[str, tuple[str, bytes]]:
    """Return the media type and content of each file of the viewer, by name."""
    return {
        entry.name: (MEDIA_TYPES[entry.name.rpartition(".")[2]], entry.read_bytes())
        for entry in (files("crawler.service") / "docs").iterdir()
    }


def bundled_file(name: str) -> tuple[str, bytes]:
    """Return the media type and content of a file of the viewer.

    Raises:
        ScraperNotFound: the name is not in the list of files. The file system is not searched for it.
    """
    if name not in bundled_files():
        raise ScraperNotFound("Unknown page. The documentation is at /docs.")
    return bundled_files()[name]
