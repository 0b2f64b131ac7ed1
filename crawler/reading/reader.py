"""Reads documents by their contracts: in the strict pass, or in the careful pass if they are not as declared."""

from __future__ import annotations

from crawler.reading import careful, strict
from crawler.reading.careful import Reading
from crawler.reading.contract import C


def read(kind: type[C], body: bytes, *, what: str, code_after: bool = False) -> Reading[C]:
    """Read a JSON document.

    Args: kind: the contract of the document. body: the document. what: the name of the document in error messages.
    code_after: whether program code may follow the JSON, because the document was cut out of a script.

    Raises:
        ExtractionFailed: the document is not JSON, is nested too deeply, or has more than ``strict.MAX_ROWS`` rows of
            one kind.
    """
    value = strict.decoded(kind, body)
    if value is not None:
        return Reading(value, [])
    return careful.read_changed(kind, body, what=what, code_after=code_after)
