"""``/docs``: a page for people, made of the OpenAPI document by a viewer that is bundled. It asks nobody else.

The viewer is Swagger UI 5.35.0 (Apache-2.0), as its authors publish it; its licences lie beside it.
"""

from __future__ import annotations

from functools import cache
from html import escape
from importlib.resources import files

from crawler.errors import ScraperNotFound, documented
from crawler.service.openapi import about

KINDS = {"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8", "txt": "text/plain; charset=utf-8"}

HEADERS = {
    # The viewer writes styles and draws its icons from data URLs; all else comes from here.
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
    """The page: the viewer, and a line for each error."""
    rows = "\n".join(
        f'<tr id="{error.code}"><td><code>{error.code}</code></td><td>{error.http_status}</td><td>{error.type}</td>'
        f"<td>{'yes' if error.retryable else 'no'}</td><td>{escape(about(error))}</td></tr>"
        for error in documented()
    )
    return PAGE.replace("{rows}", rows).encode()


@cache
def files_served() -> dict[str, tuple[str, bytes]]:
    """The viewer's files by name: media type and content."""
    return {
        entry.name: (KINDS[entry.name.rpartition(".")[2]], entry.read_bytes())
        for entry in (files("crawler.service") / "docs").iterdir()
    }


def served_file(name: str) -> tuple[str, bytes]:
    """One of them.

    Raises:
        ScraperNotFound: there is none of this name. What is no name of a file here is never looked for on the disk.
    """
    if name not in files_served():
        raise ScraperNotFound("There is no such page. The documentation is at /docs.")
    return files_served()[name]
