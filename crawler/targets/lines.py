"""The lines of targets in feeds of batches, in the files of jobs and in the endpoint's downloads.

The models ``RecordLine`` and ``FailureLine`` describe them in the OpenAPI document.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ERROR_KEYS = ("code", "message", "retryable", "details", "upstream")
FAILURE_KEYS = ("id", "root", "scraper", "params", "parent", "line", *ERROR_KEYS)
"""The columns of failures in tables. ``root`` has a value only in exhaustive crawls."""


def identity(
    target_id: str, root: str | None, scraper: str | None, params: Any, columns: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the keys that identify a target in a line.

    ``root``: the id of the requested target, if lines must contain it. ``columns``: the user's own columns.
    """
    return {
        "id": target_id,
        **({} if root is None else {"root": root}),
        "scraper": scraper,
        "params": params,
        **({"columns": columns} if columns else {}),
    }


def provenance(target: Mapping[str, Any], fetched_at: str, warnings: list[Any], note: str) -> dict[str, Any]:
    """Return the keys that precede the data in the line of a record. ``target``: as ``identity()`` returns it."""
    return {**target, "fetched_at": fetched_at, "warnings": warnings, "note": note}


def record(provenance: Mapping[str, Any], data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the line of a record."""
    return {**provenance, "data": data}


def failure(
    target: Mapping[str, Any], parent: str | None, line: int | None, error: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the line of a failed target, with its error, and with the id and params that are needed to repeat it.

    ``target``: as ``identity()`` returns it. ``parent``: the id of the target that led to it. ``line``: its line number
    in the targets file. ``error``: the error as JSON data, with the key ``retryable``.
    """
    return {**target, "parent": parent, "line": line, **{key: error.get(key) for key in ERROR_KEYS}}
