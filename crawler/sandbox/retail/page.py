"""The simulated shop's pages, with the structure and size of real ones, and invented content."""

from __future__ import annotations

import random
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import orjson

from crawler.sandbox.retail.row import row_of
from crawler.sandbox.skeletons import ABSENT, Fragments, Skeletons

if TYPE_CHECKING:
    from crawler.sandbox.retail.shop import Shop, View

PUBLIC = "https://www.walmart.com"
fill, render = Skeletons(__file__), Fragments(__file__)

_VOCABULARY = """
cart store pickup delivery order return size color brand price review seller item offer gift list filter save
"""
_WORDS = _VOCABULARY.split()


def search_url(query: str) -> str:
    """Return the public URL of a search."""
    return f"{PUBLIC}/search?{urlencode({'q': query})}"


def listing(shop: Shop, view: View) -> bytes:
    """Render one page of a category's or search's listing."""
    return document(title_of(view), next_data(shop, view), light=shop.light)


def document(title: str, data: Any, *, light: bool = False) -> bytes:
    """Render a complete page that contains the given data block."""
    escaped = title.replace("&", "&amp;").replace("<", "&lt;")
    block = data if isinstance(data, bytes) else orjson.dumps(data)
    head = render("head", title=escaped).encode()
    script = b'<script id="__NEXT_DATA__" type="application/json" nonce="k3x">' + block + b"</script>"
    return b"".join(
        (head, b"" if light else _styles(), b'</head><body><div id="__next">', _svg(), b"</div>", script, _END)
    )


def parts(body: bytes) -> tuple[str, bytes]:
    """Extract the title and the data block from a page that ``document`` rendered."""
    title = body[body.index(b"<title>") + len(b"<title>") : body.index(b"</title>")].decode()
    start = body.index(b">", body.index(b'<script id="__NEXT_DATA__"')) + 1
    return title.replace("&lt;", "<").replace("&amp;", "&"), body[start : body.rindex(b"</script>", 0, -len(_END))]


def other(page: str, initial: dict[str, Any]) -> bytes:
    """Render a page that is not a listing, such as a page of one product."""
    return document(
        "Walmart.com", {"props": {"pageProps": {"initialData": initial}}, "page": page, "query": {}}, light=True
    )


def not_found() -> bytes:
    """Render the shop's own not-found page."""
    return other("/404", {"contentLayout": {"modules": []}})


def challenge() -> bytes:
    """Render the page with the CAPTCHA challenge."""
    filler = " ".join(f"{random.Random(n).getrandbits(64):x}" for n in range(800))  # noqa: S311
    return render("challenge", filler=filler).encode()


def title_of(view: View) -> str:
    """Return the title of a listing's page."""
    return f"{view.category.name if view.category else view.query} - Walmart.com"


def next_data(shop: Shop, view: View) -> dict[str, Any]:
    """Build the data block of a listing's page."""
    runtime = {"runtimeConfig": ABSENT, "messages": ABSENT} if shop.light else _runtime()
    return fill(
        "page",
        listing=_listing(shop, view),
        **_facets(shop, view),
        seo=fill("seo", category=view.category) if view.category else ABSENT,
        page="/browse/[...browseParams]" if view.category else "/search",
        number=str(view.page),
        **runtime,
    )


def _facets(shop: Shop, view: View) -> dict[str, Any]:
    children = [shop.category(c) for c in view.category.children] if view.category else []
    values = [fill("facet value", category=each, total=len(shop.matching(each.id, None))) for each in children]
    low, high = view.prices
    limits = {"min": 0, "max": 250, "selectedMin": low, "selectedMax": high, "unboundedMax": True, "stepSize": 1}
    sorts = [{"id": sort, "name": sort, "type": "sort"} for sort in ("best_match", "price_low")]
    return {
        "sort": fill("facet", kind="sort", name="Sort by", values=sorts),
        "departments": fill("facet", kind="cat_id", name="Departments", values=values),
        "price": fill("facet", kind="price", name="Price", values=None) | limits,
        "brand": fill("facet", kind="brand", name="Brand", values=[]),
    }


def _listing(shop: Shop, view: View) -> dict[str, Any]:
    """Build the listing in the data block. The format of prices differs between pages, as on the real platform."""
    category = view.category
    name = category.name if category else view.query
    cat_id = category.id if category else "0"
    layout = "AB"[(view.page + len(str(name))) % 2]
    rows: list[dict[str, Any]] = [row_of(row.product, layout, sponsored=row.sponsored) for row in view.rows]
    carousel = rows[:3]
    if rows:
        early, late, last = fill("placeholders")["rows"]
        rows.insert(4, early)
        rows.insert(9, late)
        rows.append(last)
    half = len(rows) // 2 if view.page % 2 else len(rows)
    shown = {"view": view, "query": view.query or ""}
    grid = {"title": _heading(view), "kind": "GRID", "sub": "EXACT_MATCH"}
    halves = [each for each in (rows[:half], rows[half:]) if each]
    stacks = [fill("stack", **shown, **grid, number=n * 2, rows=each) for n, each in enumerate(halves)]
    if carousel and not shop.light:
        other = {"title": "Only here", "kind": "CAROUSEL", "sub": "SECONDARY_STACK"}
        stacks.insert(1, fill("stack", **shown, **other, number=1, rows=carousel))
    grids = [index for index, stack in enumerate(stacks) if stack["layoutEnum"] == "GRID"]
    crumbs = [*shop.crumbs(category), category] if category else []
    return fill(
        "listing",
        **shown,
        title=_heading(view),
        name=name,
        cat_id=cat_id,
        crumbs=[{"id": c.id, "name": c.name, "url": f"/browse/{c.id}", "cat_level": n} for n, c in enumerate(crumbs)]
        or None,
        stacks=stacks,
        source="browse" if category else "search",
        kind="BrowsePage" if category else "SearchPage",
        items={row.product.item_id: {"usItemId": row.product.item_id} for row in view.rows},
        primary=[{"isPrimaryStack": True, "matchIndex": index} for index in grids],
        department=cat_id.replace("_", "/"),
        count=len(rows),
    )


def _heading(view: View) -> str:
    return view.category.name if view.category else f'Results for "{view.query}"'


# The parts that make up most of a page: styles, drawings, interface texts, service URLs


@cache
def _styles() -> bytes:
    rng = random.Random(7)  # noqa: S311  # an invented stylesheet, not a secret
    rules = [
        f".{rng.choice(_WORDS)}-{n:x}{{margin:{rng.randint(0, 40)}px {rng.randint(0, 40)}px;"
        f"color:#{rng.getrandbits(24):06x};font:{rng.randint(10, 30)}px/{rng.randint(12, 36)}px Bogle,sans-serif;"
        f"transition:opacity .{rng.randint(1, 9)}s}}"
        for n in range(2_200)
    ]
    return ("<style>" + "".join(rules) + "</style>").encode()


@cache
def _svg() -> bytes:
    rng = random.Random(8)  # noqa: S311  # invented drawings, not a secret
    paths = [" ".join(f"L{rng.uniform(0, 24):.2f} {rng.uniform(0, 24):.2f}" for _ in range(20)) for _ in range(60)]
    return "".join(f'<svg viewBox="0 0 24 24"><path d="M0 0 {path}Z"/></svg>' for path in paths).encode()


@cache
def _runtime() -> dict[str, Any]:
    rng = random.Random(9)  # noqa: S311  # invented texts, not a secret
    messages = {
        f"{rng.choice(_WORDS)}.{rng.choice(_WORDS)}.{n}": " ".join(
            rng.choices(_WORDS, k=rng.randint(3, 14))
        ).capitalize()
        for n in range(1_600)
    }
    endpoints = {
        f"{word}{n}": {"host": f"https://{word}.svc.example", "path": f"/v{n}/{word}"}
        for word in _WORDS
        for n in range(8)
    }
    scripts = {"perimeterx": "/px/PXu6b0qd2S/init.js", "captcha": {"enabled": True}}
    return {"runtimeConfig": {"queryContext": endpoints, "thirdParty": scripts}, "messages": messages}


_END = b'<script src="/_next/static/chunks/main.js" defer></script></body></html>'
