"""The simulated photo app's pages, which contain their data in scripts and are as large as real pages."""

from __future__ import annotations

import random
import re
from functools import cache
from typing import TYPE_CHECKING, Any

import orjson

from crawler.sandbox.photoapp.people import hash_of
from crawler.sandbox.skeletons import ABSENT, Fragments, Skeletons

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from crawler.sandbox.photoapp.people import Post

POST_ROUTE = "PolarisLoggedOutDesktopWWWPostRoute"
ERROR_ROUTE = "PolarisErrorRoute"
LOGIN_ROUTE = "PolarisCAAIGLoginHomepageRoute"
REELS_ROUTE = "PolarisLoggedOutDesktopWWWProfileReelsRoute"
PROFILE_ROUTE = "PolarisLoggedOutDesktopWWWProfileRoute"
LANDING_ROUTE = "PolarisPostLandingPageFullyPerfOptimizedRoute"
PAGE_IDS = {ERROR_ROUTE: "httpErrorPage", LOGIN_ROUTE: "loginPage"}
POST_QUERY = "PolarisLoggedOutDesktopWWWPostRootContentQuery"
PUBLIC = "https://www.instagram.com"
ROUTE_BLOCK = 12
"""The position of the block with the route among the blocks that every page has. The results of queries follow it."""
POST_BLOCKS = {*range(20, 27), 39}
"""The positions of the blocks that only pages of posts have: about rendering on the server, and scripts to load."""
SCRIPT_IDS = {0: ' id="envjson"', 1: ' id="__eqmc"', 39: ' id="deferred-scripts"'}
"""The ids of scripts, by the position of their blocks among the blocks that every page has."""

fill, render = Skeletons(__file__), Fragments(__file__)

_PRELOADERS = re.compile(rb'"expectedPreloaders":\[[^\]]*\]')
_END = b"</body></html>"
_WORDS = ("feed", "media", "clip", "pill", "overlay", "player", "caption", "sheet", "modal", "surface", "avatar", "row")


def document(route: str, blocks: Sequence[bytes], *, light: bool, post: Post | None = None) -> bytes:
    """Render a page with the blocks that every page has, its route, and the results of queries.

    ``post``: the post whose page it is, which is named by the link-preview tags and by the parameters of the route.
    """
    # The attributes of the script elements differ between pages.
    attributes = ' data-content-len="4711"' if post is None or int(post.pk) % 2 else ""
    preloaders = [fill("post preloader", post=post, adapter=_adapter(POST_QUERY), query=POST_QUERY)] if post else []
    bootstrap = fill("bootstrap", route=_route(route, post), preloaders=preloaders if blocks else None)["blocks"]
    kept = [(n, each) for n, each in enumerate(bootstrap) if route == POST_ROUTE or n not in POST_BLOCKS]
    scripts = [_script(orjson.dumps(each), SCRIPT_IDS.get(n, attributes)) for n, each in kept]
    scripts[ROUTE_BLOCK + 1 : ROUTE_BLOCK + 1] = [_script(each, attributes) for each in blocks]
    weight = b"" if light else _styles() + b"".join(_script(each, attributes) for each in _bootstrap())
    return render("head", meta=preview(post) if post else "").encode() + weight + b"".join(scripts) + _END


def _route(name: str, post: Post | None) -> dict[str, Any]:
    """Build the parameters of a page's route. Those of a post contain its shortcode and its ids."""
    page_id = "postPage" if post else PAGE_IDS.get(name, "profilePage")
    return fill(
        "route",
        route=name,
        root=name.removesuffix("Route") + "Root",
        page_id=page_id,
        props=fill("post props", post=post) if post else fill("other props", page_id=page_id),
        entity=fill("post entity") if post else ABSENT,
        url=f"/p/{post.code}/" if post else "/",
        params=fill("post params", post=post) if post else {},
        path="/{permalink_key}/{shortcode}/{?slug}/" if post else None,
    )


def _adapter(query: str) -> str:
    return f"adp_{query}RelayPreloader_{hash_of(query)[:22]}"


def preview(post: Post) -> str:
    """Render the link-preview tags, which contain rounded counts and a cropped picture."""
    likes = f"{post.likes // 1000}K" if post.likes > 10_000 else str(post.likes)
    picture = post.image("c0.0.1_e35_s640x640")
    quoted = f': "{post.caption}"' if post.caption else ""
    return render("preview", post=post, likes=likes, quoted=quoted, picture=picture)


def prefetched(query: str, data: dict[str, Any], **extensions: Any) -> bytes:
    """Build a page's data block: the response to the page's first query, nested in script calls."""
    result = {"data": data, "extensions": {**extensions, "is_final": True}}
    return orjson.dumps(fill("prefetched", adapter=_adapter(query), result=result))


def further_results() -> list[bytes]:
    """Build the results of the other queries of a page: dialog, ruling, related posts and comments."""
    return [orjson.dumps(each) for each in fill("further results")["blocks"]]


def plain(title: str) -> bytes:
    """Render a page with a title and without data."""
    return render("plain", title=title).encode()


def previews_of(page: bytes) -> bytes:
    """Extract the link-preview tags from a page that ``document`` rendered."""
    return page[page.index(b"</title>") + len(b"</title>") : page.index(b"</head>")]


def without_block(page: bytes) -> bytes:
    """Remove the results of the query, and the query's name, from a page that ``document`` rendered."""
    start, end = _block(page)
    shell = page[: page.rindex(b"<script ", 0, start)] + page[end + len(b"</script>") :]
    return _PRELOADERS.sub(b'"expectedPreloaders":null', shell)


def with_block(page: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """Return a page that ``document`` rendered, with ``change`` applied to the block with the results of the query."""
    start, end = _block(page)
    block = change(page[start:end].replace(b"<\\/", b"</"))
    return page[:start] + block.replace(b"</", b"<\\/") + page[end:]


def _block(page: bytes) -> tuple[int, int]:
    """Return the start and the end of the block with the results of the query."""
    mark = page.index(b'"RelayPrefetchedStreamCache"')
    return page.index(b">", page.rindex(b"<script ", 0, mark)) + 1, page.index(b"</script>", mark)


def with_result(page: bytes, change: Callable[[dict[str, Any]], None]) -> bytes:
    """Return a page with ``change`` applied to the query's result in the data block, which ``prefetched`` built."""

    def changed(block: bytes) -> bytes:
        data = orjson.loads(block)
        _, _, call, _ = data["require"][0][3][0]["__bbox"]["require"]
        change(call[3][1]["__bbox"]["result"])
        return orjson.dumps(data)

    return with_block(page, changed)


def _script(block: bytes, attributes: str) -> bytes:
    opened = f'<script type="application/json"{attributes} data-sjs>'.encode()
    return opened + block.replace(b"</", b"<\\/") + b"</script>"


@cache
def _styles() -> bytes:
    rng = random.Random(7)  # noqa: S311  # an invented stylesheet, not a secret
    rules = [
        f".x{rng.getrandbits(28):07x}{{{rng.choice(_WORDS)}:{rng.randint(0, 40)}px;color:#{rng.getrandbits(24):06x};"
        f"transform:translate({rng.uniform(-9, 9):.3f}px)}}"
        for _ in range(2_400)
    ]
    return ("<style>" + "".join(rules) + "</style>").encode()


@cache
def _bootstrap() -> list[bytes]:
    """Build the scripts of a page that are not about the post: tables of script modules and their files."""
    rng = random.Random(8)  # noqa: S311  # invented modules, not a secret
    blocks = []
    for _ in range(14):
        modules = {
            f"{rng.choice(_WORDS).title()}{rng.choice(_WORDS).title()}{rng.getrandbits(16):04x}.react": {
                "r": [f"{rng.getrandbits(40):010x}" for _ in range(rng.randint(2, 9))],
                "be": 1,
                "src": f"https://static.example/rsrc.php/v4/{rng.getrandbits(64):016x}.js",
            }
            for _ in range(260)
        }
        blocks.append(orjson.dumps({"require": [["Bootloader", "handlePayload", None, [{"bxData": modules}]]]}))
    return blocks
