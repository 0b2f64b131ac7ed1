"""Microblog: a query to the guest API, and the remedies that are tried after its errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from scrapy import Request

from crawler.errors import ExtractionFailed, UpstreamBlocked
from crawler.platforms.microblog.api import BAD_REQUEST, MISSING_FLAGS, STALE_QUERY, TOKEN_REFUSED, ApiPage

PERMANENT_REASONS = frozenset({STALE_QUERY, MISSING_FLAGS, BAD_REQUEST})
"""Error reasons after which the same query would fail again if it were sent unchanged."""


@dataclass
class GuestQuery:
    """A query to the guest API. After an error, ``apply_remedy`` may change the query, so that it can be sent again."""

    kind: type[ApiPage]
    build: Callable[..., Request]
    query_ids: list[str]
    """Ids that the platform may accept for the query, in the order in which they are tried. The first is in use."""
    missing_flags: list[str] = field(default_factory=list)
    """Flags that the platform required; they are sent as false."""
    _tried: set[str | None] = field(default_factory=set)

    def request(self, token: str) -> Request:
        """Return the request with the query id in use, and with the feature flags that the platform has required."""
        return self.build(token=token, query_id=self.query_ids[0], missing=self.missing_flags)

    def apply_remedy(self, error: UpstreamBlocked | ExtractionFailed) -> bool:
        """Change the query as its error requires, and return whether to send it again.

        If the query id is outdated, the next query id is used. If the platform requires other feature flags, they are
        added. If the token was rejected, a new token is needed. If the response was not recognised, the same query is
        sent again. Each remedy is tried once; for outdated query ids, once per id.
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
