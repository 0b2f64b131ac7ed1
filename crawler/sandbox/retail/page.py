"""The simulated shop's pages, with the structure and size of real ones, and invented content."""

from __future__ import annotations

import random
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import orjson

from crawler.sandbox.retail.row import row_of

if TYPE_CHECKING:
    from crawler.sandbox.retail.shop import Category, Shop, View

PUBLIC = "https://www.walmart.com"
_WORDS = [
    "cart",
    "store",
    "pickup",
    "delivery",
    "order",
    "return",
    "size",
    "color",
    "brand",
    "price",
    "review",
    "seller",
    "item",
    "offer",
    "gift",
    "list",
    "filter",
    "save",
]


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
    head = f'<!DOCTYPE html><html lang="en-US"><head><meta charset="utf-8"/><title>{escaped}</title>'.encode()
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
    filler = b"<!-- " + b" ".join(f"{random.Random(n).getrandbits(64):x}".encode() for n in range(800)) + b" -->"  # noqa: S311
    return (
        b"<!DOCTYPE html><html><head><title>Robot or human?</title></head><body>"
        b'<h1>Robot or human?</h1><p>Activate and hold the button to confirm.</p><div id="px-captcha"></div>'
        b'<script id="blockScript" src="/px/PXu6b0qd2S/captcha/captcha.js"></script>' + filler + b"</body></html>"
    )


def title_of(view: View) -> str:
    """Return the title of a listing's page."""
    return f"{view.category.name if view.category else view.query} - Walmart.com"


def next_data(shop: Shop, view: View) -> dict[str, Any]:
    """Build the data block of a listing's page."""
    initial: dict[str, Any] = {
        "headers": {},
        "layoutContainerData": None,
        "searchResult": _listing(shop, view),
        "pageMetadata": {"location": {"postalCode": "95829", "storeId": "3081", "intent": "SHIPPING"}},
        "contentLayout": {"modules": [_module("PillsModule"), _filters(shop, view)]},
    }
    if view.category:
        initial["seoBrowseMetaData"] = {
            "metaTitle": f"{view.category.name} - Walmart.com",
            "metaCanon": f"/browse/{view.category.id}",
            "h1": view.category.name,
        }
    page = "/browse/[...browseParams]" if view.category else "/search"
    runtime = {} if shop.light else _runtime()
    return {
        "props": {"pageProps": {"initialData": initial, "isBot": False}, **runtime},
        "page": page,
        "query": {"page": str(view.page)},
        "buildId": "production_20261101T0900Z-en-US",
    }


def _module(kind: str, **configs: Any) -> dict[str, Any]:
    return {"__typename": "TempoWM_GLASSWWWSearchModule", "type": kind, "name": kind, "version": 1, "configs": configs}


def _filters(shop: Shop, view: View) -> dict[str, Any]:
    facets = _facets(shop, view)
    return _module("SearchSortFilterModule", topNavFacets=facets[:1], allSortAndFilterFacets=facets)


def _facets(shop: Shop, view: View) -> list[dict[str, Any]]:
    children = [shop.category(c) for c in view.category.children] if view.category else []
    values = [_facet_value(shop, child) for child in children]
    return [
        _facet("sort", "Sort by", [{"id": sort, "name": sort, "type": "sort"} for sort in ("best_match", "price_low")]),
        _facet("cat_id", "Departments", values),
        {
            **_facet("price", "Price", None),
            "min": 0,
            "max": 250,
            "selectedMin": view.prices[0],
            "selectedMax": view.prices[1],
            "unboundedMax": True,
            "stepSize": 1,
        },
        _facet("brand", "Brand", []),
    ]


def _facet(kind: str, name: str, values: list[dict[str, Any]] | None) -> dict[str, Any]:
    empty = dict.fromkeys(
        ("displayType", "min", "max", "selectedMin", "selectedMax", "unboundedMax", "stepSize", "isSelected")
    )
    return {
        "title": name,
        "name": name,
        "expandOnLoad": None,
        "type": kind,
        "layout": "default",
        **empty,
        "values": values,
    }


def _facet_value(shop: Shop, category: Category) -> dict[str, Any]:
    return {
        "id": category.id,
        "title": category.name,
        "name": category.name,
        "expandOnLoad": True,
        "description": None,
        "type": "cat_id",
        "itemCount": len(shop.matching(category.id, None)),
        "isSelected": None,
        "baseSeoURL": f"/browse/{category.id}",
        "values": None,
    }


def _listing(shop: Shop, view: View) -> dict[str, Any]:
    """Build the listing in the data block. The format of prices differs between pages, as on the real platform."""
    category = view.category
    name = category.name if category else view.query
    title = _heading(view)
    layout = "AB"[(view.page + len(str(name))) % 2]
    rows: list[dict[str, Any]] = [row_of(row.product, layout, sponsored=row.sponsored) for row in view.rows]
    carousel = rows[:3]
    rows[4:4] = [{"__typename": "AdPlaceholder"}] if rows else []
    rows[9:9] = [{"__typename": "TileTakeOverProductPlaceholder", "tile": None}] if rows else []
    rows += [{"__typename": "MarqueePlaceholder"}] if rows else []
    half = len(rows) // 2 if view.page % 2 else len(rows)
    grids = [rows[:half], rows[half:]] if rows else []
    stacks = [_stack(view, number * 2, grid) for number, grid in enumerate(grids) if grid]
    if carousel and not shop.light:
        stacks.insert(1, _stack(view, 1, carousel, carousel=True))
    crumbs = [*shop.crumbs(category), category] if category else []
    return {
        "title": title,
        "aggregatedCount": view.total,
        "enableFFAwareSearchBasedOnImplicitIntent": False,
        "breadCrumb": [
            {"id": c.id, "name": c.name, "url": f"/browse/{c.id}", "cat_level": n} for n, c in enumerate(crumbs)
        ]
        or None,
        "debug": {
            "sisUrl": "",
            "adsUrl": "",
            "genAIDebugInfo": {
                "searchAlgorithm": "",
                "isGenAiQueryEligible": False,
                "genAIUnavailableReason": "",
                "reformulatedQuery": None,
            },
            "presoDebugInformation": [{"explainerToolsResponse": None}],
        },
        "itemStacks": stacks,
        "nonProduct": None,
        "categoryNavigation": [],
        "pageMetadata": {
            "categoryNavigationMetaData": {"experienceType": "default"},
            "storeSelectionHeader": None,
            "title": title,
            "canonical": None,
            "source": "browse" if category else "search",
            "description": None,
            "location": {"addressId": ""},
            "subscriptionEligible": False,
        },
        "paginationV2": {"maxPage": view.max_page, "pageProperties": _page_properties(view, stacks)},
        "spelling": {"correctedTerm": None, "spellingModule": None},
        "translation": None,
        "requestContext": {
            "vertical": "FOOD",
            "hasGicIntent": False,
            "isFitmentFilterQueryApplied": False,
            "searchMatchType": "{}",
            "selectedFacetCount": 0,
            "showComparisonCart": False,
            "categories": {"id": category.id if category else "0", "name": name},
        },
        "errorResponse": {"correlationId": "00-0", "source": "sis", "errorCodes": None, "errors": []},
        "relatedSearch": [{"title": word, "url": f"/search?q={word}", "imageUrl": ""} for word in _WORDS[:6]],
        "modules": None,
        "pac": None,
        "isModularSearch": False,
        "hasMorePages": False,
        "moduleArrayV2": [],
        "count": len(rows),
        "gridItemsCount": len(rows),
        "catInfo": {"catId": category.id if category else "0", "name": name},
    }


def _heading(view: View) -> str:
    return view.category.name if view.category else f'Results for "{view.query}"'


def _page_properties(view: View, stacks: list[dict[str, Any]]) -> dict[str, Any]:
    grids = [index for index, stack in enumerate(stacks) if stack["layoutEnum"] == "GRID"]
    return {
        "ps": "40",
        "spelling": "true",
        "affinityOverride": "default",
        "stores": "3081",
        "grid": "true",
        "query": view.query or "",
        "cat_id": view.category.id if view.category else "0",
        "sort": view.sort,
        "displayGuidedNav": True,
        "pap": {"polaris": {"ms_max_page_within_rerank": 8, "ms_slp": 6, "ms_triggered": True}},
        "prg": "desktop",
        "page": view.page,
        "pageType": "BrowsePage" if view.category else "SearchPage",
        "itemStacks": {row.product.item_id: {"usItemId": row.product.item_id} for row in view.rows},
        "itemStacksInterleavePosition": [{"stackId": 0}],
        "primaryStacksToMatch": [{"isPrimaryStack": True, "matchIndex": index} for index in grids],
        "department": "/" + view.category.id.replace("_", "/") if view.category else "/0",
    }


def _stack(view: View, number: int, rows: list[dict[str, Any]], *, carousel: bool = False) -> dict[str, Any]:
    title = "Only here" if carousel else _heading(view)
    kind, sub = ("CAROUSEL", "SECONDARY_STACK") if carousel else ("GRID", "EXACT_MATCH")
    return {
        "displayMessage": None,
        "meta": {
            "beacon": "{}",
            "adsBeacon": {"adUuid": "0", "moduleInfo": "{}", "max_ads": 10},
            "spBeaconInfo": None,
            "query": view.query or "",
            "isPartialResult": None,
            "stackId": number,
            "stackType": "DEFAULT",
            "stackName": "SBE_I_1",
            "title": title,
            "description": None,
            "subTitle": None,
            "titleKey": "resultsFor",
            "queryUsedForSearchResults": None,
            "layoutEnum": kind,
            "subType": sub,
            "totalItemCount": view.total,
            "totalItemCountDisplay": "(1000+)",
            "viewAllParams": None,
            "comparisonCart": None,
            "borderColor": None,
            "iconUrl": None,
            "initialCount": 0,
            "fulfillmentIntent": None,
        },
        "itemsV2": None,
        "content": None,
        "title": title,
        "titleKey": "resultsFor",
        "description": "",
        "queryUsedForSearchResults": None,
        "totalItemCountDisplay": "(1000+)",
        "count": view.total,
        "items": rows,
        "layoutEnum": kind,
    }


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
