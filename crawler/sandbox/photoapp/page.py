"""The simulated photo app's pages, which contain their data in scripts and are as large as real pages."""

from __future__ import annotations

import random
from functools import cache
from typing import TYPE_CHECKING, Any

import orjson

from crawler.sandbox.photoapp.people import hash_of
from crawler.sandbox.skeletons import Fragments, Skeletons

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from crawler.sandbox.photoapp.people import Post

POST_ROUTE = "PolarisLoggedOutDesktopWWWPostRoute"
ERROR_ROUTE = "PolarisErrorRoute"
LOGIN_ROUTE = "PolarisCAAIGLoginHomepageRoute"
REELS_ROUTE = "PolarisLoggedOutDesktopWWWProfileReelsRoute"
PROFILE_ROUTE = "PolarisLoggedOutDesktopWWWProfileRoute"
POST_QUERY = "PolarisLoggedOutDesktopWWWPostRootContentQuery"
PUBLIC = "https://www.instagram.com"

fill, render = Skeletons(__file__), Fragments(__file__)

_END = b"</body></html>"
_WORDS = ("feed", "media", "clip", "pill", "overlay", "player", "caption", "sheet", "modal", "surface", "avatar", "row")


def document(
    route: str, blocks: Sequence[bytes], *, light: bool, meta: str = "", attributes: str = ' data-content-len="1"'
) -> bytes:
    """Render a page with the name of its route, link-preview tags, data blocks, and other scripts."""
    name = orjson.dumps({"canonicalRouteName": f"comet.igweb.{route}"})
    scripts = b"".join(_script(block, attributes) for block in (name, *blocks))
    weight = b"" if light else _styles() + b"".join(_script(each, attributes) for each in _bootstrap())
    head = f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Photo app</title>{meta}</head><body>'
    return head.encode() + weight + scripts + _END


def preview(post: Post) -> str:
    """Render the link-preview tags, which contain rounded counts and a cropped picture."""
    likes = f"{post.likes // 1000}K" if post.likes > 10_000 else str(post.likes)
    picture = post.image("c0.0.1_e35_s640x640")
    return render("preview", post=post, likes=likes, caption=post.caption or "", picture=picture)


def prefetched(query: str, data: dict[str, Any]) -> bytes:
    """Build a page's data block: the response to the page's first query, nested in script calls."""
    adapter = f"adp_{query}RelayPreloader_{hash_of(query)[:22]}"
    return orjson.dumps(fill("prefetched", adapter=adapter, result={"data": data, "extensions": {"is_final": True}}))


def embed(context: dict[str, Any] | None, *, light: bool) -> bytes:
    """Render the embed page. The page's data is JSON within a JSON string."""
    inner = None if context is None else orjson.dumps(context).decode()
    call = orjson.dumps(["PolarisEmbedSimple", "init", [], [{"contextJSON": inner}]])
    init = b's.handle({"require":[' + call.replace(b"</", b"<\\/") + b"]});"
    shell = b'<!DOCTYPE html><html lang="en"><head><title>Photo app</title></head><body class="Embed">'
    return shell + (b"" if light else _styles()) + b"<script>" + init + b"</script></body></html>"


def plain(title: str) -> bytes:
    """Render a page with a title and without data."""
    return render("plain", title=title).encode()


def previews_of(page: bytes) -> bytes:
    """Extract the link-preview tags from a page that ``document`` rendered."""
    return page[page.index(b"</title>") + len(b"</title>") : page.index(b"</head>")]


def without_block(page: bytes) -> bytes:
    """Remove the data block from a page that ``document`` rendered."""
    return page[: page.rindex(b"<script ")] + _END


def with_block(page: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """Return a page that ``document`` rendered, with ``change`` applied to its data block."""
    start = page.index(b">", page.rindex(b"<script ")) + 1
    end = page.rindex(b"</script>")
    block = change(page[start:end].replace(b"<\\/", b"</"))
    return page[:start] + block.replace(b"</", b"<\\/") + page[end:]


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
