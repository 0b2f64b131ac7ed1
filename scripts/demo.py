"""The demo: a service with the simulated shop, two calls, one failure, and how to repeat them. See scripts/demo.

Only the standard library and plain HTTP are used here, as any client of the service could.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import ProxyHandler, Request, build_opener

API_KEY = "sandbox"  # the one key that a service started with --sandbox accepts
READY_WITHIN = 60.0  # seconds
ROWS_SHOWN = 12
COLUMNS = (("product", 38), ("price", 17), ("rating", 14), ("seller", 22), ("availability", 14))
PATIENCE = 130  # seconds: beyond the longest deadline of a call
SHOWN = ("retail-category-v4", "retail-search-v4")
BROWSED = "shortvideo-photo-search-v4"  # its page signs its own calls: a real browser loads it
POST_COLUMNS = (("author", 18), ("caption", 44), ("photos", 7), ("likes", 10), ("posted", 10))
UNKNOWN_CATEGORY = {"cat_id": "1_2_3"}

http = build_opener(ProxyHandler({}))  # a proxy from the environment has no business on loopback


def bold(text: str) -> str:
    """Text that stands out on a terminal."""
    return f"\033[1m{text}\033[0m" if sys.stdout.isatty() else text


def dim(text: str) -> str:
    """Text that stands back on a terminal."""
    return f"\033[2m{text}\033[0m" if sys.stdout.isatty() else text


@contextlib.contextmanager
def service() -> Iterator[str]:
    """Runs ``scrapy serve --sandbox`` on a free port of loopback. Gives its base URL; ends it whatever happens.

    Raises:
        SystemExit: when it ends early, or is not ready in time; its log is printed.
    """
    with tempfile.TemporaryFile("w+") as log:
        command = [sys.executable, "-m", "scrapy", "serve", "--sandbox", "--port", "0"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            assert process.stdout is not None
            base = process.stdout.readline().removeprefix("listening on ").strip()
            if not base or not is_ready(base, process):
                log.seek(0)
                raise SystemExit(f"The service did not start:\n{log.read()}")
            yield base
        finally:
            process.terminate()
            process.wait(timeout=60)


def is_ready(base: str, process: subprocess.Popen[str]) -> bool:
    """Waits until calls can be taken. False when the process has ended or the time is over."""
    deadline = time.monotonic() + READY_WITHIN
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(URLError, ConnectionError), http.open(f"{base}/readyz"):
            return True
        time.sleep(0.1)
    return False


def catalogue(base: str) -> dict[str, dict[str, Any]]:
    """The service's scrapers by name."""
    with http.open(f"{base}/v1/scrapers") as response:
        return {scraper["name"]: scraper for scraper in json.load(response)["scrapers"]}


def call(base: str, scraper: str, params: dict[str, Any]) -> dict[str, Any]:
    """The envelope that answers one call. Failures have the same envelope, under another HTTP status."""
    headers = {"Content-Type": "application/json", "X-API-Key": API_KEY}
    request = Request(f"{base}/v1/scrapers/{scraper}", json.dumps(params).encode(), headers)
    try:
        with http.open(request, timeout=PATIENCE) as response:
            envelope: dict[str, Any] = json.load(response)
    except HTTPError as error:
        envelope = json.load(error)
    return envelope


def product_row(product: dict[str, Any]) -> tuple[str, ...]:
    """A product as the cells of the table; what the page does not state is a dash."""
    name = product["name"] + (" [ad]" if product["is_sponsored"] else "")
    rating = product["rating"]
    stars = "-" if rating["average"] is None else f"{rating['average']:.1f} ({rating['review_count'] or 0:,})"
    return (
        name,
        price_text(product["price"]),
        stars,
        product["seller"]["name"] or "-",
        product["availability"]["display"] or "-",
    )


def price_text(price: dict[str, Any]) -> str:
    """A price, a range of prices, or a dash."""
    if price["is_price_range"] and price["min_price"] is not None:
        high = price.get("max_price")
        return f"from ${price['min_price']:,.2f}" if high is None else f"${price['min_price']:,.2f} - ${high:,.2f}"
    return "-" if price["current_price"] is None else f"${price['current_price']:,.2f}"


def fit(text: str, width: int) -> str:
    """Text cut or filled to the width of its column."""
    return text.ljust(width) if len(text) <= width else text[: width - 1] + "…"


def show_listing(envelope: dict[str, Any]) -> None:
    """Prints a listing's totals and its first products."""
    data, meta = envelope["data"], envelope["meta"]
    print(
        f"   {bold(data['heading'] or data['title'])}: {data['total_results'] or 0:,} products reported, "
        f"page {data['page']} of {data['max_page']}, {data['returned']} products on it, "
        f"answered in {meta['duration_ms']:,} ms\n"
    )
    print("   " + bold("  ".join(fit(title.upper(), width) for title, width in COLUMNS)))
    for product in data["products"][:ROWS_SHOWN]:
        cells = zip(product_row(product), COLUMNS, strict=True)
        print("   " + "  ".join(fit(cell, width) for cell, (_, width) in cells))
    if data["returned"] > ROWS_SHOWN:
        print(dim(f"   ... and {data['returned'] - ROWS_SHOWN} more"))
    print()


def show_posts(envelope: dict[str, Any]) -> None:
    """Prints the first photo posts that a search found."""
    data, meta = envelope["data"], envelope["meta"]
    posts = data["search_item_list"]
    more = "more to come" if data["has_more"] else "no more"
    print(f"   {len(posts)} photo posts, {more}, answered in {meta['duration_ms']:,} ms by a browser\n")
    print("   " + bold("  ".join(fit(title.upper(), width) for title, width in POST_COLUMNS)))
    for post in posts[:ROWS_SHOWN]:
        cells = (
            "@" + post["author"]["unique_id"],
            " ".join(post["desc"].split()) or "-",
            str(len(post["image_post_info"]["images"])),
            f"{post['statistics']['digg_count']:,}",
            post["create_time_utc"][:10],
        )
        print("   " + "  ".join(fit(cell, width) for cell, (_, width) in zip(cells, POST_COLUMNS, strict=True)))
    print()


def curl(base: str, scraper: str, params: dict[str, Any]) -> str:
    """The same call for a shell."""
    return (
        f"curl -s {base}/v1/scrapers/{scraper} \\\n"
        f"     -H 'X-API-Key: {API_KEY}' -H 'Content-Type: application/json' \\\n"
        f"     -d {shlex.quote(json.dumps(params))}"
    )


def show_calls(base: str) -> bool:
    """Makes the demo's calls and prints what comes back. False when one was not answered as it must be."""
    scrapers = catalogue(base)
    for number, name in enumerate(SHOWN, start=1):
        params = scrapers[name]["example"]
        print(f"{number}. {bold(name)}  {json.dumps(params)}\n   {dim(scrapers[name]['summary'])}\n")
        envelope = call(base, name, params)
        if not envelope["success"] or not envelope["data"]["products"]:
            print(json.dumps(envelope, indent=2))
            return False
        show_listing(envelope)

    params = scrapers[BROWSED]["example"]
    print(f"{len(SHOWN) + 1}. {bold(BROWSED)}  {json.dumps(params)}\n   {dim(scrapers[BROWSED]['summary'])}\n")
    envelope = call(base, BROWSED, params)
    if not envelope["success"] or not envelope["data"]["search_item_list"]:
        print(json.dumps(envelope, indent=2))
        return False
    show_posts(envelope)

    print(f"{len(SHOWN) + 2}. {bold('A category that does not exist')}  {json.dumps(UNKNOWN_CATEGORY)}\n")
    status = call(base, SHOWN[0], UNKNOWN_CATEGORY)["status"]
    print(f"   {status['code']} (retryable: {json.dumps(status['retryable'])}): {status['message']}\n")
    return bool(status["code"] == "TARGET_NOT_FOUND")


def main() -> int:
    """Runs the demo. Returns the exit code: 1 when a call was not answered as it must be."""
    parser = argparse.ArgumentParser(description="Show the service at work, against the simulated shop.")
    parser.add_argument("--stay", action="store_true", help="keep the service running afterwards")
    stay: bool = parser.parse_args().stay
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the service is ended then too

    print("\nStarting the endpoint and the simulated shop on this machine ...", flush=True)
    with service() as base:
        print(f"Ready: {bold(base)}\n")
        if not show_calls(base):
            return 1
        example = catalogue(base)[SHOWN[0]]["example"]
        print(bold("The same call with curl:") + "\n")
        if stay:
            print(f"{curl(base, SHOWN[0], example)}\n\nThe service keeps running; Ctrl-C ends it.", flush=True)
            with contextlib.suppress(KeyboardInterrupt):
                while True:
                    time.sleep(3600)
        else:
            print(f"{Path(sys.executable).parent / 'scrapy'} serve --sandbox &   # this demo's own service ends now")
            print(f"{curl('http://127.0.0.1:8000', SHOWN[0], example)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
