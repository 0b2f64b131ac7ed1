"""The OpenAPI document of the service, built once for all tests of a process: it takes a quarter of a second."""

from typing import Any

from crawler.service.openapi import document

DOCUMENT = document()


def resolved(part: dict[str, Any]) -> dict[str, Any]:
    """Return a part of the document, or the part to which its ``$ref`` points."""
    if "$ref" not in part:
        return part
    found: Any = DOCUMENT
    for key in part["$ref"].removeprefix("#/").split("/"):
        found = found[key]
    assert isinstance(found, dict)
    return found
