"""Microblog: a query to the guest API, and the remedies that are tried after its errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from scrapy import Request

from crawler.errors import ExtractionFailed, UpstreamBlocked
from crawler.platforms.microblog.api import BAD_REQUEST, MISSING_FLAGS, STALE_QUERY, TOKEN_REFUSED, ApiPage

PERMANENT_REASONS = frozenset({STALE_QUERY, MISSING_FLAGS, BAD_REQUEST})
"""The platform rejects such a query every time that it is sent unchanged."""


@dataclass
class GuestQuery:
    """A query to the guest API. Its errors may change it."""

    kind: type[ApiPage]
    build: Callable[..., Request]
    query_ids: list[str]
    """The ids under which the platform may know the query; the first one is used."""
    missing_flags: list[str] = field(default_factory=list)
    """Flags that the platform required; they are sent as false."""
    _tried: set[str | None] = field(default_factory=set)

    def request(self, token: str) -> Request:
        """Return the request in its present form."""
        return self.build(token=token, query_id=self.query_ids[0], missing=self.missing_flags)

    def apply_remedy(self, error: UpstreamBlocked | ExtractionFailed) -> bool:
        """Change the query as its error requires, and return whether to send it again.

        For an outdated query id, the remedy is the next query id. For missing flags, it is to send them. For a rejected
        token, it is a new token. For an unrecognised response, it is the same request again. Each remedy is tried once
        (for query ids: once per id).
        """
        decided = isinstance(error, UpstreamBlocked) or error.reason in PERMANENT_REASONS
        reason = error.reason if decided else "unrecognised"
        if reason == STALE_QUERY and len(self.query_ids) > 1:
            self.query_ids.pop(0)
        elif reason in self._tried or reason not in {TOKEN_REFUSED, MISSING_FLAGS, "unrecognised"}:
            return False
        self._tried.add(reason)
        if reason == MISSING_FLAGS:
            self.missing_flags = [str(detail["loc"][-1]) for detail in error.details]
        return True
