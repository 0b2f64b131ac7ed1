"""Simulates a change of a platform: after some pages, keys in the payloads are renamed.

A name with a leading dot, such as ``.skill``, is an HTML class, or the ``data-section`` of a section.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crawler.sandbox.protocol import FakeRequest, FakeResponse, FakeSite

PAGES_BEFORE = 10
"""Number of undamaged responses that are served before the change."""
_CLASSES = re.compile(rb'(\b(?:class|data-section)=")([^"]*)')


class RenamingSite:
    """Wraps a site, and renames keys and classes in its undamaged responses. The expected records do not change."""

    def __init__(self, site: FakeSite, renames: Mapping[str, str]) -> None:
        self._site, self._pages = site, 0
        self._renames = {old.encode(): new.encode() for old, new in renames.items()}
        names = b"|".join(map(re.escape, self._renames))
        self._keys = re.compile(rb'(?<=")(?:%b)(?=\\*"\s*:)' % names)
        self._has_classes = any(old.startswith(".") for old in renames)

    def fault(self, request: FakeRequest) -> str | None:
        return self._site.fault(request)

    def page(self, request: FakeRequest) -> FakeResponse:
        """Return the site's undamaged response, with the new names after the first ``PAGES_BEFORE`` such responses."""
        status, headers, body = self._site.page(request)
        self._pages += 1
        if self._pages > PAGES_BEFORE:
            body = self._keys.sub(lambda found: self._renames[found[0]], body)
            body = _CLASSES.sub(self._renamed, body) if self._has_classes else body
        return status, headers, body

    def _renamed(self, found: re.Match[bytes]) -> bytes:
        return found[1] + b" ".join(
            self._renames.get(b"." + each, each).removeprefix(b".") for each in found[2].split(b" ")
        )

    def damaged(self, name: str, request: FakeRequest) -> FakeResponse:
        return self._site.damaged(name, request)

    def expected_record(self, params: dict[str, Any]) -> dict[str, Any]:
        return self._site.expected_record(params)

    def catalogue(self) -> dict[str, Any]:
        return self._site.catalogue()
