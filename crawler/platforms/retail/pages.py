"""Retail: page objects for a page of a category or of search results: as HTML, or as a response from the page's API."""

from __future__ import annotations

import html
import re
from functools import cached_property
from typing import Any, ClassVar, Literal
from urllib.parse import urlencode, urlsplit

import attrs
from web_poet import field

from crawler.errors import TargetNotFound, UpstreamBlocked, UpstreamError
from crawler.platforms.page import PlatformPage, mismatch_error, missing_error, unread_error
from crawler.platforms.retail import PLATFORM
from crawler.platforms.retail.forms import DATA_SCRIPT, Found, found_in
from crawler.platforms.retail.payload import ApiRow, ApiStack, Crumb, Facet, Listing, RenderedRow, RenderedStack, Seo
from crawler.platforms.retail.product import contradictions, product
from crawler.platforms.retail.schema import CATEGORY_ID
from crawler.reading.json import is_bare_json, script_block
from crawler.reading.values import absolute_url, count

ORIGIN = PLATFORM.origin

# Each of these texts occurs only in challenge pages, unlike the name of the bot-protection vendor.
CHALLENGE_MARKS = ("px-captcha", "Robot or human", "blockScript")
CHALLENGE_REDIRECT = re.compile(rb'"redirectUrl"\s*:\s*"/blocked')

# Keys in data that was saved without its page: a data block, the response to an API call, or a list of rows.
SAVED_MARKS = ('"searchResult"', '"initialData"', '"usItemId"')

LISTING_ROUTES = ("/browse", "/search")

COUNTRY = "US"
"""The country of the shop. Its pages may also be in languages other than English ("es-US")."""
_LANGUAGE = re.compile(rb"""<html\b[^>]*?\slang=["']?[a-z]{2,3}-([A-Za-z]{2})\b""")

MOST_ROWS = 53
"""The largest number of rows on a recorded page (capture 25d700b25e6f), with placeholders and a carousel's rows."""
ALWAYS_SERVED = 450
"""Every listing with more products than this serves at least this many of them. Such a listing serves about 500
products (specification, 8)."""
ROOT_CATEGORY = "0"
"""The category id that the platform states for a search: that of the root category."""


@attrs.define(slots=False)
class ListingPage(PlatformPage):
    """One page of a listing. ``page_params`` contains ``cat_id`` or ``query``, ``page`` and ``sort`` of the request."""

    source: ClassVar[str] = "listing"

    @classmethod
    def recognise(cls, body: str) -> bool:
        return any(mark in body for mark in (DATA_SCRIPT, *SAVED_MARKS, *CHALLENGE_MARKS))

    def validate_input(self) -> None:
        """Raise an error unless the response is the requested listing.

        For the errors by HTTP status, such as ``UpstreamRateLimited``, see ``raise_for_failures``.

        Raises:
            TargetNotFound: the category does not exist, or the page is not a listing.
            UpstreamBlocked: the response is a challenge.
            UpstreamError: the data contains an error that the platform reports.
            ExtractionFailed: the data is missing or belongs to another listing or country, or no row can be read.
        """
        self._raise_for_challenges()
        self.raise_for_failures()
        self._raise_for_other_shops()
        self._raise_for_other_pages()
        self._raise_for_reported_errors()
        self._raise_for_other_listings()
        self._raise_if_blind()

    def entry(self, row: RenderedRow | ApiRow) -> dict[str, Any]:
        """Convert a row to a product. Subclasses may override this method."""
        return product(row)

    # Fields: specification 2.7

    @field
    def breadcrumbs(self) -> list[dict[str, Any]]:
        levels = (self.listing.crumbs if self.listing else []) or self.seo.crumbs
        found = [
            {
                "id": _crumb_id(level),
                "name": level.name or "",
                "url": absolute_url(ORIGIN, level.url, query=False),
            }
            for level in levels
        ]
        return [level for level in found if level["id"] != self.cat_id]

    @field
    def cat_id(self) -> str:
        return str(self.page_params.get("cat_id") or self._echo("cat_id") or _id_in(str(self.response.url)))

    @field
    def category_id(self) -> str:
        return str(self.cat_id)

    @field
    def category_name(self) -> str:
        if self.cat_id == ROOT_CATEGORY or not self.listing:
            return ""
        listing = self.listing
        named = [
            (listing.info_id, listing.info_name),
            (listing.context_id, listing.context_name),
            *((crumb.id, crumb.name) for crumb in listing.crumbs),
        ]
        own = (name for cat_id, name in named if cat_id is not None and str(cat_id) == self.cat_id)
        return next(filter(None, own), None) or listing.title or ""

    @field
    def has_more(self) -> bool:
        # The payload's own hasMorePages is false on every page of every capture.
        is_last = self.listing is None if self.max_page is None else self.page >= self.max_page
        return bool(self.products) and not is_last

    @field
    def heading(self) -> str:
        of_stack = next((stack.title for stack in self._stacks), None)
        return self.seo.heading or self._title or self._element(b"h1") or of_stack or self.category_name

    @field
    def max_page(self) -> int | None:
        return count(self.listing.max_page) if self.listing else None

    @field
    def page(self) -> int:
        return count(self._echo("page")) or count(self.page_params.get("page")) or 1

    @field
    def products(self) -> list[dict[str, Any]]:
        return self._products

    @field
    def returned(self) -> int:
        return len(self._products)

    @field
    def sort(self) -> str:
        return self._echo("sort") or str(self.page_params.get("sort") or "")

    @field
    def title(self) -> str:
        return self.seo.title or self._element(b"title") or self._title

    @field
    def total_results(self) -> int | None:
        totals = (count(total) for total in (self._found.total, *(stack.total for stack in self._stacks)))
        return next((total for total in totals if total is not None), None)

    @field
    def url(self) -> str:
        canonical = self.seo.url or (self.listing.canonical if self.listing else None)
        own = f"{ORIGIN}/browse/{self.cat_id}" if self.cat_id else str(self.response.url)
        return absolute_url(ORIGIN, canonical, query=False) or own

    # For follow-up requests

    @property
    def subcategories(self) -> list[tuple[str, str]]:
        """Id and name of each category in the page's department filter, except the page's own category."""
        found = [(str(each.id or ""), each.name or "") for facet in self._facets("cat_id") for each in facet.values]
        return [(cat_id, name) for cat_id, name in found if cat_id and cat_id != self.cat_id]

    @property
    def selected_prices(self) -> tuple[float | None, float | None]:
        """The lower and upper limit of the price filter that the page states, in dollars. None: no limit is stated."""
        ends = ((facet.selected_low, facet.selected_high) for facet in self._facets("price"))
        return next((each for each in ends if each != (None, None)), (None, None))

    def _facets(self, kind: str) -> list[Facet]:
        return [facet for facet in self._found.facets if facet.kind == kind]

    # The payload

    @cached_property
    def _block(self) -> bytes | None:
        """The contents of the page's data block, None if the response has none."""
        body: bytes = self.response.body
        return None if is_bare_json(body) else script_block(body, DATA_SCRIPT)

    @cached_property
    def _found(self) -> Found:
        """The parts of the payload, whether the response is a page, an API response or a saved part."""
        return found_in(self, self._block)

    @property
    def listing(self) -> Listing | None:
        """The listing in the payload, None if there is none."""
        return self._found.listing

    @property
    def seo(self) -> Seo:
        """The page's title, heading, canonical URL and breadcrumbs, without values if the payload lacks them."""
        return self._found.seo or Seo()

    def _echo(self, name: Literal["cat_id", "page", "query", "sort"]) -> str:
        """Return a param as the response repeats it, "" if the response does not contain it."""
        value = getattr(self.listing, name) if self.listing else None
        return "" if value is None else str(value)

    @property
    def _title(self) -> str:
        return (self.listing.title if self.listing else None) or ""

    @cached_property
    def _stacks(self) -> list[RenderedStack | ApiStack]:
        """The groups with the listing's own rows.

        Carousels between these groups are left out, because they repeat or advertise products. Since 2026, the payload
        lists the listing's own groups. Before, they were the groups with a grid layout. ``stackType`` is not read,
        because it varies.
        """
        stacks = self._found.stacks
        named = {each.index for each in self.listing.matched if each.is_primary} if self.listing else set()
        own = [stack for index, stack in enumerate(stacks) if index in named]
        return own or [each for each in stacks if each.layout in {None, "GRID"} and each.kind != "SECONDARY_STACK"]

    @cached_property
    def _products(self) -> list[dict[str, Any]]:
        return [self.entry(row) for row in self._rows]

    @cached_property
    def _rows(self) -> list[RenderedRow | ApiRow]:
        rows = (row for stack in self._stacks for row in stack.rows)
        return [row for row in rows if isinstance(row, RenderedRow | ApiRow)]

    def _element(self, name: bytes) -> str:
        """Return the text of the first element with a name, "" without one. This is faster than parsing the page."""
        body: bytes = self.response.body
        start = body.find(b"<%b" % name)
        found = re.compile(rb"<%b\b[^<>]*>([^<]*)</%b>" % (name, name)).search(body, start) if start >= 0 else None
        return html.unescape(found.group(1).decode(errors="replace")).strip() if found else ""

    # Validation

    def _raise_for_challenges(self) -> None:
        body: bytes = self.response.body
        challenged = urlsplit(str(self.response.url)).path == "/blocked" or CHALLENGE_REDIRECT.search(body, 0, 2_000)
        if not challenged and (self._block is not None or not any(mark.encode() in body for mark in CHALLENGE_MARKS)):
            return
        raise UpstreamBlocked("The platform returned a CAPTCHA challenge.", reason="challenge")

    def _raise_for_other_shops(self) -> None:
        """Raise an error for a page of the company's shop in another country, whose prices and links would be misread.

        Capture c616c20d2a2f is such a page. Only the host and the language show the shop's country. The data contains
        the visitor's country, which is "not-available" in capture 25d700b25e6f of this shop.
        """
        host = (urlsplit(str(self.response.url)).hostname or "").removeprefix("www.")
        if PLATFORM.domain.partition(".")[0] in host.split(".") and host != PLATFORM.domain:
            message = f"The page is from {host}, which is another shop."
            raise mismatch_error(message, ["url"], PLATFORM.domain, reason="other_shop")
        language = _LANGUAGE.search(self.response.body, 0, 2_000)
        country = language[1].decode().upper() if language else COUNTRY
        if country != COUNTRY:
            message = f"The page is from the shop for {country}."
            raise mismatch_error(message, ["html", "lang"], COUNTRY, reason="other_shop")

    def _raise_for_other_pages(self) -> None:
        """Raise an error if the page is a not-found page or contains no listing.

        A not-found page is not recorded: ``/404`` is the route of such pages in Next.js. The capture 263a285f6fbd is a
        product page, which has no listing.
        """
        found = self._found
        if found.route == "/404":
            raise TargetNotFound("The platform has no such category.", reason="not_found")
        if found.listing or found.stacks:
            return
        is_of_listing = not found.route or found.route.startswith(LISTING_ROUTES)
        if not found.has_data or (is_of_listing and not found.is_other):
            raise missing_error("The page's data contains no listing.", found.path, reason="no_listing")
        raise TargetNotFound("The page is not a listing.", reason="wrong_page_kind")

    def _raise_for_reported_errors(self) -> None:
        """Raise an error if the data contains an error that the platform reports. No capture of a listing has one."""
        if self.listing and (self.listing.errors or self.listing.error_codes):
            kind = next((error.kind for error in self.listing.errors if error.kind), "unknown")
            raise UpstreamError(f"The page's data reports an error: {kind}.", reason="reported_error")

    def _raise_for_other_listings(self) -> None:
        """Raise an error if a param in the response differs from the requested one, so that the data of another listing
        is never returned.

        All captures of listings contain the page and the sort order. According to a published measurement, 400 of 400
        category pages contain the category.
        """
        names: tuple[Literal["cat_id", "query", "page", "sort"], ...] = ("cat_id", "query", "page", "sort")
        for name in names:
            requested, echoed = self.page_params.get(name), getattr(self.listing, name, None)
            # A search for a department's name redirects to a category page, whose data does not contain the query.
            if requested is None or echoed in {None, ""} or _comparable(requested) == _comparable(echoed):
                continue
            if name == "query" and self.listing and _comparable(echoed) == _comparable(self.listing.corrected):
                continue  # the platform has searched for the corrected words
            path = [*self._found.path, "paginationV2", "pageProperties", name]
            message = f"The page does not match the request: {name} is {echoed!r}, requested {requested!r}."
            raise mismatch_error(message, path, str(requested))

    def _raise_if_blind(self) -> None:
        """Raise an error if the page has products, but none can be read.

        A page must have products if the listing's total, or ``ALWAYS_SERVED`` if this is smaller, is larger than the
        number of products that the earlier pages can contain. Later pages may be empty: a measured listing stated 6,446
        products and 25 pages, and served none from page 12 on (specification, section 8). The capture 25d700b25e6f
        states 53 products and 3 pages. On a page with products, values that all rows lack are added to ``unread``.
        """
        if self._products:
            path = ".".join((*self._found.path, "itemStacks[]", self._found.rows_key))
            known = {each.path for each in self.unread}
            found = contradictions(self._rows, self._products, path)
            self.unread += [each for each in found if each.path not in known]
            return
        lost = [each for each in self.unread if each.loses_rows]
        if lost:
            raise unread_error("No row of the listing can be read.", lost, reason="blind")
        shown_before = MOST_ROWS * (self.page - 1)
        if self.page <= (self.max_page or 1) and shown_before < min(self.total_results or 0, ALWAYS_SERVED):
            message = f"The page contains none of the {self.total_results} products that the listing states."
            raise missing_error(message, [*self._found.path, "itemStacks"], reason="blind")


@attrs.define(slots=False)
class SearchPage(ListingPage):
    """One page of search results: a listing with the additional field ``query``."""

    source: ClassVar[str] = "search"

    @field
    def cat_id(self) -> str:
        return self._echo("cat_id") or ROOT_CATEGORY

    @field
    def query(self) -> str:
        return str(self.page_params.get("query") or self._echo("query"))

    @field
    def url(self) -> str:
        return f"{ORIGIN}/search?{urlencode({'q': self.query})}" if self.query else str(self.response.url)


def _comparable(value: object) -> str:
    """Normalize a param for comparison with the response: 2 equals "2", and "Red  Shoes" equals "red shoes"."""
    return " ".join(str(value).split()).casefold()


def _crumb_id(crumb: Crumb) -> str:
    return str(crumb.id) if crumb.id else _id_in(crumb.url or "")


def _id_in(url: str) -> str:
    """Return the category id at the end of a URL, "" if the URL does not end in a category id."""
    last = url.partition("?")[0].rstrip("/").rpartition("/")[2]
    return last if re.fullmatch(CATEGORY_ID, last) else ""
