"""Retail: page objects for a page of a category or of search results, and the price filter that its rows prove."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple, get_args
from urllib.parse import urlencode, urlsplit

import attrs
from web_poet import field

from crawler.errors import TargetNotFound, UpstreamBlocked, UpstreamError, quoted
from crawler.platforms.page import PlatformPage, mismatch_error, missing_error, unread_error
from crawler.platforms.retail import PLATFORM
from crawler.platforms.retail.payload import DataBlock, Facet, InitialData, Listing, Row, Seo, Stack
from crawler.platforms.retail.product import contradictions, product
from crawler.platforms.retail.urls import CATEGORY_ID
from crawler.reading.contract import Unread
from crawler.reading.documents import is_json, script_block
from crawler.reading.values import absolute_url, count, number

NEAR = 1.0
"""A price may be outside of the filter by this number of dollars, because the platform's own filter has whole dollars.
"""
MAX_OUTSIDE = 0.2
"""If a larger share of the prices is outside of the requested range, the platform has ignored the price filter."""


class PriceFilter(NamedTuple):
    """The lowest and the highest price in dollars, both inclusive. None: no limit."""

    low: float | None = None
    high: float | None = None

    @classmethod
    def requested(cls, page_params: Mapping[str, Any]) -> PriceFilter:
        """Return the filter in the params of a request."""
        return cls(number(page_params.get("min_price")), number(page_params.get("max_price")))

    @property
    def params(self) -> tuple[str, ...]:
        """The names of the params that the filter consists of."""
        return tuple(name for name, limit in zip(("min_price", "max_price"), self, strict=True) if limit is not None)

    def differs(self, requested: PriceFilter) -> bool:
        """Whether this filter, which a page states, is another one than the requested filter. A page may state none.

        The limits are compared but for the part of a dollar. A lower limit of 0 is no limit.
        """
        if self == PriceFilter():
            return False
        is_low = abs((self.low or 0) - (requested.low or 0)) <= NEAR
        is_high = abs((self.high or 0) - (requested.high or 0)) <= NEAR
        return not (is_low and is_high) or (self.high is None) != (requested.high is None)

    def excludes(self, price: Mapping[str, Any]) -> bool:
        """Whether none of a product's prices passes the filter. ``price``: the price in the contract's format."""
        lowest = price["min_price"]
        highest = max(price.get("max_price", lowest), price["current_price"] or lowest)
        return (self.low is not None and highest < self.low - NEAR) or (
            self.high is not None and lowest > self.high + NEAR
        )

    def outside(self, products: Iterable[Mapping[str, Any]]) -> tuple[int, int]:
        """Return how many prices of products (in the contract's format) do not pass the filter, and of how many prices.

        Advertisements are left out, because they may have any price.
        """
        prices = [each["price"] for each in products if not each["is_sponsored"]]
        priced = [each for each in prices if each["min_price"] is not None]
        return sum(map(self.excludes, priced)), len(priced)

    def __str__(self) -> str:
        return "..".join("" if limit is None else f"{limit:.2f}" for limit in self)


def ignores(requested: PriceFilter, stated: PriceFilter, products: Iterable[Mapping[str, Any]]) -> bool:
    """Whether a page shows that the platform has not applied the requested filter, or has applied another one.

    ``stated``: the filter that the page states. Both the statement and the products must agree with the request.
    """
    outside, prices = requested.outside(products)
    return stated.differs(requested) or outside > MAX_OUTSIDE * prices


ORIGIN = PLATFORM.origin

DATA_SCRIPT = "__NEXT_DATA__"
PAGE_PATH = ("props", "pageProps", "initialData", "searchResult")
"""The path of the listing in a page's data block."""
ROWS_PATH = ".".join((*PAGE_PATH, "itemStacks[]", "items[]"))

# Each of these texts occurs only in challenge pages, unlike the name of the bot-protection vendor.
CHALLENGE_MARKS = ("px-captcha", "Robot or human", "blockScript")
BLOCK_MARKS = ('"pageProps"',)
"""The keys in a data block that was saved without its page."""
CHALLENGE_REDIRECT = re.compile(rb'"redirectUrl"\s*:\s*"/blocked')

OTHER_ROUTES = re.compile(r"/(?:(?:ip|cp)/.*)?")
"""The routes of pages that are not listings: a product, a department's articles, and the home page. A department's page
may also contain a listing."""

COUNTRY = "US"
"""The country of the shop. Its pages may also be in languages other than English ("es-US")."""
_LANGUAGE = re.compile(rb"""<html\b[^<>]*?\slang=["']?[a-z]{2,3}-([A-Za-z]{2})\b""")

MOST_ROWS = 53
"""The largest number of rows on a recorded page (capture 25d700b25e6f), with placeholders and a carousel's rows."""
ALWAYS_SERVED = 450
"""Every listing with more products than this serves at least this many of them. Such a listing serves about 500
products (specification, 8)."""
ROOT_CATEGORY = "0"
"""The category id that the platform states for a search: that of the root category."""

FACETS_PATH = (*PAGE_PATH[:-1], "contentLayout", "modules[]", "configs", "allSortAndFilterFacets[]", "selectedMin")
"""The path of the price filter that a page states."""
FILTER_IGNORED = "filter_ignored"
"""The reason of the error for a page with other prices than requested."""
OWN_FACETS = frozenset({"sort", "cat_id"})
"""The filters of the page that are params of the scrapers."""

Echo = Literal["cat_id", "page", "query", "sort"]
ECHOES: tuple[Echo, ...] = get_args(Echo)
"""The params that the page's data repeats."""


@attrs.define(slots=False)
class ListingPage(PlatformPage):
    """One page of a listing. ``page_params`` contains the params of ``listing_request``."""

    source: ClassVar[str] = "listing"
    echoes: ClassVar[tuple[Echo, ...]] = ("cat_id", "page", "sort")
    """The params that every page of this kind repeats."""

    @classmethod
    def recognise(cls, body: str) -> bool:
        return any(mark in body for mark in (DATA_SCRIPT, *BLOCK_MARKS, *CHALLENGE_MARKS))

    def validate_input(self) -> None:
        """Raise an error unless the response is the requested listing.

        For the errors by HTTP status, such as ``UpstreamRateLimited``, see ``raise_for_failures``.

        Raises:
            TargetNotFound: the category does not exist, or the page is not a listing.
            UpstreamBlocked: the response is a challenge.
            UpstreamError: the data contains an error that the platform reports.
            ExtractionFailed: the data is missing or belongs to another listing or country, no row can be read, or the
                platform has ignored the price filter.
        """
        self._raise_for_challenges()
        self.raise_for_failures()
        self._raise_for_other_shops()
        self._raise_for_other_pages()
        self._raise_for_reported_errors()
        self._raise_for_other_listings()
        self._raise_if_blind()
        self._raise_for_other_filters()

    def entry(self, row: Row) -> dict[str, Any]:
        """Convert a row to a product. Subclasses may override this method."""
        return product(row)

    # Fields: specification 2.7

    @field
    def breadcrumbs(self) -> list[dict[str, Any]]:
        levels = self.listing.crumbs or self.seo.crumbs
        found = [
            {
                "id": str(level.id) if level.id else _id_in(level.url or ""),
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
        if self.cat_id == ROOT_CATEGORY:
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
        return bool(self.products) and (self.max_page is None or self.page < self.max_page)

    @field
    def heading(self) -> str:
        of_stack = next((stack.title for stack in self._stacks), None)
        return self.seo.heading or self.listing.title or self._element(b"h1") or of_stack or self.category_name

    @field
    def max_page(self) -> int | None:
        return count(self.listing.max_page)

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
        return self.seo.title or self._element(b"title") or self.listing.title or ""

    @field
    def total_results(self) -> int | None:
        totals = map(count, (self.listing.total, *(each.total for each in self._stacks)))
        return next((total for total in totals if total is not None), None)

    @field
    def url(self) -> str:
        own = f"{ORIGIN}/browse/{self.cat_id}" if self.cat_id else str(self.response.url)
        return absolute_url(ORIGIN, self.seo.url or self.listing.canonical, query=False) or own

    # For follow-up requests

    @property
    def subcategories(self) -> list[tuple[str, str]]:
        """Id and name of each category in the page's department filter, except the page's own category."""
        found = [(str(each.id or ""), each.name or "") for facet in self._facets("cat_id") for each in facet.values]
        return [(cat_id, name) for cat_id, name in found if cat_id and cat_id != self.cat_id]

    @property
    def stated_prices(self) -> PriceFilter:
        """The price filter that the page states."""
        stated = (PriceFilter(facet.selected_low, facet.selected_high) for facet in self._facets("price"))
        return next((each for each in stated if each != PriceFilter()), PriceFilter())

    @property
    def own_ids(self) -> list[str]:
        """The item ids of the listing's own products. An advertisement may be for a product of another category."""
        path = self.cat_id.replace("_", "/") + "/"
        is_own = (not row["is_sponsored"] or f"{row['category_path']}/".startswith(path) for row in self._products)
        return [row["item_id"] for row, own in zip(self._products, is_own, strict=True) if own]

    @property
    def unproven(self) -> list[str]:
        """The requested params that the page does not confirm, after the item was read."""
        return [name for each in self.unread if each.cause == "unproven" for name in each.names]

    def _facets(self, *kinds: str) -> list[Facet]:
        """Return the filters of these types that the page offers; without types, all filters."""
        return [facet for facet in self._data.facets if not kinds or facet.kind in kinds]

    # The payload

    @cached_property
    def _block(self) -> bytes | None:
        """The contents of the page's data block, None if the response has none. A saved block may lack its page."""
        body: bytes = self.response.body
        return body if is_json(body) else script_block(body, DATA_SCRIPT)

    @cached_property
    def _document(self) -> DataBlock:
        """The page's data.

        Raises:
            ExtractionFailed: the page has no data block, or the block is not JSON.
        """
        if self._block is None:
            raise missing_error("The page contains no data block.", [f"script#{DATA_SCRIPT}"], reason="no_data_block")
        return self.payload(DataBlock, self._block, what=DATA_SCRIPT)

    @property
    def _data(self) -> InitialData:
        return self._document.data or InitialData()

    @property
    def listing(self) -> Listing:
        """The listing in the payload, without values if there is none. A valid page has one."""
        return self._data.listing or Listing()

    @property
    def seo(self) -> Seo:
        """The page's title, heading, canonical URL and breadcrumbs, without values if the payload lacks them."""
        return self._data.seo or Seo()

    def _echo(self, name: Echo) -> str:
        """Return a param as the response repeats it, "" if the response does not contain it."""
        value = getattr(self.listing, name)
        return "" if value is None else str(value)

    @cached_property
    def _stacks(self) -> list[Stack]:
        """The groups with the listing's own rows.

        Carousels between these groups are left out, because they repeat or advertise products. Since 2026, the payload
        lists the listing's own groups. Before, they were the groups with a grid layout. ``stackType`` is not read,
        because it varies.
        """
        stacks = self.listing.stacks
        named = {each.index for each in self.listing.matched if each.is_primary}
        own = [stack for index, stack in enumerate(stacks) if index in named]
        return own or [each for each in stacks if each.layout in {None, "GRID"} and each.kind != "SECONDARY_STACK"]

    @cached_property
    def _products(self) -> list[dict[str, Any]]:
        return [self.entry(row) for row in self._rows]

    @cached_property
    def _rows(self) -> list[Row]:
        """The products of the listing. If it has none, the platform may show others instead, which are left out."""
        rows = [row for stack in self._stacks for row in stack.rows if isinstance(row, Row)]
        return [] if self.total_results == 0 else rows

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

        The page's route is the mark of its kind, and so is the data of a product (capture 263a285f6fbd). The absence of
        a listing is not a mark. A not-found page is not recorded: ``/404`` is the route of such pages in Next.js.
        """
        route, data = self._document.route or "", self._data
        if route == "/404":
            mark = quoted(route, "page")
            raise TargetNotFound("The platform has no such category.", details=mark, reason="not_found")
        if data.listing:
            return
        if data.product:
            mark = quoted("the data of a product", *PAGE_PATH[:-1], "data")
        elif OTHER_ROUTES.fullmatch(route):
            mark = quoted(route, "page")
        elif route or self._document.data:
            raise missing_error("The page's data contains no listing.", PAGE_PATH, reason="no_listing")
        else:
            raise missing_error("The data is not that of a page.", ["props"], reason="unknown_form")
        raise TargetNotFound("The page is not a listing.", details=mark, reason="wrong_page_kind")

    def _raise_for_reported_errors(self) -> None:
        """Raise an error if the data contains an error that the platform reports. No capture of a listing has one."""
        if self.listing.errors or self.listing.error_codes:
            kind = next((error.kind for error in self.listing.errors if error.kind), "unknown")
            raise UpstreamError(f"The page's data reports an error: {kind}.", reason="reported_error")

    def _raise_for_other_listings(self) -> None:
        """Raise an error if a param in the response differs from the requested one, so that the data of another listing
        is never returned.

        All captures of listings contain the page and the sort order. According to a published measurement, 400 of 400
        category pages contain the category.

        Raises:
            TargetNotFound: the platform redirects the search to another page, in place of results.
        """
        redirect = self.listing.redirect
        if redirect and not self._rows:
            mark = quoted(redirect, *PAGE_PATH, "searchRedirect", "redirectUrl")
            raise TargetNotFound("The search leads to another page.", details=mark, reason="redirected")
        for name in ECHOES:
            requested, echoed = self.page_params.get(name), self._echo(name)
            if requested is None or _comparable(requested) == _comparable(echoed):
                continue
            if not echoed:  # as on the category page to which a search for a department's name redirects
                self.unread.append(Unread(".".join(_echo_path(name)), "unproven", names=(name,)))
                continue
            if name == "query" and _comparable(echoed) == _comparable(self.listing.corrected):
                continue  # the platform has searched for the corrected words
            message = f"The page does not match the request: {name} is {echoed!r}, requested {requested!r}."
            raise mismatch_error(message, _echo_path(name), str(requested))

    def _raise_for_other_filters(self) -> None:
        """Raise an error if the page states a filter that was not requested, or has ignored the requested prices.

        The price filter that a page states is null in 414 of 414 recorded filters, which were all requested without
        prices. So the prices of the products prove the filter. A page without prices proves nothing: ``unread`` then
        has the params, and also if a few prices do not pass the filter.
        """
        if not self.page_params.keys() & {"min_price", "max_price"}:
            return  # the request is unknown, or its prices are checked elsewhere
        selected = (facet.kind for facet in self._facets() if any(each.is_selected for each in facet.values))
        facet = self.listing.facet or next((each for each in selected if each not in OWN_FACETS), "")
        if facet:
            message = f"The page does not match the request: it has the filter {facet}."
            raise mismatch_error(message, _echo_path("facet"), "")
        requested, stated = PriceFilter.requested(self.page_params), self.stated_prices
        if stated.differs(requested):
            message = f"The page does not match the request: its prices are {stated}, requested {requested}."
            reason = FILTER_IGNORED if requested.params else "wrong_echo"
            raise mismatch_error(message, FACETS_PATH, str(requested), reason=reason)
        if requested == PriceFilter():
            return
        path, (outside, of) = f"{ROWS_PATH}.priceInfo", requested.outside(self._products)
        if outside > MAX_OUTSIDE * of:
            message = f"The platform ignored the price filter {requested}: {outside} of {of} prices are outside of it."
            raise mismatch_error(message, path.split("."), str(requested), reason=FILTER_IGNORED)
        if outside or not of:
            self.unread.append(Unread(path, "unproven", outside, of, names=requested.params))

    def _raise_if_blind(self) -> None:
        """Raise an error if the page has products, but none can be read.

        A page must have products if the listing's total, or ``ALWAYS_SERVED`` if this is smaller, is larger than the
        number of products that the earlier pages can contain. Later pages may be empty: a measured listing stated 6,446
        products and 25 pages, and served none from page 12 on (specification, section 8). The capture 25d700b25e6f
        states 53 products and 3 pages. On a page with products, values that all rows lack are added to ``unread``.
        """
        if self._products:
            known = {each.path for each in self.unread}
            found = [*contradictions(self._rows, ROWS_PATH), *self._contradictions()]
            self.unread += [each for each in found if each.path not in known]
            return
        lost = [each for each in self.unread if each.loses_rows]
        if lost:
            raise unread_error("No row of the listing can be read.", lost, reason="blind")
        shown_before = MOST_ROWS * (self.page - 1)
        if self.page <= (self.max_page or 1) and shown_before < min(self.total_results or 0, ALWAYS_SERVED):
            message = f"The page contains none of the {self.total_results} products that the listing states."
            raise missing_error(message, [*PAGE_PATH, "itemStacks"], reason="blind")
        if others := sum(isinstance(row, Row) for stack in self._stacks for row in stack.rows):
            self.unread.append(Unread(ROWS_PATH, "contradiction", others, others, loses_rows=True))

    def _contradictions(self) -> Iterator[Unread]:
        """Yield values that the listing lacks although its other values show that they exist.

        In all eight recorded listings that state a number or a param, all of these are stated: the page, the sort
        order, the category, the words of a search, the title of a search, and the number of pages if there are more
        products than rows.
        """
        listing = self.listing
        if listing.total is None and not listing.max_page and not any(map(self._echo, ECHOES)):
            return  # only the rows were saved
        missing = {".".join(_echo_path(name)): not self._echo(name) for name in self.echoes}
        missing[".".join((*PAGE_PATH, "title"))] = bool(listing.query) and not listing.title
        has_pages = (self.total_results or 0) > len(self._rows)
        missing[".".join((*PAGE_PATH, "paginationV2", "maxPage"))] = has_pages and self.max_page is None
        yield from (Unread(path, "contradiction") for path, is_missing in missing.items() if is_missing)


@attrs.define(slots=False)
class SearchPage(ListingPage):
    """One page of search results: a listing with the additional field ``query``."""

    source: ClassVar[str] = "search"
    echoes: ClassVar[tuple[Echo, ...]] = ECHOES

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
    """Normalize a param for comparison with the response: 2 equals "2", and "Red  Shoes" equals "red shoes".

    An accented letter may be one character or two.
    """
    return " ".join(unicodedata.normalize("NFC", str(value)).split()).casefold()


def _echo_path(name: str) -> list[str]:
    return [*PAGE_PATH, "paginationV2", "pageProperties", name]


def _id_in(url: str) -> str:
    """Return the category id at the end of a URL, "" if the URL does not end in a category id."""
    last = url.partition("?")[0].rstrip("/").rpartition("/")[2]
    return last if CATEGORY_ID.matches(last) else ""
