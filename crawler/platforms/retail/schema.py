"""Retail: the scrapers' params, and the listings that they return (specification 2.7)."""

from __future__ import annotations

from typing import Annotated, ClassVar, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from crawler.platforms.links import WORDS
from crawler.platforms.model import LinkParams, Mark, Model, Selects, refuse_link
from crawler.platforms.retail import urls
from crawler.platforms.retail.urls import DEFAULT_SORT, Sort


def _in_cents(amount: float | None) -> float | None:
    if amount is not None and round(amount, 2) != amount:
        raise ValueError(f"expected at most two decimals, not {amount}")
    return amount


# Not multiple_of=0.01: validators of JSON schemas would refuse 19.99, which is no exact multiple as a float.
Amount = Annotated[
    float | None,
    Field(ge=0, le=10_000_000, allow_inf_nan=False),
    AfterValidator(_in_cents),
    Selects("rows"),
]


class _ListingParams(LinkParams):
    """The params that the category scraper and the search scraper have in common."""

    links: ClassVar = urls.LINKS

    page: Annotated[int, Selects("echo")] = Field(default=1, ge=1, le=10_000)
    """Number of the page, from 1. A page after the last one has no products; it is not an error."""
    sort: Annotated[Sort, Selects("echo")] = DEFAULT_SORT
    """Sort order of the products."""
    min_price: Amount = None
    """Lowest price in dollars and cents, inclusive. The platform then omits products without a price. If the prices of
    a page contradict the limit, the target fails (``filter_ignored``)."""
    max_price: Amount = None
    """Highest price in dollars and cents, inclusive."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.min_price is not None and self.max_price is not None and self.min_price > self.max_price:
            raise ValueError(f"min_price must not be above max_price: {self.min_price:g} > {self.max_price:g}")
        return self


class CategoryParams(_ListingParams):
    """Params that name a category by its id or by the URL of its page."""

    kinds: ClassVar = ("category",)
    exactly_one_of: ClassVar = ("cat_id", "url")
    _no_link = field_validator("cat_id", mode="before")(refuse_link)

    cat_id: Annotated[Annotated[str, urls.CATEGORY_ID] | None, Selects("echo")] = None
    """Category id: numbers joined by underscores, the broadest first. A shorter id is a broader listing."""
    url: Annotated[str | None, Selects("echo")] = Field(default=None, max_length=2_000)
    """URL of a category page, also without ``https://``. The id at its end is used, and ``page``, ``sort``,
    ``min_price`` and ``max_price`` in it, unless these params are given."""

    @property
    def category(self) -> str:
        """The category's id, from ``cat_id`` or ``url``."""
        return self.own()


class SearchParams(_ListingParams):
    """Params of a search, given by its words or by the URL of the page with the results."""

    kinds: ClassVar = ("search",)
    exactly_one_of: ClassVar = ("query", "url")
    phrases: ClassVar = frozenset({"query"})
    _no_link = field_validator("query", mode="before")(refuse_link)

    query: Annotated[Annotated[str, Field(max_length=200), WORDS] | None, Selects("echo")] = Field(
        default=None, min_length=1
    )
    """Words to search for."""
    url: Annotated[str | None, Selects("echo")] = Field(default=None, max_length=2_000)
    """URL of a search's results, also without ``https://``. The words in it are used, and ``page``, ``sort``,
    ``min_price`` and ``max_price``, unless these params are given."""

    @property
    def words(self) -> str:
        """The words, from ``query`` or ``url``."""
        return self.own()


class Breadcrumb(Model):
    """A category above the listing's category."""

    id: str
    """Category id, "" if absent."""
    name: str
    """Name of the category."""
    url: str
    """Absolute URL of this category's page."""


class Availability(Model):
    """Whether the product can be bought."""

    display: str
    """The platform's text ("In stock"), "" if absent."""
    in_stock: bool | None
    """True for IN_STOCK, false for OUT_OF_STOCK, null for any other status, such as PRE_ORDER or UNKNOWN."""
    status: str
    """The platform's status, such as IN_STOCK, OUT_OF_STOCK, PRE_ORDER or UNKNOWN; "" if absent."""


class Price(Model):
    """The price in the listing, for the store that the platform chooses for the visitor, usually its default store.
    Never 0: missing is null.
    """

    currency: str
    """ISO 4217 code, "" without a price."""
    current_price: Annotated[float | None, Mark.NULL]
    """The current price; null if the page shows none, because the offer no longer exists."""
    is_price_range: bool
    """True if the page shows a range of prices, or a lowest price ("From $159.00"), also if it is the current price."""
    min_price: Annotated[float | None, Mark.NULL]
    """The lowest price of a range, else the current price; null without a price."""
    max_price: float = Field(default=0.0)
    """The highest price of a range. Optional: absent if the platform does not show it."""


class Rating(Model):
    """The buyers' rating."""

    average: float | None
    """Average rating, up to 5. Null for a product without ratings, for which the platform states 0."""
    review_count: Annotated[int | None, Mark.COUNT]
    """Number of reviews, null if absent."""


class Seller(Model):
    """The seller of the product."""

    id: str
    """The seller's id; "" if the row has no offer."""
    name: str
    """The seller's name; "" if the row has no offer."""


class Product(Model):
    """A row in the listing. If a product is repeated as an advertisement, the repetition is a separate row."""

    availability: Availability
    badges: list[str] = Field(default_factory=list)
    """Texts of the row's flags, tags and other badges, except for delivery ("Best seller", "Save with Walmart plus").
    Optional: absent if empty."""
    category_path: str
    """Ids of the product's categories, the broadest first, joined by "/". Joined by "_" they are a category id.
    "" if absent."""
    condition: int | None
    """The platform's code: 1 new, 4 and 5 restored, 11 pre-owned; null if absent."""
    flag: str = ""
    """The row's main label ("Best seller"). Optional: absent if the row has no label."""
    fulfillment_type: str
    """STORE, FC or MARKETPLACE; "" if the row has no offer."""
    image: str
    """URL of the product's image in full size, "" if absent."""
    is_preowned: bool | None
    """Whether the product is pre-owned or restored; null if unknown."""
    is_sponsored: Annotated[bool, Mark.ADVERTISED]
    """Whether the row is an advertisement."""
    item_id: Annotated[str, Mark.KEY] = Field(min_length=1)
    """The item's number in the shop's URLs, as text because it may have leading zeros. Never empty."""
    name: str = Field(min_length=1)
    """The product's name. Never empty."""
    offer_id: str
    """Id of the displayed offer; "" if the row has no offer."""
    price: Price
    product_id: str
    """The platform's own id of the product."""
    rating: Rating
    seller: Seller
    short_description: str
    """Description, often with HTML list items; "" if absent or "None"."""
    url: str
    """Absolute URL of the product's page, without tracking."""
    variant_count: int | None
    """Number of variants in the row. Null if the row does not list its variants, or does not state that it has none."""


class Listing(Model):
    """A page of a category."""

    breadcrumbs: list[Breadcrumb]
    """The categories above this category, the broadest first."""
    cat_id: str = Field(min_length=1)
    """The category's id. Never empty."""
    category_id: str
    """Same as ``cat_id``."""
    category_name: str
    """The category's name; "" if absent, and for search results."""
    has_more: Annotated[bool, Mark.NEVER]
    """Whether the next page may contain products. The value may be true although the next page is empty, because the
    platform serves fewer pages than ``max_page``."""
    heading: str
    """The page's heading."""
    max_page: Annotated[int | None, Mark.NEVER]
    """Number of pages that the platform states, null if absent. Unreliable: the platform serves fewer pages."""
    page: Annotated[int, Mark.NEVER] = Field(ge=1)
    """Number of this page."""
    products: list[Product]
    """The rows of the page, in page order. Empty on a page after the last one."""
    returned: Annotated[int, Mark.NEVER]
    """Number of rows in ``products``."""
    sort: str
    """The sort order according to the platform."""
    title: str
    """The page's title."""
    total_results: Annotated[int | None, Mark.COUNT]
    """Number of products that the platform reports, null if absent. Unreliable: fewer products are served."""
    url: str
    """The listing's own URL, with the category id but without category names."""


class SearchListing(Listing):
    """A page of search results. ``breadcrumbs`` is empty. ``cat_id`` and ``category_id`` are "0", as the platform sends
    them.
    """

    query: str
    """The words that were searched for."""
