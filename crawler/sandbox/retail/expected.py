"""The expected records of the simulated shop's products: by hand, once for all rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crawler.sandbox.retail.page import PUBLIC
from crawler.sandbox.skeletons import ABSENT, Skeletons

if TYPE_CHECKING:
    from crawler.sandbox.retail.shop import Row

fill = Skeletons(__file__)


def product(row: Row) -> dict[str, Any]:
    """Build the expected record of a product from its row."""
    p = row.product
    low = p.cents if p.low is None else p.low
    return fill(
        "product",
        product=p,
        sponsored=row.sponsored,
        display={"IN_STOCK": "In stock", "OUT_OF_STOCK": "Out of stock"}.get(p.status, ""),
        in_stock={"IN_STOCK": True, "OUT_OF_STOCK": False}.get(p.status),
        badges=list(filter(None, (p.flag, p.note, p.icon and "Save with Walmart plus"))) or ABSENT,
        flag=p.flag or ABSENT,
        category_path=p.category.replace("_", "/"),
        currency="" if p.cents is None else "USD",
        current_price=None if p.cents is None else p.cents / 100,
        ranged=p.low is not None,
        lowest=None if low is None else low / 100,
        highest=ABSENT if p.high is None else p.high / 100,
        url=PUBLIC + p.path,
    )
