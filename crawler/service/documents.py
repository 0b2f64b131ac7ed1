"""The endpoint's documents for readers: ``/docs`` for people, ``/llms.txt`` for language models.

``/docs`` shows the OpenAPI document. It sends no requests to other hosts, and uses an unmodified copy of Swagger UI
5.35.0 (Apache-2.0), whose licences are in the same folder. ``/llms.txt`` (https://llmstxt.org) is the service in one
Markdown page, generated from the catalogue and the errors.
"""

from __future__ import annotations

import re
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

import orjson

from crawler.errors import documented
from crawler.jobs.options import CategoryOptions
from crawler.outputs.formats import SERVED
from crawler.service.openapi import DESCRIPTION, SUMMARY, TITLE, describe_error
from crawler.service.responses import MEDIA_TYPES, ONE_DAY, StaticContent
from crawler.service.status import entries

DOCS_HEADERS = {
    # Swagger UI has inline styles, and icons in data URLs. Everything else is loaded from this service.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'"
    " 'unsafe-inline'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
}

DOCS = """\
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
def docs() -> StaticContent:
    """Return the page ``/docs``: Swagger UI and a table of all errors."""
    rows = "\n".join(
        f'<tr id="{error.code}"><td><code>{error.code}</code></td><td>{error.http_status}</td><td>{error.type}</td>'
        f"<td>{'yes' if error.retryable else 'no'}</td><td>{_html(describe_error(error))}</td></tr>"
        for error in documented()
    )
    return StaticContent(MEDIA_TYPES["html"], DOCS.replace("{rows}", rows).encode(), headers=DOCS_HEADERS)


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


LLMS = """\
# {title}

> {summary}

{description}
## How to call a scraper

Send `POST {url}/v1/scrapers/<name>` with the params as a JSON object, `Content-Type: application/json`, and the API key
in `X-API-Key` (or as `Authorization: Bearer`). The response is a JSON object: `success`, `data` (the record, or null),
`error` (null, or an object with `code`, `message`, `details` and `retry_after`), `status`, `meta` and `request_id`.

- [OpenAPI document]({url}/openapi.json): the types of all params, records and errors
- [Catalogue]({url}/v1/scrapers): the params of each scraper as JSON Schema
- [Documentation]({url}/docs): an interactive page, for people

With the same API key, `GET {url}/v1/usage` returns the client's calls by day, and the state of its monthly quota.

## Jobs

A job scrapes many targets in the background. `POST {url}/v1/jobs` with a JSON array of targets, each an object with
`scraper` and its params, or with `url`, returns 202 and `job.job_id`. A body of one object may have
options for the pages of a listing ({options}); `?dry_run=true` only returns what it costs at most.
`GET {url}/v1/jobs/<job_id>` returns the state, `/records` the records as JSON Lines (`format=`: {formats};
`fields`, `explode`, `after`), `/failures` the failed targets; `POST .../retry` repeats them; `DELETE`
cancels a job, or deletes one that has ended.

## Scrapers

{scrapers}
## Errors

If `status.retryable` is true, the same call may succeed later: wait for `retry_after` seconds first.

{errors}
"""


@cache
def llms(service_url: str) -> StaticContent:
    """Return the page."""
    text = LLMS.format(
        title=TITLE,
        summary=SUMMARY,
        description=DESCRIPTION,
        url=service_url,
        options=", ".join(f"`{name}`" for name in CategoryOptions.model_fields),
        formats=", ".join(f"`{name}`" for name in SERVED),
        scrapers="\n".join(_scraper(entry) for entry in entries()),
        errors="\n".join(f"- `{kind.code}` ({kind.http_status}): {describe_error(kind)}" for kind in documented()),
    )
    return StaticContent("text/plain; charset=utf-8", text.encode())


def _scraper(entry: dict[str, Any]) -> str:
    """Return the section of a scraper in the catalogue: its record, its params, and an example."""
    schema = entry["params_schema"]
    required = schema.get("required", ())
    params = [_param(name, param, name in required) for name, param in schema["properties"].items()]
    aliases = f" Alias: {', '.join(f'`{alias}`' for alias in entry['aliases'])}." if entry["aliases"] else ""
    example = orjson.dumps(entry["example"]).decode()
    return "\n".join(
        [
            f"### {entry['name']}",
            "",
            f"{entry['summary']}{aliases}",
            "",
            f"Params: {schema['description']}",
            "",
            *params,
            "",
            f"Example: `{example}`",
            "",
        ]
    )


def _param(name: str, schema: dict[str, Any], required: bool) -> str:  # noqa: FBT001  # whether the param is required
    choices = f" One of {', '.join(f'`{choice}`' for choice in schema['enum'])}." if "enum" in schema else ""
    default = f" Default: `{schema['default']}`." if "default" in schema else ""
    description = " ".join(schema["description"].split())
    return f"- `{name}` ({'required' if required else 'optional'}): {description}{choices}{default}"
