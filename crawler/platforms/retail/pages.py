"""Retail: page objects for a page of a category or of search results, as HTML or from the page's own API call."""

from __future__ import annotations

import html
import re
from functools import cached_property
from typing import Any, ClassVar
from urllib.parse import urlencode, urlsplit

import attrs
from web_poet import field

from crawler.errors import TargetNotFound, UpstreamBlocked, UpstreamError
from crawler.platforms.page import PlatformPage, mismatch_error, missing_error
from crawler.platforms.retail import PLATFORM
from crawler.platforms.retail.product import product
from crawler.platforms.retail.schema import CATEGORY_ID
from crawler.reading.json import decode, dicts, dig, find_all, is_bare_json, script_block
from crawler.reading.values import absolute_url, count, number, text

ORIGIN = PLATFORM.origin
DATA_SCRIPT = "__NEXT_DATA__"

# Each of these texts occurs only in a challenge. The bot-protection vendor's name also occurs in normal pages.
CHALLENGE_MARKS = ("px-captcha", "Robot or human", "blockScript")
CHALLENGE_REDIRECT = re.compile(rb'"redirectUrl"\s*:\s*"/blocked')

# Keys in data that was saved without its page: a data block, the response to an API call, or a list of rows.
SAVED_MARKS = ('"searchResult"', '"initialData"', '"usItemId"')

# Paths to the listing in the page's data, in the response to the page's API call, and in a saved part of either.
LISTING_PATHS = (
    ("props", "pageProps", "initialData", "searchResult"),
    ("data", "search", "searchResult"),
    ("searchResult",),
)
_CONTEXT = ("requestContext", "categories")
LISTING_ROUTES = ("/browse", "/search")
OTHER_KINDS = frozenset({"data", "contentLayout"})
"""Keys of the data of pages that are not listings: product pages and editorial pages."""

COUNTRY = "US"
"""The country that the shop is for. Its pages may be in other languages ("es-US")."""
_COUNTRY = ("props", "pageProps", "countryRegion", "countryCode")
_LANGUAGE = re.compile(rb"""<html\b[^>]*?\slang=["']?[a-z]{2,3}-([A-Za-z]{2})\b""")

ROOT_CATEGORY = "0"
"""The category id that the platform states for a search: the root category."""
PRODUCT = "Product"
ROW_KEYS = frozenset({"usItemId", "name"})
"""The keys that a row must have to be a product."""

Path = list[str | int]


@attrs.define(slots=False)
class ListingPage(PlatformPage):
    """One page of a listing. ``page_params`` has the request's ``cat_id`` or ``query``, ``page`` and ``sort``."""

    source: ClassVar[str] = "listing"

    @classmethod
    def recognise(cls, body: str) -> bool:
        return any(mark in body for mark in (DATA_SCRIPT, *SAVED_MARKS, *CHALLENGE_MARKS))

    def validate_input(self) -> None:
        """Raise an error unless the response is the requested listing.

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
        self._raise_if_unrecognised()

    # Fields: specification 2.7

    @field
    def breadcrumbs(self) -> list[dict[str, Any]]:
        levels = dicts(self.listing.get("breadCrumb")) or dicts(dig(self.seo, "breadCrumb"))
        found = [
            {
                "id": text(level.get("id")) or _id_in(level.get("url")),
                "name": text(level.get("name")),
                "url": absolute_url(ORIGIN, level.get("url"), query=False),
            }
            for level in levels
        ]
        return [level for level in found if level["id"] != self.cat_id]

    @field
    def cat_id(self) -> str:
        return text(self.page_params.get("cat_id")) or text(self.echo.get("cat_id")) or _id_in(str(self.response.url))

    @field
    def category_id(self) -> str:
        return text(self.cat_id)

    @field
    def category_name(self) -> str:
        if self.cat_id == ROOT_CATEGORY:
            return ""
        named = [
            (dig(self.listing, "catInfo", "catId"), dig(self.listing, "catInfo", "name")),
            (dig(self.listing, *_CONTEXT, "id"), dig(self.listing, *_CONTEXT, "name")),
            *((crumb.get("id"), crumb.get("name")) for crumb in dicts(self.listing.get("breadCrumb"))),
        ]
        own = (text(name) for cat_id, name in named if text(cat_id) == self.cat_id)
        return next(filter(None, own), "") or text(self.listing.get("title"))

    @field
    def has_more(self) -> bool:
        # The payload's own hasMorePages is false on every page of every capture.
        is_last = self._is_bare if self.max_page is None else self.page >= self.max_page
        return bool(self._products) and not is_last

    @field
    def heading(self) -> str:
        return (
            text(dig(self.seo, "h1"))
            or self._element(b"h1")
            or text(self.listing.get("title"))
            or text(dig(self.listing, "itemStacks", 0, "meta", "title"))
            or self.category_name
        )

    @field
    def max_page(self) -> int | None:
        return count(dig(self.listing, "paginationV2", "maxPage"))

    @field
    def page(self) -> int:
        return count(self.echo.get("page")) or count(self.page_params.get("page")) or 1

    @field
    def products(self) -> list[dict[str, Any]]:
        return self._products

    @field
    def returned(self) -> int:
        return len(self._products)

    @field
    def sort(self) -> str:
        return text(self.echo.get("sort")) or text(self.page_params.get("sort"))

    @field
    def title(self) -> str:
        return text(dig(self.seo, "metaTitle")) or self._element(b"title") or text(self.listing.get("title"))

    @field
    def total_results(self) -> int | None:
        stacks = dicts(self.listing.get("itemStacks"))
        candidates = [self.listing.get("aggregatedCount")]
        candidates += [dig(stack, *path) for stack in stacks for path in (("count",), ("meta", "totalItemCount"))]
        return next((total for total in map(count, candidates) if total is not None), None)

    @field
    def url(self) -> str:
        canonical = text(dig(self.seo, "metaCanon")) or text(dig(self.listing, "pageMetadata", "canonical"))
        own = f"{ORIGIN}/browse/{self.cat_id}" if self.cat_id else str(self.response.url)
        return absolute_url(ORIGIN, canonical, query=False) or own

    # For follow-up requests

    @property
    def subcategories(self) -> list[tuple[str, str]]:
        """Id and name of each sub-category in the page's department filter."""
        values = dicts(dig(self._filter("cat_id"), "values"))
        found = [(text(value.get("id")), text(value.get("name"))) for value in values]
        return [(cat_id, name) for cat_id, name in found if cat_id and cat_id != self.cat_id]

    @property
    def price_bounds(self) -> tuple[float, float] | None:
        """The ends of the page's price filter in dollars, None without the filter. The upper end may be open-ended."""
        low, high = number(self._filter("price").get("min")), number(self._filter("price").get("max"))
        return None if low is None or high is None else (low, high)

    def _filter(self, kind: str) -> dict[str, Any]:
        for filters in find_all(self._initial, "allSortAndFilterFacets"):
            for each in dicts(filters):
                if each.get("type") == kind:
                    return each
        return {}

    # The payload

    @cached_property
    def _payload(self) -> Any:
        body = self.response.body
        block = body if is_bare_json(body) else script_block(body, DATA_SCRIPT)
        if block is None:
            raise missing_error("The page has no data block.", [f"script#{DATA_SCRIPT}"], reason="no_data_block")
        return decode(block, what=DATA_SCRIPT)

    @cached_property
    def _initial(self) -> Any:
        """The page's data, which contains the listing."""
        return dig(self._payload, "props", "pageProps", "initialData") or self._payload

    @cached_property
    def _is_bare(self) -> bool:
        """Whether the response is a list of rows that was saved without its page."""
        return any("usItemId" in row for row in dicts(self._payload))

    @cached_property
    def listing(self) -> dict[str, Any]:
        """The JSON object with the listing; {} if the page has no listing."""
        if self._is_bare:
            return {"itemStacks": [{"items": self._payload}]}
        found = (dig(self._payload, *path) for path in LISTING_PATHS)
        return next((each for each in found if isinstance(each, dict)), {})

    @cached_property
    def echo(self) -> dict[str, Any]:
        """The request's params, as the platform repeats them in the response."""
        properties = dig(self.listing, "paginationV2", "pageProperties")
        return properties if isinstance(properties, dict) else {}

    @cached_property
    def seo(self) -> Any:
        """A category's title, heading and canonical URL. They are in the page's data or one level below."""
        beside = self._initial.values() if isinstance(self._initial, dict) else ()
        found = (dig(each, "seoBrowseMetaData") for each in (self._initial, *beside))
        return next((each for each in found if each), None)

    @cached_property
    def _grids(self) -> list[tuple[int, dict[str, Any]]]:
        """The stacks (groups of rows) with the listing's own rows, each with its index in the page.

        Carousels between them are left out, because they repeat or advertise products.
        """
        stacks = self.listing.get("itemStacks")
        return [
            (index, stack)
            for index, stack in enumerate(stacks if isinstance(stacks, list) else [])
            if isinstance(stack, dict) and _is_grid(stack)
        ]

    @cached_property
    def _rows(self) -> list[tuple[Path, dict[str, Any], bool]]:
        """Every row of the grids, with its path below ``itemStacks``, and whether it is a product.

        In the response to the page's API call, the key of the rows is ``itemsV2``.
        """
        return [
            ([index, key, number], row, _is_product(row))
            for index, stack in self._grids
            for key in ("items" if stack.get("items") else "itemsV2",)
            for number, row in enumerate(stack[key] if isinstance(stack.get(key), list) else [])
            if isinstance(row, dict)
        ]

    @cached_property
    def _products(self) -> list[dict[str, Any]]:
        return [product(row) for _, row, is_product in self._rows if is_product]

    def _element(self, name: bytes) -> str:
        """Return the text of an element that occurs once in the page. A regular expression is faster than parsing."""
        found = re.search(rb"<%b\b[^<>]*>([^<]*)</%b>" % (name, name), self.response.body)
        return html.unescape(found.group(1).decode(errors="replace")).strip() if found else ""

    # Validation

    def _raise_for_challenges(self) -> None:
        body: bytes = self.response.body
        challenged = urlsplit(str(self.response.url)).path == "/blocked" or CHALLENGE_REDIRECT.search(body, 0, 2_000)
        if not challenged and (
            b'id="%b"' % DATA_SCRIPT.encode() in body or not any(mark.encode() in body for mark in CHALLENGE_MARKS)
        ):
            return
        raise UpstreamBlocked(
            "The platform returned a CAPTCHA challenge.", upstream_status=self.response.status, reason="challenge"
        )

    def _raise_for_other_shops(self) -> None:
        """Raise an error for the company's shop in another country. Its prices and links would be read wrongly."""
        host = (urlsplit(str(self.response.url)).hostname or "").removeprefix("www.")
        if PLATFORM.domain.partition(".")[0] in host.split(".") and host != PLATFORM.domain:
            message = f"The page is from {host}, which is another shop."
            raise mismatch_error(message, ["url"], PLATFORM.domain, reason="other_shop")
        language = _LANGUAGE.search(self.response.body, 0, 2_000)
        found = {
            ("html", "lang"): language[1].decode().upper() if language else "",
            _COUNTRY: text(dig(self._payload, *_COUNTRY)),
        }
        for path, country in found.items():
            if country not in {"", COUNTRY}:
                message = f"The page is from the shop for {country}."
                raise mismatch_error(message, path, COUNTRY, reason="other_shop")

    def _raise_for_other_pages(self) -> None:
        """Raise an error if the page is a not-found page or has no listing."""
        status, route = self.response.status, text(dig(self._payload, "page"))
        if route == "/404":
            raise TargetNotFound("The platform has no such category.", upstream_status=status, reason="not_found")
        if self.listing:
            return
        initial = dig(self._payload, "props", "pageProps", "initialData")
        if not isinstance(initial, dict) or ("searchResult" not in initial and _may_be_listing(route, initial)):
            raise missing_error("The page's data has no listing.", LISTING_PATHS[0], reason="no_listing")
        raise TargetNotFound("The page is not a listing.", upstream_status=status, reason="wrong_page_kind")

    def _raise_for_reported_errors(self) -> None:
        errors = dicts(dig(self.listing, "errorResponse", "errors"))
        if errors or dig(self.listing, "errorResponse", "errorCodes"):
            kind = text(dig(errors, 0, "errorType")) or "unknown"
            raise UpstreamError(f"The page's data contains an error of the platform: {kind}.", reason="reported_error")

    def _raise_for_other_listings(self) -> None:
        """Raise an error if a param in the response differs from the request, so that no other category is returned."""
        for name in ("cat_id", "query", "page", "sort"):
            requested, echoed = self.page_params.get(name), self.echo.get(name)
            # A search for a department's name redirects to a category page, whose data does not contain the query.
            if requested is not None and echoed not in (None, "") and _comparable(requested) != _comparable(echoed):
                path: Path = [*LISTING_PATHS[0], "paginationV2", "pageProperties", name]
                message = f"The page does not match the request: {name} is {echoed!r}, requested {requested!r}."
                raise mismatch_error(message, path, str(requested))

    def _raise_if_unrecognised(self) -> None:
        """Raise an error if no product can be read.

        If only some rows or grids cannot be read, add errors to ``skipped``: products must not be missing silently.
        """
        path: Path = [*LISTING_PATHS[0], "itemStacks"]
        if not isinstance(self.listing.get("itemStacks"), list):
            raise missing_error("The listing does not contain its list of rows.", path, reason="no_rows")
        lost = [
            missing_error("A part of the listing does not contain its list of rows.", each, reason="no_rows")
            for each in ([*path, index, "items"] for index, stack in self._grids if not _has_rows(stack))
        ]
        unrecognised = [
            [*path, *row_path, next((key for key in sorted(ROW_KEYS) if not text(row.get(key))), "__typename")]
            for row_path, row, is_product in self._rows
            if not is_product
            if row.get("__typename") == PRODUCT
            or row.keys() >= ROW_KEYS
            or (not self._products and ROW_KEYS & row.keys())
        ]
        if unrecognised:
            message = "Product rows could not be read: the layout changed."
            lost.append(missing_error(message, *unrecognised[:10], reason="blind"))
        if lost and not self._products:
            raise lost[0]
        for error in lost:
            self.skip(error)


@attrs.define(slots=False)
class SearchPage(ListingPage):
    """One page of search results. It is a listing that also has the query."""

    source: ClassVar[str] = "search"

    @field
    def cat_id(self) -> str:
        return text(self.echo.get("cat_id")) or ROOT_CATEGORY

    @field
    def query(self) -> str:
        return text(self.page_params.get("query")) or text(self.echo.get("query"))

    @field
    def url(self) -> str:
        return f"{ORIGIN}/search?{urlencode({'q': self.query})}" if self.query else str(self.response.url)


def _may_be_listing(route: str, initial: dict[str, Any]) -> bool:
    """Return whether a page without a listing should have one: by its route, or by its data if it has no route."""
    return route.startswith(LISTING_ROUTES) if route else not OTHER_KINDS & initial.keys()


def _is_grid(stack: dict[str, Any]) -> bool:
    # The stack's type is not checked, because it varies.
    layout = stack.get("layoutEnum") or dig(stack, "meta", "layoutEnum")
    return layout in (None, "GRID") and dig(stack, "meta", "subType") != "SECONDARY_STACK"


def _has_rows(stack: dict[str, Any]) -> bool:
    return isinstance(stack.get("items"), list) or isinstance(stack.get("itemsV2"), list)


def _is_product(row: dict[str, Any]) -> bool:
    """Return whether a row is a product, not a placeholder. Rows in shortened sample responses lack ``__typename``."""
    return row.get("__typename") in (None, PRODUCT) and bool(text(row.get("usItemId")) and text(row.get("name")))


def _comparable(value: object) -> str:
    """Normalize a param for comparison with the response: 2 equals "2", and "Red  Shoes" equals "red shoes"."""
    return " ".join(str(value).split()).casefold()


def _id_in(url: object) -> str:
    """Return the category id at the end of a URL, "" if the URL does not end in a category id."""
    last = text(url).partition("?")[0].rstrip("/").rpartition("/")[2]
    return last if re.fullmatch(CATEGORY_ID, last) else ""
