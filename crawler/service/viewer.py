"""``/docs``: a page that shows the OpenAPI document. The page sends no requests to other hosts.

The page uses an unmodified copy of Swagger UI 5.35.0 (Apache-2.0). The licences of Swagger UI are in the same folder as
the copy.
"""

from __future__ import annotations

import re
from functools import cache
from html import escape
from importlib.resources import files

from crawler.errors import documented
from crawler.service.http.static import MEDIA_TYPES, ONE_DAY, StaticContent
from crawler.service.openapi import describe_error

HEADERS = {
    # Swagger UI has inline styles, and icons in data URLs. Everything else is loaded from this service.
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
def page() -> StaticContent:
    """Return the page ``/docs``: Swagger UI and a table of all errors."""
    rows = "\n".join(
        f'<tr id="{error.code}"><td><code>{error.code}</code></td><td>{error.http_status}</td><td>{error.type}</td>'
        f"<td>{'yes' if error.retryable else 'no'}</td><td>{_html(describe_error(error))}</td></tr>"
        for error in documented()
    )
    return StaticContent(MEDIA_TYPES["html"], PAGE.replace("{rows}", rows).encode(), headers=HEADERS)


def _html(text: str) -> str:
    """Convert a sentence in Markdown to HTML: code spans are its only markup."""
    return re.sub("`(.+?)`", r"<code>\1</code>", escape(text))


@cache
def bundled_files() -> dict[str, StaticContent]:
    """Return the files that the page ``/docs`` loads, by name."""
    return {
        entry.name: StaticContent.of_file(entry.name, entry.read_bytes(), ONE_DAY)
        for entry in (files("crawler.service") / "docs").iterdir()
    }
