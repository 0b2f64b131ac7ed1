"""Retail: the contract of a page's data (``__NEXT_DATA__``).

The kinds of values (``always``, ``sometimes`` ...) were counted over recorded rows and pages since 2024-12
(``tests/contracts``). Recorded rows of 2022 lack some of the keys, but the platform no longer sends such rows. All
whole recorded pages are searches, so values that a category page may lack are ``sometimes``.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from crawler.reading.contract import Contract, NonEmpty, always, filled, identity, often, sometimes
from crawler.reading.values import PRICE_TEXT

PRODUCT = ("__typename", "Product")


# Prices: see product.py

PriceText = Annotated[str, msgspec.Meta(pattern=rf"\A(?:{PRICE_TEXT})?\Z")]
"""The type of a text with a price. Any other text is reported as a value of a wrong type."""


class PriceValue(Contract, nulls=False):
    """An amount in a price line."""

    key: str | None = filled("key")
    amount: str | int | float | None = filled("value")


class PriceLine(Contract, nulls=False):
    """A price line, a format used since July 2026: the current price, or the price range of the options."""

    kind: str | None = filled("lineType")
    values: list[PriceValue] = filled("values[]")


class PriceDetails(Contract, nulls=False):
    """The price lines of a row."""

    currency: str | None = sometimes("currency")
    lines: list[PriceLine] = always("priceLines[]")


class RowPrice(Contract, nulls=False):
    """The price of a row. Since July 2026, some rows have price lines, and their older keys are "" or 0.

    ``itemPrice`` is not read, because it is the struck-through price. The row's ``price`` is not read, because it may
    be truncated.
    """

    details: PriceDetails | None = sometimes("priceDetails")
    line_price: PriceText | None = always("linePrice")
    line_price_display: PriceText | None = always("linePriceDisplay")
    range: PriceText | None = always("priceRangeString")


# Rows


class Badge(Contract, nulls=False):
    """A flag ("Best seller") or a tag on a product."""

    key: str | None = filled("key")
    text: str | None = filled("text")
    kind: str | None = often("type")


class BadgePart(Contract):
    """A text or an icon in a badge."""

    kind: str | None = filled("type")
    value: str | None = always("value")
    description: str | None = always("contDesc")
    """The text alternative of an icon."""


class BadgeMember(Contract, nulls=False):
    """A badge in a group."""

    parts: list[BadgePart] = filled("content[]")


class BadgeGroup(Contract, nulls=False):
    """The badges at one place on a product's tile."""

    name: str | None = filled("name")
    members: list[BadgeMember] = filled("members[]")


class Variant(Contract):
    """A variant, or the ``sponsoredProduct`` of an advertised product. Only the number of these objects is used."""


class Criterion(Contract, nulls=False):
    """A property by which the variants of a product differ, such as the size."""

    variants: list[Variant] = often("variantList[]")


class Row(Contract, tag=PRODUCT):
    """A product in a listing."""

    item_id: NonEmpty | int = identity("usItemId")
    name: NonEmpty = identity("name")
    product_id: str | int | None = filled("id")
    offer_id: str | None = always("offerId", often=True)
    url: str | None = always("canonicalUrl", often=True)
    rating: float | None = always("averageRating")
    reviews: int | float | str | None = always("numberOfReviews")
    status: str | None = always("availabilityStatusV2.value", often=True)
    status_text: str | None = always("availabilityStatusV2.display", often=True)
    shown_status: str | None = always("availabilityStatusDisplayValue", nulls=False)
    """The same as ``status_text``: whether that was lost can be seen here."""
    fulfillment_type: str | None = always("fulfillmentType")
    thumbnail: str | None = always("imageInfo.thumbnailUrl", nulls=False)
    seller_id: str | int | None = filled("sellerId")
    seller_name: str | None = filled("sellerName")
    kind: str | None = filled("type")
    criteria: list[Criterion] = always("variantCriteria[]", nulls=False)
    sponsored: Variant | None = sometimes("sponsoredProduct")
    variant_count: int | None = sometimes("variantCount")
    image: str | None = always("image", often=True)
    is_sponsored: bool | None = filled("isSponsoredFlag")
    is_preowned: bool | None = filled("isPreowned")
    condition: int | None = sometimes("conditionV2.code")
    short_description: str | None = always("shortDescription")
    description: str | None = always("description", nulls=False)
    """The same as ``short_description``, with "" in place of null."""
    category_path: str | None = always("category.categoryPathId", often=True)
    flag: str | None = always("flag", nulls=False)
    flags: list[Badge] = always("badges.flags[]")
    tags: list[Badge] = always("badges.tags[]", nulls=False)
    groups: list[BadgeGroup] = always("badges.groupsV2[]")
    variants: list[Variant] = always("variantList[]", nulls=False)
    price: RowPrice | None = filled("priceInfo")


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

    layout: str | None = always("meta.layoutEnum", nulls=False)
    kind: str | None = sometimes("meta.subType")
    title: str | None = sometimes("meta.title")
    total: int | None = sometimes("meta.totalItemCount")
    rows: list[Row | Placeholder] = filled("items[]")


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
    """An entry of the list of errors in the page's data."""

    kind: str | None = sometimes("errorType")


class Seo(Contract):
    """The title, heading, canonical URL and breadcrumbs of a page."""

    title: str | None = sometimes("metaTitle")
    heading: str | None = sometimes("h1")
    url: str | None = sometimes("metaCanon")
    crumbs: list[Crumb] = sometimes("breadCrumb[]")


class FacetValue(Contract, nulls=False):
    """A choice of a filter, such as a sub-category."""

    id: str | int | None = filled("id")
    name: str | None = filled("name")
    is_selected: bool | None = sometimes("isSelected", nulls=True)


class Facet(Contract):
    """A filter of the listing."""

    kind: str | None = filled("type")
    low: float | None = always("min")
    high: float | None = always("max")
    selected_low: float | None = sometimes("selectedMin")
    """The lower limit of the price filter that the platform applied, in dollars. Null in all captures, which were
    requested without a price filter."""
    selected_high: float | None = sometimes("selectedMax")
    values: list[FacetValue] = always("values[]")


class Listing(Contract):
    """A listing: its title, categories, totals and rows, and the params that the platform has applied."""

    title: str | None = sometimes("title")
    page: int | str | None = always("paginationV2.pageProperties.page")
    sort: str | None = always("paginationV2.pageProperties.sort")
    cat_id: str | int | None = always("paginationV2.pageProperties.cat_id")
    query: str | None = sometimes("paginationV2.pageProperties.query")
    facet: str | None = sometimes("paginationV2.pageProperties.facet")
    """The filters of the listing, such as ``fulfillment_method:Shipping``. Requests of this project have none."""
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
    redirect: str | None = sometimes("searchRedirect.redirectUrl")
    """The page to which the platform sends the visitor instead of results. Null in all captures."""
    total: int | float | str | None = always("aggregatedCount")
    stacks: list[Stack] = always("itemStacks[]")


# The page


class Other(Contract):
    """The data of a page that is not a listing: a product page or an editorial page."""


class InitialData(Contract):
    """The data of a page."""

    listing: Listing | None = always("searchResult")
    seo: Seo | None = sometimes("seoBrowseMetaData", "contentLayout.seoBrowseMetaData")
    facets: list[Facet] = sometimes("contentLayout.modules[].configs.allSortAndFilterFacets[]")
    product: Other | None = sometimes("data")


class DataBlock(Contract):
    """The data block of a page."""

    route: str | None = sometimes("page")
    data: InitialData | None = sometimes("props.pageProps.initialData")
