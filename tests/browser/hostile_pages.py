"""A short-video platform on loopback whose pages misbehave in many ways. The keywords of a search select the page."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from crawler.sandbox.shortvideo.site import Site
from tests.http_server import Handler, served

STATE = '<script id="__UNIVERSAL_DATA_FOR_REHYDRATION__" type="application/json">{}</script>'
"""The mark of the platform's own pages."""
WAITING = '<p id="wci">Please wait...</p>'
CAPTCHA = '<div id="tiktok-verify-ele"><p>Drag the piece into its place</p></div>'
LOGIN = '<div role="dialog"><div id="loginContainer">Log in</div></div>'
RESULTS = "/api/search/photo/full/"

TIMEOUT = ("UPSTREAM_TIMEOUT", "no_answer")
WALL = ("UPSTREAM_BLOCKED", "login_wall")
PUZZLE = ("UPSTREAM_BLOCKED", "captcha")
ROOM = ("UPSTREAM_BLOCKED", "waiting_room")
UNKNOWN_PATH = ("EXTRACTION_FAILED", "unknown_path")
OTHER_PAGE = ("EXTRACTION_FAILED", "no_search_page")
OK = ("OK", "")


def results(**changed: Any) -> bytes:
    """The first response of a search, in which no more rows follow. ``changed`` replaces keys of it."""
    return json.dumps(Site(light=True).answer("whales", 0) | {"has_more": 0} | changed).encode()


def general(**changed: Any) -> bytes:
    """The same response in the envelope of the general search."""
    answer = json.loads(results())
    rows = [{"type": 1, "item": row} for row in answer.pop("item_list")]
    return json.dumps({**answer, "data": rows, **changed}).encode()


def renamed(envelope: str = "item_list") -> bytes:
    """The same response with renamed keys in its rows."""
    rows = [{f"{key}V9": value for key, value in row.items()} for row in json.loads(results())["item_list"]]
    return json.dumps({"status_code": 0, envelope: rows, "cursor": 12, "has_more": 1}).encode()


@dataclass(frozen=True)
class Call:
    """A call of the page's script, and its response."""

    path: str = RESULTS
    body: bytes = b""
    status: int = 200
    after: float = 0.0
    """Seconds after the load of the page."""
    hangs: bool = False


AT_ONCE, LATER, AFTER_AN_ANSWER = 2, 20, 600
"""Values of ``BROWSER_QUIET``: for pages whose outcome needs no response of the search, for pages whose outcome needs
one before the silence, and for pages whose response ends the session: a slow machine may take long for a response."""


@dataclass(frozen=True)
class HostilePage:
    """A page: its HTML, the calls of its script, and the expected code and reason of the outcome."""

    outcome: tuple[str, str]
    html: str = STATE
    calls: Sequence[Call] = ()
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    delay: float = 0.0
    """Seconds until the document is sent."""
    pause: float = 0.0
    """Seconds between the first line of the document and its other lines."""

    @property
    def quiet(self) -> int:
        """``BROWSER_QUIET`` for this page."""
        if self.outcome == OK or self.outcome[1] in {"empty_body", "not_json"}:
            return AFTER_AN_ANSWER
        return LATER if self.calls else AT_ONCE


def reloading(script: str, html: str = STATE) -> str:
    """A page whose script navigates again and again."""
    return f"{html}<script>{script}</script>"


ON_LOAD = "setTimeout(() => location.reload(), {})"
AUX = Call("/api/search/general/preview/", b'{"sug_list": [{"content": "whales"}], "status_code": 0}')
"""A call for suggestions, which has no rows."""

PAGES: dict[str, HostilePage] = {
    # Pages that navigate on
    "reload at once": HostilePage(TIMEOUT, reloading("location.reload()")),
    "reload after 10 ms": HostilePage(TIMEOUT, reloading(ON_LOAD.format(10))),
    "reload after 100 ms": HostilePage(TIMEOUT, reloading(ON_LOAD.format(100))),
    "reload after 1 s": HostilePage(TIMEOUT, reloading(ON_LOAD.format(1000))),
    "reload often": HostilePage(TIMEOUT, reloading("setInterval(() => location.reload(), 1)")),
    "reload, slow document": HostilePage(TIMEOUT, reloading("location.reload()"), delay=0.3),
    "reload, very slow document": HostilePage(TIMEOUT, reloading("location.reload()"), delay=1.5),
    "refresh by meta": HostilePage(TIMEOUT, f'<meta http-equiv="refresh" content="0">{STATE}'),
    "refresh by header": HostilePage(TIMEOUT, headers=(("Refresh", "0"),)),
    "location": HostilePage(TIMEOUT, reloading("location.href = location.href + '&'")),
    "history": HostilePage(TIMEOUT, reloading("history.go(0)")),
    "form": HostilePage(
        TIMEOUT, reloading("document.forms[0].submit()", f"{STATE}<form><input name=q value=form></form>")
    ),
    "hash": HostilePage(TIMEOUT, reloading("setInterval(() => location.hash = Math.random(), 1)")),
    "push state": HostilePage(TIMEOUT, reloading("setInterval(() => history.pushState(0, '', '?q=x'), 50)")),
    "waiting room that reloads": HostilePage(ROOM, reloading("location.reload()", WAITING)),
    "waiting room that reloads slowly": HostilePage(ROOM, reloading(ON_LOAD.format(300), WAITING)),
    "captcha that reloads": HostilePage(PUZZLE, reloading(ON_LOAD.format(200), STATE + CAPTCHA)),
    "login that reloads": HostilePage(WALL, reloading(ON_LOAD.format(200), STATE + LOGIN)),
    "captcha that reloads at once": HostilePage(PUZZLE, reloading("location.reload()", STATE + CAPTCHA)),
    "captcha that reloads, document in two parts": HostilePage(
        PUZZLE, reloading("location.reload()", STATE + CAPTCHA), pause=1
    ),
    "login that reloads at once": HostilePage(WALL, reloading("location.reload()", STATE + LOGIN)),
    "blocked, reloads": HostilePage(("UPSTREAM_BLOCKED", "refused"), reloading("location.reload()", ""), status=403),
    "limited, reloads": HostilePage(
        ("UPSTREAM_RATE_LIMITED", "rate_limited"), reloading("location.reload()", ""), status=429
    ),
    "document.open": HostilePage(
        OTHER_PAGE, reloading("setInterval(() => { document.open(); document.write('<p>x'); document.close() }, 5)")
    ),
    "results, then reloads": HostilePage(
        OK, f"{STATE}<script>setInterval(() => location.reload(), 3000)</script>", (Call(body=results()),)
    ),
    # Dialogs, scripts and frames
    "alert": HostilePage(TIMEOUT, reloading("setInterval(() => alert(1), 10)")),
    "beforeunload": HostilePage(TIMEOUT, reloading("onbeforeunload = () => 'stay'; location.reload()")),
    "print": HostilePage(TIMEOUT, reloading("print()")),
    "close": HostilePage(TIMEOUT, reloading("window.close()")),
    "popups": HostilePage(TIMEOUT, reloading("for (let n = 0; n < 5; n++) open(location.href + n)")),
    "frames": HostilePage(TIMEOUT, STATE + "<iframe srcdoc='<p>x</p>'></iframe>" * 100),
    "deep": HostilePage(TIMEOUT, STATE + "<div>" * 5000),
    "many nodes": HostilePage(TIMEOUT, STATE + "<i></i>" * 100_000),
    "no stringify": HostilePage(TIMEOUT, reloading("JSON.stringify = Object = Array = undefined")),
    "no scroll": HostilePage(TIMEOUT, reloading("Element.prototype.scrollTo = () => { throw 1 }")),
    "no query": HostilePage(TIMEOUT, reloading("document.querySelectorAll = () => { throw 1 }")),
    "removed document": HostilePage(OTHER_PAGE, reloading("document.documentElement.remove()")),
    "text": HostilePage(OTHER_PAGE, "x", headers=(("Content-Type", "text/plain"),)),
    "json": HostilePage(OTHER_PAGE, "{}", headers=(("Content-Type", "application/json"),)),
    "no content": HostilePage(("UPSTREAM_ERROR", "connection"), status=204),
    "download": HostilePage(("UPSTREAM_ERROR", "connection"), headers=(("Content-Disposition", "attachment"),)),
    # Responses of the search
    "empty body": HostilePage(("UPSTREAM_BLOCKED", "empty_body"), calls=(Call(),)),
    "null": HostilePage(("UPSTREAM_ERROR", "not_json"), calls=(Call(body=b"null"),)),
    "a number": HostilePage(("UPSTREAM_ERROR", "not_json"), calls=(Call(body=b"1"),)),
    "a text": HostilePage(("UPSTREAM_ERROR", "not_json"), calls=(Call(body=b'"x"'),)),
    "UTF-16": HostilePage(OK, calls=(Call(body=results().decode().encode("utf-16")),)),
    "byte order mark": HostilePage(OK, calls=(Call(body=b"\xef\xbb\xbf" + results()),)),
    "hangs": HostilePage(TIMEOUT, calls=(Call(hangs=True),)),
    "login, hangs": HostilePage(WALL, STATE + LOGIN, (Call(hangs=True),)),
    # Results in another envelope, and on another path
    "general envelope": HostilePage(OK, calls=(Call(body=general()),)),
    "without slash": HostilePage(OK, calls=(Call("/api/search/photo/full", results()),)),
    "new version": HostilePage(OK, calls=(Call("/api/search/photo/v2/full/", results()),)),
    "general path": HostilePage(OK, calls=(Call("/api/search/general/full/", general()),)),
    "suggestions first": HostilePage(OK, calls=(AUX, Call(body=results(), after=1))),
    "suggestions only": HostilePage(TIMEOUT, calls=(AUX,)),
    "broken suggestions": HostilePage(TIMEOUT, calls=(Call("/api/search/suggest/", b"{"), Call("/api/search/x/"))),
    "renamed rows on another path": HostilePage(UNKNOWN_PATH, calls=(Call("/api/search/photo/v2/", renamed()),)),
    "unknown list on another path": HostilePage(UNKNOWN_PATH, calls=(Call("/api/search/p/", renamed("photos")),)),
    "login required on another path": HostilePage(
        WALL, calls=(Call("/api/search/photo/v2/", b'{"status_code": 2483}'),)
    ),
    "login over another path": HostilePage(WALL, STATE + LOGIN, (Call("/api/search/photo/v2/", renamed()),)),
}


class _Handler(Handler):
    def do_GET(self) -> None:  # noqa: N802  # the name of http.server
        url = urlsplit(self.path)
        words = parse_qs(url.query).get("q", [""])[0]
        page = PAGES.get(words)
        with suppress(OSError):  # the browser closes connections of pages that navigate on
            if page is None:
                self._send(404, (), b"")
            elif url.path == "/search/photo":
                time.sleep(page.delay)
                self._send(
                    page.status, (("Content-Type", "text/html"), *page.headers), self._html(words, page), page.pause
                )
            else:
                number = int(parse_qs(url.query)["call"][0])
                call = page.calls[number]
                if call.hangs:
                    time.sleep(600)  # longer than any session
                self._send(call.status, (("Content-Type", "application/json"),), call.body)

    @staticmethod
    def _html(words: str, page: HostilePage) -> bytes:
        calls = "".join(
            f"setTimeout(() => fetch('{call.path}?q={quote(words)}&call={number}')"
            f".then((each) => each.text()), {call.after * 1000});"
            for number, call in enumerate(page.calls)
        )
        return f"<!doctype html><title>Search</title>\n{page.html}<script>{calls}</script>".encode()

    def _send(self, status: int, headers: Sequence[tuple[str, str]], body: bytes, pause: float = 0) -> None:
        self.send_response(status)
        for name, value in dict(headers).items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if pause:
            first, _, body = body.partition(b"\n")
            self.wfile.write(first + b"\n")
            time.sleep(pause)
        self.wfile.write(body)


def hostile_platform() -> AbstractContextManager[str]:
    """Run the platform. Its value is its origin."""
    return served(_Handler)
