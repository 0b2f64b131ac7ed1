"""Feeds in local files: which files a run writes, and repair of files that end within a line."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import structlog
from w3lib.url import file_uri_to_path

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy import Spider

logger = structlog.get_logger(__name__)

LINE_FORMATS = {"jsonlines", "jsonl", "jl"}
"""Formats in which each line can be read on its own."""
VARYING = {"time", "batch_time", "batch_id", "job"}
"""Placeholders of feed URIs that differ between the files of one feed."""

_PLACEHOLDER = re.compile(r"%\(([^)]+)\)([-+ #0]*\d*[a-zA-Z])")
_READ_BYTES = 65_536


def is_local(uri: str) -> bool:
    """Whether a feed URI, or its template, is a file on this machine or the standard output."""
    return "://" not in uri or uri.startswith("file:")


def holds_lines(uri: str, options: Mapping[str, Any]) -> bool:
    """Whether each line of a feed can be read as soon as it is flushed."""
    return is_local(uri) and options["format"] in LINE_FORMATS and "postprocessing" not in options


def absolute_path(uri: str) -> str:
    """The absolute path of a local feed URI, or of its template."""
    return str(Path(file_uri_to_path(uri) if uri.startswith("file:") else uri).absolute())


def path_pattern(template: str, spider: Spider) -> re.Pattern[str]:
    """Return a pattern of the paths that a local feed's URI template can produce, in this or another start."""
    parts, last = [], 0
    text = absolute_path(template)
    for found in _PLACEHOLDER.finditer(text):
        name, conversion = found.groups()
        fixed = name not in VARYING and hasattr(spider, name)
        value = re.escape(f"%{conversion}" % getattr(spider, name)) if fixed else "[^/]+"
        parts += [re.escape(text[last : found.start()]), value]
        last = found.end()
    return re.compile("".join([*parts, re.escape(text[last:])]))


def repair_last_line(path: Path) -> None:
    """Make a JSON Lines file end with a complete line, so that the next line starts on its own.

    A complete line without its newline gets one. A torn line is truncated, as are the zero bytes after a power cut.
    """
    if not path.is_file() or not path.stat().st_size:
        return
    with path.open("rb+") as file:
        start = end_of_last_line(file)
        file.seek(start)
        tail = file.read()
        if not tail:
            return
        if _is_json(tail) or not tail.startswith((b"{", b"\0")):  # never truncate other text
            file.write(b"\n")
        else:
            file.truncate(start)
            logger.warning("torn_line_truncated", feed=str(path), bytes=len(tail))


def truncate(path: Path, size: int) -> None:
    """Truncate a file to ``size`` bytes. With size 0 the file is removed."""
    if size:
        os.truncate(path, size)
    else:
        path.unlink()


def end_of_last_line(file: Any) -> int:
    """Return the offset after the last newline of a file."""
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
