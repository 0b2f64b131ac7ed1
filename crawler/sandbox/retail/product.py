"""A product of the simulated shop."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Product:
    """A product of the shop, from which both its rows in pages and its expected records are built."""

    number: int
    item_id: str
    product_id: str
    offer_id: str
    name: str
    category: str
    cents: int | None
    low: int | None
    high: int | None
    status: str
    condition: int | None
    preowned: bool
    stars: float | None
    reviews: int | None
    seller: tuple[str, str]
    fulfillment: str
    flag: str
    icon: bool
    description: str
    variants: int | None
    """The number of variants that the row lists, or None if the row has variants but does not list them."""

    @property
    def note(self) -> str:
        """Return the text of a badge that is neither a flag nor about delivery, "" for most products."""
        return "" if self.number % 6 else "Half of it is recycled"

    @property
    def path(self) -> str:
        """Return the path of the product's page."""
        slug = "".join(c if c.isalnum() and c.isascii() else "-" for c in self.name).strip("-")
        return f"/ip/{slug}/{self.item_id}"

    @property
    def image(self) -> str:
        """Return the URL of the product's image, in its full size."""
        return f"https://i5.walmartimages.com/seo/{self.product_id}.jpeg"
