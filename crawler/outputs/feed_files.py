"""Feeds in local files: finds the files of a feed, and repairs files whose last line is incomplete."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import structlog
from w3lib.url import file_uri_to_path

from crawler.outputs.formats import NAMES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy import Spider

    from crawler.outputs.formats import Kind

logger = structlog.get_logger(__name__)

VARYING = {"time", "batch_time", "batch_id", "job"}
"""Placeholders in feed URIs whose values differ between the starts or batches of one feed."""
_PLACEHOLDER = re.compile(r"%\(([^()]+)\)([-+ #0]*+\d*+[a-zA-Z])")
_READ_BYTES = 65_536


def is_local(uri: str) -> bool:
    """Whether a feed URI or URI template refers to a file on this machine or to the standard output."""
    return "://" not in uri or uri.startswith("file:")


def holds_lines(uri: str, options: Mapping[str, Any]) -> bool:
    """Whether a feed is a local JSON Lines feed, whose lines can be read as soon as they are flushed."""
    return is_local(uri) and kind_of(options) == "lines" and "postprocessing" not in options


def kind_of(options: Mapping[str, Any]) -> Kind | None:
    """Return the kind of a feed's format. None: the format is not the project's."""
    return NAMES[options["format"]].kind if options["format"] in NAMES else None


def absolute_path(uri: str) -> str:
    """Return the absolute path of a local feed URI or URI template."""
    return str(Path(file_uri_to_path(uri) if uri.startswith("file:") else uri).absolute())


def fixed_path(template: str, spider: Spider) -> Path | None:
    """Return the path to which every start of a run writes a feed, or None if starts differ or the feed is remote."""
    names = {name for name, _ in _PLACEHOLDER.findall(template)}
    if not is_local(template) or names & VARYING or not all(hasattr(spider, name) for name in names):
        return None
    return Path(absolute_path(template % {name: getattr(spider, name) for name in names} if names else template))


def repair_last_line(path: Path) -> None:
    """Make a JSON Lines file end with a complete line, so that new lines can be appended.

    If the last line is complete but has no newline, a newline is added. If it is incomplete, it is removed, as are the
    zero bytes that a power cut may leave at the end of a file.
    """
    if not path.is_file() or not path.stat().st_size:
        return
    with path.open("rb+") as file:
        start = _end_of_last_line(file)
        file.seek(start)
        tail = file.read()
        if not tail:
            return
        if _is_json(tail) or not tail.startswith((b"{", b"\0")):  # text that is not a line of a feed is never removed
            file.write(b"\n")
        else:
            file.truncate(start)
            logger.warning("torn_line_truncated", feed=str(path), bytes=len(tail))


def _end_of_last_line(file: Any) -> int:
    """Return the offset after the last newline in a file, or 0 if it has no newline."""
    end: int = file.seek(0, os.SEEK_END)
    while end:
        start = max(0, end - _READ_BYTES)
        file.seek(start)
        found = file.read(end - start).rfind(b"\n")
        if found >= 0:
            return int(start + found + 1)
        end = start
    return 0


def _is_json(text: bytes) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True
