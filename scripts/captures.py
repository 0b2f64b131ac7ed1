"""The captures: saved responses of the real platforms. They are other people's data, and not part of the repository.

A capture is named by the first 12 digits of the SHA-256 of its file, because some file names contain names of people.
``python -m scripts.captures`` prints the names of the captures on this machine with their files.
"""

from __future__ import annotations

import gzip
import hashlib
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CAPTURES = ROOT.parent / "shared" / "captures"
NAME_DIGITS = 12
GZIP = b"\x1f\x8b"
"""The first bytes of a file that is packed with gzip."""
OTHER_SUFFIXES = {".bin", ".md"}
"""Files that are not captures: notes, and archives."""


@cache
def captures(folder: Path = CAPTURES) -> dict[str, Path]:
    """Return the captures by name, in the order of their files; {} without the folder.

    The first folder below ``folder`` is the platform. Of several files with the same content, the first one is kept.
    """
    named: dict[str, Path] = {}
    for file in sorted(folder.rglob("*")):
        if file.is_file() and file.suffix not in OTHER_SUFFIXES:
            named.setdefault(hashlib.sha256(file.read_bytes()).hexdigest()[:NAME_DIGITS], file)
    return named


def body_of(name: str) -> bytes:
    """Return the body of a capture. Files may be packed with gzip.

    Raises:
        FileNotFoundError: this machine does not have the capture.
    """
    if name not in captures():
        raise FileNotFoundError(f"The capture {name} is not in {CAPTURES}.")
    body = captures()[name].read_bytes()
    return gzip.decompress(body) if body.startswith(GZIP) else body


def main() -> int:
    """Print the names and files of the captures. Return 1 if there are none."""
    for name, file in captures().items():
        print(name, file.relative_to(CAPTURES))
    return 0 if captures() else 1


if __name__ == "__main__":
    sys.exit(main())
