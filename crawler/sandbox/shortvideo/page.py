"""The simulated search page: its HTML, and its script, which fetches the results and signs each call."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from crawler.sandbox.skeletons import Fragments, Skeletons

if TYPE_CHECKING:
    from crawler.sandbox.protocol import FakeRequest

fill, skeleton = Fragments(__file__), Skeletons(__file__)

SCRIPT = "/static/search.js"
RESULTS, OTHER_RESULTS = "/api/search/photo/full/", "/api/search/photo/v2/"
"""The paths of the API call for results: the usual one, and that of the fault ``unknown-path``."""

SEARCH_SCRIPT = Path(__file__).with_name("search.js").read_bytes()
"""The search page's script. It fetches the results, signs each call, and shows the dialogs."""


@dataclass(frozen=True)
class Overlay:
    """An element that a page shows over its results, such as a login dialog or a CAPTCHA."""

    kind: str
    """``login``, ``captcha``, ``captcha-over-login`` (both), ``mount`` (an empty CAPTCHA element) or ``none``.

    With ``none``, nothing is visible, but the page stops loading results.
    """
    after: int = 0
    """The number of API responses that the page receives before the overlay appears."""
    in_flight: bool = False
    """Whether the overlay appears just after the page has sent its first API call. If not, it appears as soon as the
    page has received ``after`` responses."""
    closable: bool = False
    """Whether the login dialog has a button that closes it. A CAPTCHA always has such a button."""
    returns: bool = False
    """Whether the overlay appears again after it was closed."""
    others: bool = False
    """Whether an age gate and a consent dialog appear together with the overlay."""


def signature(text: str) -> str:
    """Compute a text's signature like the page's script: FNV-1a over its UTF-16 code units."""
    value = 0x811C9DC5
    units = text.encode("utf-16-le")
    for low, high in zip(units[::2], units[1::2], strict=True):
        value = ((value ^ (low | high << 8)) * 0x01000193) & 0xFFFFFFFF
    return f"{value:08x}"


def search(keyword: str, nonce: str, overlay: Overlay | None, request: FakeRequest, light: bool) -> bytes:  # noqa: FBT001
    """Render the search page's photo tab. The script is loaded from another origin, with the host ``localhost``."""
    port = request.headers.get("host", "").rpartition(":")[2] or "80"
    origin = "" if keyword == "no-script" else f"//localhost:{port}"
    context: dict[str, object] = {"nonce": nonce, "overlay": overlay, "language": "en", "region": "US"}
    context["path"] = OTHER_RESULTS if keyword == "unknown-path" else RESULTS
    context["abTest"] = {} if light else {f"test_{number}": {"vid": str(number)} for number in range(4000)}
    state = skeleton("state")
    state["webapp.app-context"] |= context
    block = orjson.dumps({"__DEFAULT_SCOPE__": state}).replace(b"</", b"<\\/").decode()
    rules = "".join(f".css-{number}{{display:flex;padding:{number}px}}" for number in range(2 if light else 2500))
    return fill("search", keyword=keyword, rules=rules, block=block, script=origin + SCRIPT).encode()


def waiting_room(*, opens: bool) -> bytes:
    """Render the waiting room. ``opens``: its script sets a cookie and reloads the page, which is then sent."""
    script = 'document.cookie = "_wafchallengeid=" + (6 * 7); location.reload();' if opens else ""
    return fill("waiting room", script=script).encode()


def login() -> bytes:
    """Render the login page."""
    return fill("login").encode()
