"""Simulates a change of a platform: after some pages, keys in the payloads are renamed.

A name with a leading dot, such as ``.skill``, is an HTML class, or the ``data-section`` of a section.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crawler.sandbox.protocol import FakeResponse

PAGES_BEFORE = 10
"""Number of undamaged responses that are served before the change."""
_CLASSES = re.compile(rb'(\b(?:class|data-section)=")([^"]*)')


class Renames:
    """Renames keys and classes in the undamaged responses of a platform. ``renames``: old name -> new name."""

    def __init__(self, renames: Mapping[str, str]) -> None:
        self._pages = 0
        self._renames = {old.encode(): new.encode() for old, new in renames.items()}
        names = b"|".join(map(re.escape, self._renames))
        self._keys = re.compile(rb'(?<=")(?:%b)(?=\\*"\s*:)' % names)

    def applied(self, response: FakeResponse) -> FakeResponse:
        """Return a response, with the new names if it is later than the first ``PAGES_BEFORE``."""
        status, headers, body = response
        self._pages += 1
        if self._renames and self._pages > PAGES_BEFORE:
            body = _CLASSES.sub(self._renamed, self._keys.sub(lambda found: self._renames[found[0]], body))
        return status, headers, body

    def _renamed(self, found: re.Match[bytes]) -> bytes:
        return found[1] + b" ".join(
            self._renames.get(b"." + each, each).removeprefix(b".") for each in found[2].split(b" ")
        )
