"""The console: a web page at ``/`` that calls scrapers and shows their results (``docs/console.md``).

The console uses only documented routes of the endpoint, as any client does. No module imports this package: ``scrapy
serve`` loads it by its name if it exists, and serves the console's files at the paths that ``pages()`` returns.
"""

from __future__ import annotations

from importlib.resources import files

from crawler.platforms import platforms
from crawler.service.responses import MEDIA_TYPES, StaticContent

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src {images}; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
"""The Content-Security-Policy of the page: it loads nothing from other hosts, except images of the platforms."""


def pages(*, sandbox: bool) -> dict[str, StaticContent]:
    """Return the console's page and files, by their path in the service.

    ``sandbox``: whether the service serves the simulated platforms, which have no images and the API key ``sandbox``.
    """
    views = {
        name: file.read_bytes()
        for name in platforms()
        if (file := files(f"crawler.platforms.{name}") / "view.js").is_file()
    }
    static = {
        entry.name: entry.read_bytes()
        for entry in (files(__name__) / "static").iterdir()
        if entry.name.rpartition(".")[2] in MEDIA_TYPES
    }
    page = static.pop("index.html").decode()
    page = page.replace("{sandbox}", "yes" if sandbox else "no").replace("{views}", " ".join(views))
    hosts = [] if sandbox else [f"https://{host}" for each in platforms().values() for host in each.image_hosts]
    policy = POLICY.format(images=" ".join(["'self'", *hosts]))
    headers = {"Content-Security-Policy": policy, "Referrer-Policy": "no-referrer"}
    return {
        "/": StaticContent(MEDIA_TYPES["html"], page.encode(), headers=headers),
        **{f"/console/{name}": StaticContent.of_file(name, body) for name, body in static.items()},
        **{f"/console/views/{name}.js": StaticContent.of_file("view.js", body) for name, body in views.items()},
    }
