"""Microblog: queries to the guest API: their current ids, and how they are changed after an error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from scrapy import Request

from crawler.errors import ExtractionFailed, UpstreamBlocked
from crawler.platforms.microblog.api_page import (
    BAD_REQUEST,
    MISSING_FLAGS,
    STALE_QUERY,
    TOKEN_REFUSED,
    WRONG_VARIABLES,
    ApiPage,
)
from crawler.platforms.microblog.ids import Ids, NamedQuery, QueryForm
from crawler.platforms.microblog.requests import Credentials

QueryKind = Literal["user", "timeline"]
"""The two queries of the guest API."""

PERMANENT_REASONS = frozenset({STALE_QUERY, MISSING_FLAGS, BAD_REQUEST, WRONG_VARIABLES})
"""Error reasons after which the same query would fail again if it were sent unchanged."""


class CurrentQueries:
    """The forms (``QueryForm``) in which the guest API's queries are sent. All crawlers in a process share them.

    The id in the profile page that was read last is tried first, then the ids in the data file. Ids that the platform
    did not find are tried last.
    """

    def __init__(self, ids: Ids) -> None:
        self.ids = ids
        self.page_is_useful = True
        """Whether a profile page may contain new ids, because none was read since an id became stale."""
        self._named: dict[str, NamedQuery] = {}
        self.stale_ids: set[str] = set()
        """The ids that the platform did not find."""

    def forms(self, kind: QueryKind) -> list[QueryForm]:
        """Return the forms of a query, in the order in which they are to be tried."""
        query = self.ids.user if kind == "user" else self.ids.timeline
        named = self._named.get(query.name)
        forms = [self.ids.form_on_page(query, named)] if named else []
        forms += [form for form in self.ids.forms(query) if named is None or form.query_id != named.query_id]
        return sorted(forms, key=lambda form: form.query_id in self.stale_ids)

    def learn(self, queries: Sequence[NamedQuery]) -> list[tuple[str, str]]:
        """From now on, use the query ids that a profile page contains.

        Return the ids in the data file that differ: the name and id of each such query, and the id on the page.
        """
        self.page_is_useful = False
        own = {query.name: query for query in (self.ids.user, self.ids.timeline)}
        named = {query.name: query.query_id for query in queries if query.name in own}
        self._named |= {query.name: query for query in queries if query.name in own}
        return [
            (f"{name} {query_id}", current)
            for name, current in named.items()
            for query_id in own[name].ids
            if query_id != current
        ]

    def mark_stale(self, form: QueryForm) -> None:
        """Record that the platform did not find a query's id."""
        if form.query_id not in self.stale_ids:
            self.stale_ids.add(form.query_id)
            self.page_is_useful = self.page_is_useful or self._is_named(form)

    def _is_named(self, form: QueryForm) -> bool:
        return form.name in self._named and self._named[form.name].query_id == form.query_id


@dataclass
class GuestQuery:
    """A query to the guest API. After an error, ``apply_remedy`` changes it if a changed query may succeed."""

    kind: QueryKind
    page: type[ApiPage]
    build: Callable[..., Request]
    forms: list[QueryForm]
    """The forms that the platform may accept, in the order in which they are tried. The platform now uses the first
    form."""
    missing_flags: list[str] = field(default_factory=list)
    """Flags that the platform required; they are sent as false."""
    _tried: set[str | None] = field(default_factory=set)

    @property
    def form(self) -> QueryForm:
        """The form in use."""
        return self.forms[0]

    def request(self, credentials: Credentials) -> Request:
        """Return the request in the current form, with the additional flags that the platform required."""
        return self.build(form=self.form, credentials=credentials, missing=self.missing_flags)

    def apply_remedy(self, error: UpstreamBlocked | ExtractionFailed) -> bool:
        """Change the query to avoid its last error, and return whether to send it again.

        If the platform did not find the query's id, the next form is used. If flags are missing, they are added. If the
        token was rejected, a new token is needed. If the response was not recognised, the same query is sent again.
        Each of these is done once, the first one once for each form.
        """
        decided = isinstance(error, UpstreamBlocked) or error.reason in PERMANENT_REASONS
        reason = error.reason if decided else "unrecognised"
        if reason == STALE_QUERY and len(self.forms) > 1:
            self.forms.pop(0)
        elif reason in self._tried or reason not in {TOKEN_REFUSED, MISSING_FLAGS, "unrecognised"}:
            return False
        self._tried.add(reason)
        if reason == MISSING_FLAGS:
            self.missing_flags = [str(detail["loc"][-1]) for detail in error.details]
        return True
