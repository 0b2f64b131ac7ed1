"""Retail: what its scrapers take, and the listing that they give (specification 2.7)."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar, Literal, Self, get_args

from pydantic import ConfigDict, Field, field_validator, model_validator

from crawler.platforms.links import split_link
from crawler.platforms.model import Entity, Model, Params
from crawler.platforms.retail import PLATFORM

CATEGORY_ID = r"^[0-9]{1,20}(_[0-9]{1,20}){0,9}$"
HOSTS = frozenset({f"www.{PLATFORM.domain}", PLATFORM.domain})
# Names before the id do not matter, unless a server could read another path out of them: dots, slashes, backslashes.
_NAME = r"(?!\.{1,2}/)(?:[^/\\%]|%(?!2[eEfF]|5[cC]|00)[0-9a-fA-F]{2})+/"
CATEGORY_PATH = re.compile(rf"/(?:browse/(?:{_NAME})*|cp/(?:{_NAME})?)(?P<id>{CATEGORY_ID[1:-1]})/?")

Sort = Literal["best_match", "best_seller", "price_low", "price_high", "rating_high", "new"]
SORTS: tuple[Sort, ...] = get_args(Sort)
"""The platform's words for the order of a listing, its own default first."""
DEFAULT_SORT: Sort = SORTS[0]
Amount = Annotated[float | None, Field(ge=0, le=10_000_000, allow_inf_nan=False)]


def category_of_url(url: str) -> str:
    """The category id of a category page's URL: its last path segment. All else of the URL is thrown away.

    >>> category_of_url("https://www.walmart.com/browse/food/condiments/976759_976783?povid=x")
    '976759_976783'

    Raises:
        ValueError: any other host or kind of page.
    """
    expected = f"expected a category page of {' or '.join(sorted(HOSTS))}: /browse/<names>/<id> or /cp/<name>/<id>"
    host, path = split_link(url, expected)
    category = CATEGORY_PATH.fullmatch(path)
    if host not in HOSTS or not category:
        raise ValueError(expected)
    return category["id"]


class _ListingParams(Params):
    """What both scrapers take."""

    page: int = Field(default=1, ge=1, le=10_000)
    """Page of the listing, from 1. A page past the end is empty, and no error."""
    sort: Sort = DEFAULT_SORT
    """Order of the products, as the platform names it."""
    min_price: Amount = None
    """Lowest price in dollars, inclusive. Products without a price are left out by the platform."""
    max_price: Amount = None
    """Highest price in dollars, inclusive."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.min_price is not None and self.max_price is not None and self.min_price > self.max_price:
            raise ValueError("min_price must not be above max_price")
        return self


class CategoryParams(_ListingParams):
    """A category, by its id or by the URL of its page: exactly one of them."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": ["cat_id"]}, {"required": ["url"]}]})

    cat_id: str | None = Field(default=None, pattern=CATEGORY_ID)
    """Category id: numbers joined by underscores, the broadest first. A shorter id is a broader listing."""
    url: str | None = Field(default=None, max_length=2_000, json_schema_extra={"format": "uri"})
    """URL of a category page. Only the id at its end counts; it gives the same listing as that id."""

    @field_validator("url")
    @classmethod
    def _is_category(cls, url: str) -> str:
        category_of_url(url)
        return url

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if (self.cat_id is None) == (self.url is None):
            raise ValueError("give exactly one of cat_id and url")
        return self

    @property
    def category(self) -> str:
        """The category's id, however it was given."""
        return self.cat_id or category_of_url(self.url or "")


class SearchParams(_ListingParams):
    """A search by words."""

    query: str = Field(min_length=1, max_length=200, pattern=r"\S")
    """What to search for."""


class Breadcrumb(Model):
    """A level above the category."""

    id: str
    """Category id, "" where the platform gives none."""
    name: str
    """Name of the level."""
    url: str
    """Absolute URL of its page."""


class Availability(Model):
    """Whether the product can be bought."""

    display: str
    """The platform's text ("In stock"), "" where it gives none."""
    in_stock: bool | None
    """True where the status is IN_STOCK, null where it is UNKNOWN or absent."""
    status: str
    """IN_STOCK, OUT_OF_STOCK or UNKNOWN; "" where absent."""


class Price(Model):
    """The price, as far as the listing states it. Never 0 for a price that is not stated."""

    currency: str
    """ISO 4217 code, "" where there is no price."""
    current_price: float | None
    """What it costs now; null where the page states no price (the offer is gone)."""
    is_price_range: bool
    """True where variants cost differently: a higher maximum, options from a lower price, or only a lowest one."""
    min_price: float | None
    """The lowest price of a range, else the current price; null where no price is stated."""
    max_price: float = Field(default=0.0)
    """The highest price of a range. Optional: only where the platform states it."""


class Rating(Model):
    """What buyers think."""

    average: float | None
    """1 to 5; null where nobody has rated it, although the platform fills in 0."""
    review_count: int | None
    """Number of reviews; null where the platform gives none."""


class Seller(Model):
    """Who sells it."""

    id: str
    """The seller's id, "" where there is no offer."""
    name: str
    """The seller's name, "" where there is no offer."""


class Product(Model):
    """A row of the listing, as served: sponsored repeats are rows too."""

    entity: ClassVar[Entity] = Entity(
        "products",
        key=("item_id",),
        history=("price.current_price", "price.min_price", "price.max_price", "rating.average", "rating.review_count"),
        placement=("is_sponsored",),
    )

    availability: Availability
    badges: list[str] = Field(default_factory=list)
    """Texts of the row's flags and tags; the key of a tag that is an icon. Optional: absent where it has none."""
    category_path: str
    """Ids of the levels, the broadest first, joined by "/"; joined by "_" they are a category id. "" where not told."""
    condition: int | None
    """The platform's code: 1 new, 4 and 5 restored, 11 pre-owned; null where the row has none."""
    flag: str = ""
    """The row's main label ("Best seller"). Optional: absent where it has none."""
    fulfillment_type: str
    """STORE, FC or MARKETPLACE; "" where there is no offer."""
    image: str
    """URL of the product's image."""
    is_preowned: bool | None
    """Pre-owned or restored; null where the row does not tell."""
    is_sponsored: bool
    """Whether the row is an advertisement."""
    item_id: str = Field(min_length=1)
    """The item's number in the shop's URLs. Text: it may have leading zeros. Never empty."""
    name: str = Field(min_length=1)
    """The product's name. Never empty."""
    offer_id: str
    """Id of the offer that is shown, "" where there is none."""
    price: Price
    product_id: str
    """The platform's own id of the product."""
    rating: Rating
    seller: Seller
    short_description: str
    """As served, often with HTML list items; "" where there is none."""
    url: str
    """Absolute URL of the product's page, without tracking."""
    variant_count: int | None
    """How many variants the row lists; null where it says it has variants but lists none."""


class Listing(Model):
    """A page of a category."""

    entity: ClassVar[Entity] = Entity("listings", history=("total_results",))

    breadcrumbs: list[Breadcrumb]
    """The levels above the category, the broadest first."""
    cat_id: str = Field(min_length=1)
    """The category's id. Never empty."""
    category_id: str
    """The same."""
    category_name: str
    """The category's name, "" where the page does not tell."""
    has_more: bool
    """Whether a further page can hold products."""
    heading: str
    """The page's heading."""
    max_page: int | None
    """The last page that the platform names; it serves fewer (specification, section 8)."""
    page: int = Field(ge=1)
    """This page."""
    products: list[Product]
    """The rows of the page, in its order. Empty past the end."""
    returned: int
    """How many rows there are."""
    sort: str
    """The order that the platform says it used."""
    title: str
    """The page's title."""
    total_results: int | None
    """How many products the platform reports; null where it does not."""
    url: str
    """The listing's own URL, with the bare id."""


class SearchListing(Listing):
    """A page of search results: what makes no sense for it is empty, and ``cat_id`` is "0", as the platform says."""

    query: str
    """What was searched for."""
