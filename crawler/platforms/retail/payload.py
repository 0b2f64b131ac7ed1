"""Retail: the contracts of a listing's data: in a page (``__NEXT_DATA__``), in a response from the page's API, or in a
saved part of either.

The kinds of values (``always``, ``sometimes`` ...) were counted over recorded rows and pages since 2024-12
(``tests/contracts``). Recorded rows of 2022 lack some of the keys, but the platform no longer sends such rows. All
whole recorded pages are searches, so values that a category page may lack are ``sometimes``.
"""

from __future__ import annotations

from typing import NamedTuple

from crawler.reading.contract import Contract, NonEmpty, always, identity, often, sometimes
from crawler.reading.values import amount, amounts

PRODUCT = ("__typename", "Product")


# Prices: one class per format. "" and 0 mean that a price is missing.


class Price(NamedTuple):
    """The price of a row, read from any format."""

    current: float | None = None
    low: float | None = None
    """The lowest price, if the product has options with different prices."""
    high: float | None = None
    currency: str = ""


PRICE_LINES = {"CURRENT_PRICE", "DISCOUNTED_PRICE", "OPTIONS_RANGE", "OPTIONS", "UNIT_PRICE", "COMPARISON"}
"""The known types of price lines, from captures and documentation. ``UNIT_PRICE`` and ``COMPARISON`` lines contain no
price of the product."""


class PriceValue(Contract):
    """An amount in a price line."""

    key: str | None = always("key")
    amount: str | int | float | None = always("value")


class PriceLine(Contract):
    """A price line, a format used since July 2026: the current price, or the price range of the options."""

    kind: str | None = always("lineType")
    values: list[PriceValue] = always("values[]")


class PriceDetails(Contract):
    """The price lines of a row."""

    currency: str | None = sometimes("currency")
    lines: list[PriceLine] = always("priceLines[]")


class RenderedPrice(Contract):
    """The price of a row on a page. Since July 2026, some rows have price lines, and their older keys are "" or 0.

    ``itemPrice`` is not read, because it is the struck-through price. The row's ``price`` is not read, because it may
    be truncated.
    """

    details: PriceDetails | None = sometimes("priceDetails")
    line_price: str | None = always("linePrice")
    line_price_display: str | None = always("linePriceDisplay")
    range: str | None = always("priceRangeString")

    def read(self) -> Price:
        """Return the price from the price lines, or else from the older keys."""
        if self.details and (price := _of_lines(self.details)):
            return price
        current = amount(self.line_price) or amount(self.line_price_display)
        if not self.range:
            return Price(current)
        low, high, *_ = *amounts(self.range), None, None
        return Price(current, low, high)

    @property
    def unknown_lines(self) -> list[str]:
        """The unknown types of price lines with an amount, if no price was read. Other unknown lines are notices."""
        lines = self.details.lines if self.details and self.read()[:2] == (None, None) else []
        priced = [line for line in lines if any(amount(each.amount) for each in line.values)]
        return [line.kind for line in priced if line.kind and line.kind not in PRICE_LINES]


def _of_lines(details: PriceDetails) -> Price | None:
    stated = {(line.kind, each.key): amount(each.amount) for line in details.lines for each in line.values}
    current = stated.get(("DISCOUNTED_PRICE", "PRICE")) or stated.get(("CURRENT_PRICE", "PRICE"))
    low = stated.get(("OPTIONS_RANGE", "LOW_PRICE")) or stated.get(("OPTIONS", "LOW_PRICE"))
    high = stated.get(("OPTIONS_RANGE", "HIGH_PRICE"))
    return None if current is None and low is None else Price(current, low, high, details.currency or "")


class ApiPrice(Contract):
    """The price of a row in a response from the page's API: objects with a number and its text."""

    current: float | str | None = sometimes("currentPrice.price")
    currency: str | None = sometimes("currentPrice.currencyUnit")
    low: float | str | None = sometimes("priceRange.minPrice")
    high: float | str | None = sometimes("priceRange.maxPrice")

    def read(self) -> Price:
        """Return the price."""
        return Price(amount(self.current), amount(self.low), amount(self.high), self.currency or "")


# Rows


class Badge(Contract):
    """A flag ("Best seller") or a tag on a product."""

    key: str | None = always("key")
    text: str | None = always("text")
    kind: str | None = often("type")


class BadgePart(Contract):
    """A text or an icon in a badge."""

    kind: str | None = always("type")
    value: str | None = always("value")
    description: str | None = always("contDesc")
    """The text alternative of an icon."""


class BadgeMember(Contract):
    """A badge in a group."""

    parts: list[BadgePart] = always("content[]")


class BadgeGroup(Contract):
    """The badges at one place on a product's tile."""

    name: str | None = always("name")
    members: list[BadgeMember] = always("members[]")


class Variant(Contract):
    """A variant, or the ``sponsoredProduct`` of an advertised product. Only the number of these objects is used."""


class Criterion(Contract):
    """A property by which the variants of a product differ, such as the size."""

    variants: list[Variant] = sometimes("variantList[]")


class Row(Contract):
    """The values that products in pages and in responses from the page's API have in common."""

    item_id: NonEmpty | int = identity("usItemId")
    name: NonEmpty = identity("name")
    product_id: str | int | None = always("id", often=True)
    offer_id: str | None = always("offerId", often=True)
    url: str | None = always("canonicalUrl", often=True)
    rating: float | None = always("averageRating")
    reviews: int | float | str | None = always("numberOfReviews")
    status: str | None = always("availabilityStatusV2.value", often=True)
    status_text: str | None = always("availabilityStatusV2.display", often=True)
    fulfillment_type: str | None = always("fulfillmentType")
    thumbnail: str | None = always("imageInfo.thumbnailUrl")
    seller_id: str | int | None = always("sellerId", often=True)
    seller_name: str | None = always("sellerName", often=True)
    kind: str | None = always("type", often=True)
    criteria: list[Criterion] = always("variantCriteria[]")
    sponsored: Variant | None = sometimes("sponsoredProduct")
    variant_count: int | None = sometimes("variantCount")


class RenderedRow(Row, tag=PRODUCT):
    """A product on a page."""

    image: str | None = always("image", often=True)
    is_sponsored: bool | None = always("isSponsoredFlag", often=True)
    is_preowned: bool | None = always("isPreowned", often=True)
    condition: int | None = sometimes("conditionV2.code")
    short_description: str | None = always("shortDescription")
    category_path: str | None = always("category.categoryPathId", often=True)
    flag: str | None = always("flag")
    flags: list[Badge] = always("badges.flags[]")
    tags: list[Badge] = always("badges.tags[]")
    groups: list[BadgeGroup] = always("badges.groupsV2[]")
    variants: list[Variant] = always("variantList[]")
    price: RenderedPrice | None = always("priceInfo", often=True)


class ApiRow(Row, tag=PRODUCT):
    """A product in a response from the page's API. Two responses of 2022 with 60 rows are recorded."""

    image: str | None = sometimes("image")
    is_sponsored: bool | None = sometimes("isSponsoredFlag")
    is_preowned: bool | None = sometimes("isPreowned")
    condition: int | None = sometimes("conditionV2.code")
    short_description: str | None = sometimes("shortDescription")
    category_path: str | None = sometimes("category.categoryPathId")
    flag: str | None = sometimes("flag")
    flags: list[Badge] = sometimes("badges.flags[]", "unifiedBadge.flags[]")
    tags: list[Badge] = sometimes("badges.tags[]", "unifiedBadge.tags[]")
    groups: list[BadgeGroup] = sometimes("badges.groupsV2[]", "unifiedBadge.groupsV2[]")
    variants: list[Variant] = sometimes("variantList[]")
    price: ApiPrice | None = always("priceInfo", often=True)


class AdPlaceholder(Contract, tag=("__typename", "AdPlaceholder")):
    """A placeholder for an advertisement, which the page loads later."""


class TakeOverPlaceholder(Contract, tag=("__typename", "TileTakeOverProductPlaceholder")):
    """Another placeholder for an advertisement."""


class PrismTakeOverPlaceholder(Contract, tag=("__typename", "PrismTileTakeOverProductPlaceholder")):
    """Another placeholder for an advertisement, named in the query of the page's API but not recorded."""


class MarqueePlaceholder(Contract, tag=("__typename", "MarqueePlaceholder")):
    """Another placeholder for an advertisement, named in the query of the page's API but not recorded."""


class NavigationPlaceholder(Contract, tag=("__typename", "InlineCategoryNavigationPlaceholder")):
    """A placeholder for links to categories, named in the query of the page's API but not recorded."""


class CarouselPlaceholder(Contract, tag=("__typename", "ESSCarouselPlaceholder")):
    """A placeholder for a carousel of products, named in the query of the page's API but not recorded."""


Placeholder = (
    AdPlaceholder
    | TakeOverPlaceholder
    | PrismTakeOverPlaceholder
    | MarqueePlaceholder
    | NavigationPlaceholder
    | CarouselPlaceholder
)
"""The known rows that are not products. Any row of another type is unread."""


class Stack(Contract):
    """A group of rows: the grid of the listing, or a carousel between its rows."""

    layout: str | None = always("meta.layoutEnum")
    kind: str | None = sometimes("meta.subType")
    title: str | None = sometimes("meta.title")
    total: int | None = sometimes("meta.totalItemCount")


class RenderedStack(Stack):
    """A group of rows on a page."""

    rows: list[RenderedRow | Placeholder] = always("items[]")


class ApiStack(Stack):
    """A group of rows in a response from the page's API."""

    rows: list[ApiRow | Placeholder] = always("itemsV2[]", "items[]")


# Listings


class Crumb(Contract):
    """A category above the listing's category."""

    id: str | int | None = sometimes("id")
    name: str | None = sometimes("name")
    url: str | None = sometimes("url")


class MatchedStack(Contract):
    """The index of a stack, and whether the stack belongs to the listing itself (not to a carousel)."""

    is_primary: bool | None = always("isPrimaryStack")
    index: int | None = always("matchIndex")


class ReportedError(Contract):
    """An error that the platform reports in the data."""

    kind: str | None = sometimes("errorType")


class Seo(Contract):
    """The title, heading, canonical URL and breadcrumbs of a page."""

    title: str | None = sometimes("metaTitle")
    heading: str | None = sometimes("h1")
    url: str | None = sometimes("metaCanon")
    crumbs: list[Crumb] = sometimes("breadCrumb[]")


class FacetValue(Contract):
    """A choice of a filter, such as a sub-category."""

    id: str | int | None = always("id")
    name: str | None = always("name")


class Facet(Contract):
    """A filter of the listing."""

    kind: str | None = always("type")
    low: float | None = always("min")
    high: float | None = always("max")
    selected_low: float | None = sometimes("selectedMin")
    """The lower limit of the price filter that the platform applied, in dollars. Null in all captures, which were
    requested without a price filter."""
    selected_high: float | None = sometimes("selectedMax")
    values: list[FacetValue] = always("values[]")


class Listing(Contract):
    """The common values of a listing in all formats: its title, categories and number of pages, and the params."""

    title: str | None = sometimes("title")
    page: int | str | None = always("paginationV2.pageProperties.page")
    sort: str | None = always("paginationV2.pageProperties.sort")
    cat_id: str | int | None = always("paginationV2.pageProperties.cat_id")
    query: str | None = sometimes("paginationV2.pageProperties.query")
    corrected: str | None = sometimes("spelling.correctedTerm")
    """The words for which the platform searched in place of misspelt words."""
    max_page: int | float | str | None = always("paginationV2.maxPage")
    matched: list[MatchedStack] = sometimes("paginationV2.pageProperties.primaryStacksToMatch[]")
    errors: list[ReportedError] = always("errorResponse.errors[]")
    error_codes: list[str | int] = sometimes("errorResponse.errorCodes[]")
    crumbs: list[Crumb] = sometimes("breadCrumb[]")
    info_id: str | int | None = sometimes("catInfo.catId")
    info_name: str | None = sometimes("catInfo.name")
    context_id: str | int | None = sometimes("requestContext.categories.id")
    context_name: str | None = sometimes("requestContext.categories.name")
    canonical: str | None = sometimes("pageMetadata.canonical")


class RenderedListing(Listing):
    """The listing on a page."""

    total: int | float | str | None = always("aggregatedCount")
    stacks: list[RenderedStack] = always("itemStacks[]")


class ApiListing(Listing):
    """The listing in a response from the API. In the API's responses to the app, only the stack states the total."""

    total: int | float | str | None = sometimes("aggregatedCount")
    stacks: list[ApiStack] = always("itemStacks[]")


# The documents that contain a listing


class Other(Contract):
    """The data of a page that is not a listing: a product page or an editorial page."""


class InitialData(Contract):
    """The data of a page."""

    listing: RenderedListing | None = always("searchResult")
    seo: Seo | None = sometimes("seoBrowseMetaData", "contentLayout.seoBrowseMetaData")
    facets: list[Facet] = sometimes("contentLayout.modules[].configs.allSortAndFilterFacets[]")
    product: Other | None = sometimes("data")


class RenderedPage(Contract):
    """The data block of a page."""

    route: str | None = sometimes("page")
    data: InitialData | None = sometimes("props.pageProps.initialData")


class ApiData(Contract):
    """The data in a response from the page's API."""

    listing: ApiListing | None = sometimes("search.searchResult")
    seo: Seo | None = sometimes("seoBrowseMetaData")
    facets: list[Facet] = sometimes("contentLayout.modules[].configs.allSortAndFilterFacets[]")


class ApiAnswer(Contract):
    """A response from the page's API."""

    data: ApiData | None = sometimes("data")


class SavedListing(Contract):
    """A listing that was saved without its page."""

    listing: RenderedListing | None = sometimes("searchResult")


class SavedRows(Contract):
    """Rows that were saved without their page. The reader wraps them under a key of this project."""

    stacks: list[RenderedStack] = always("stacks[]")
