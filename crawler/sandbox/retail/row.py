"""The rows of the simulated shop's listings, with all keys of real rows, and prices in one of two formats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crawler.sandbox.skeletons import ABSENT, Skeletons

if TYPE_CHECKING:
    from crawler.sandbox.retail.product import Product

fill = Skeletons(__file__)

SMALL = "?odnHeight=180&odnWidth=180&odnBg=FFFFFF"
"""The query of images in advertisements."""
DISPLAYS = {"IN_STOCK": "In stock", "OUT_OF_STOCK": "Out of stock", "UNKNOWN": ""}


def row_of(product: Product, layout: str, *, sponsored: bool) -> dict[str, Any]:
    """Build a row. ``layout``: ``A`` (price lines and groups of badges, as in 2026) or ``B`` (flat texts and tags)."""
    beacon = f"{product.number:x}"
    seller, seller_name = product.seller
    display = DISPLAYS[product.status]
    return fill(
        "row",
        product=product,
        size=SMALL if sponsored else "",
        kind="VARIANT" if product.variants is None or product.variants else "REGULAR",
        description=product.description or None,
        offers=product.number % 4,
        beacon=beacon * 8,
        badge_number=1100 + product.number % 90,
        condition=None if product.condition is None else {"code": product.condition, "groupCode": 1},
        category=product.category.replace("_", ":"),
        badge=_badge(product, bundle=""),
        badges=_badges(product, layout),
        seller=seller,
        seller_name=seller_name,
        display=display,
        display_or_null=display or None,
        aisle=product.number % 30,
        offer=product.offer_id or None,
        prices={"A": _lines, "B": _flat}[layout](product),
        fulfillment=product.fulfillment or None,
        advertisement=fill("advertisement", product=product, beacon=beacon * 24) if sponsored else None,
        priced=product.cents is not None,
        sold_out=product.status == "OUT_OF_STOCK",
        price=0 if layout == "A" or product.cents is None else product.cents / 100,
        # For a product without a rating, real pages contain 0 here. The record must contain null.
        stars=product.stars or 0,
        reviews=product.reviews or 0,
        variants=[{"name": f"Option {n}"} for n in range(product.variants or 0)],
        sponsored=sponsored,
        place=product.number % 50,
    )


def _badges(product: Product, layout: str) -> dict[str, Any]:
    """Build the badges: since August 2026 (``A``), the flags are also in groups with all other badges, else in tags."""
    kind, skeleton = ("badge", "badges") if layout == "A" else ("tag", "older badges")
    return fill(
        skeleton,
        flags=[_badge(product, bundle=ABSENT)] if product.flag else None,
        note=fill(f"note {kind}", product=product) if product.note else ABSENT,
        icon=fill(f"icon {kind}") if product.icon else ABSENT,
        flag=fill("flag badge", product=product) if product.flag else ABSENT,
    )


def _badge(product: Product, bundle: str) -> dict[str, Any]:
    return fill("badge", product=product, key=product.flag.upper().replace(" ", "_"), bundle=bundle)


def no_prices() -> dict[str, Any]:
    """Build the price object of a row without a price."""
    return fill("no prices")


def _money(cents: int) -> str:
    return f"${cents / 100:,.2f}"


def _lines(product: Product) -> dict[str, Any]:
    lines = []
    if product.cents is not None:
        kind = "DISCOUNTED_PRICE" if product.number % 5 == 0 else "CURRENT_PRICE"
        lines.append(_line(kind, PRICE=product.cents))
        lines.append(_line("COMPARISON", WAS_PRICE=product.cents * 2))
        lines.append({"lineType": "UNIT_PRICE", "values": [{"key": "UNIT_PRICE", "value": "13.7 ¢/count"}]})
    if product.low is not None and product.high is not None:
        lines.append(_line("OPTIONS_RANGE", LOW_PRICE=product.low, HIGH_PRICE=product.high))
    elif product.low is not None:
        lines.append(_line("OPTIONS", LOW_PRICE=product.low))
    return {**no_prices(), "priceDetails": {"currency": "USD", "priceLines": lines}}


def _line(kind: str, **cents: int) -> dict[str, Any]:
    return {"lineType": kind, "values": [{"key": key, "value": f"{value / 100:.2f}"} for key, value in cents.items()]}


def _flat(product: Product) -> dict[str, Any]:
    price = no_prices()
    if product.cents is None:
        return price
    price["linePrice"] = _money(product.cents)
    price["linePriceDisplay"] = f"Now {_money(product.cents)}"
    price["itemPrice"] = price["wasPrice"] = _money(product.cents * 2)
    price["shipPrice"] = _money(599)
    price["unitPrice"] = "13.7 ¢/count"
    if product.low is not None and product.high is not None:
        price["priceRangeString"] = f"Options from {_money(product.low)} – {_money(product.high)}"
    elif product.low is not None:
        price["priceRangeString"] = f"More options from {_money(product.low)}"
    return price
