"""The demo: a service with the simulated platforms, calls, a failure, and how to repeat them.

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
import unicodedata
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import ProxyHandler, Request, build_opener

API_KEY = "sandbox"  # the one key that a service started with --sandbox accepts
READY_WITHIN = 60.0  # seconds
ROWS_SHOWN = 6
PATIENCE = 130  # seconds: beyond the longest deadline of a call
PRODUCT_COLUMNS = (("product", 38), ("price", 17), ("rating", 14), ("seller", 22), ("availability", 14))
TIMELINE_COLUMNS = (("newest posts", 14), ("kind", 10), ("caption", 77))
POSITION_COLUMNS = (("position", 38), ("company", 33), ("dates", 32))
POST_COLUMNS = (("author", 18), ("caption", 57), ("photos", 7), ("likes", 10), ("posted", 10))
KINDS = {1: "photo", 2: "video", 8: "carousel"}
SECTIONS = ("skills", "languages", "certifications", "publications", "projects", "awards", "recommendations")
UNKNOWN_CATEGORY = {"cat_id": "1_2_3"}
CURLED = "retail-category-v4"

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
    """Text on one line, cut or filled to the width of its column."""
    shown = " ".join(text.split())
    if cells(shown) > width:
        while cells(shown) >= width:
            shown = shown[:-1]
        shown += "…"
    return shown + " " * (width - cells(shown))


def cells(text: str) -> int:
    """How wide a terminal shows a text: other scripts and emoji have marks without width, and characters of two."""
    marks = {"Cf", "Mn", "Me"}
    return sum(
        2 if unicodedata.east_asian_width(each) in "WF" else 1
        for each in text
        if unicodedata.category(each) not in marks
    )


def table(columns: tuple[tuple[str, int], ...], rows: Sequence[tuple[str, ...]]) -> bool:
    """Prints the first rows under their titles. False where there is none."""
    print("\n   " + bold("  ".join(fit(title.upper(), width) for title, width in columns)).rstrip())
    for row in rows[:ROWS_SHOWN]:
        pairs = zip(row, columns, strict=True)
        print("   " + "  ".join(fit(cell, width) for cell, (_, width) in pairs).rstrip())
    if len(rows) > ROWS_SHOWN:
        print(dim(f"   ... and {len(rows) - ROWS_SHOWN} more"))
    print()
    return bool(rows)


def show_listing(data: dict[str, Any], took: str) -> bool:
    """Prints a listing's totals and its first products."""
    print(
        f"   {bold(data['heading'] or data['title'])}: {data['total_results'] or 0:,} products reported, "
        f"page {data['page']} of {data['max_page']}, {data['returned']} products on it, {took}"
    )
    return table(PRODUCT_COLUMNS, [product_row(product) for product in data["products"]])


def show_post(data: dict[str, Any], took: str) -> bool:
    """Prints a post and its owner's newest posts."""
    post = data["data"]["xdt_shortcode_media"]
    owner = post["owner"]
    likes, comments = post["edge_media_preview_like"]["count"], post["edge_media_to_comment"]["count"]
    caption = "".join(edge["node"]["text"] for edge in post["edge_media_to_caption"]["edges"])
    print(
        f"   {bold('@' + owner['username'])} ({owner['full_name']}), {day(post['taken_at_timestamp'])}: "
        f"{'-' if likes is None else f'{likes:,}'} likes, {'-' if comments is None else f'{comments:,}'} comments, "
        f"{len(post['edge_media_to_tagged_user']['edges'])} people tagged, {took}\n   {caption}"
    )
    listed = [edge["node"] for edge in owner["polaris_ordered_timeline_connection"]["edges"]]
    rows = [(item["code"], KINDS.get(item["media_type"], "-"), item["caption"]["text"] or "-") for item in listed]
    return table(TIMELINE_COLUMNS, rows)


def show_profile(data: dict[str, Any], took: str) -> bool:
    """Prints a member's profile and career."""
    held = ", ".join(f"{len(data[name])} {name}" for name in SECTIONS if data[name])
    print(f"   {bold(data['fullName'])}, {data['location']}: {data['followers']}, {data['connections']}, {took}")
    print(f"   {data['headline']}\n   {held}")
    rows = [
        (row["job_title"] or "-", row["company_name"] or "-", row["date_range"] or "-") for row in data["experience"]
    ]
    return table(POSITION_COLUMNS, rows)


def show_search(data: dict[str, Any], took: str) -> bool:
    """Prints the first photo posts that a search found."""
    posts = data["search_item_list"]
    print(f"   {len(posts)} photo posts, {'more to come' if data['has_more'] else 'no more'}, {took} by a browser")
    rows = [
        (
            "@" + post["author"]["unique_id"],
            post["desc"] or "-",
            str(len(post["image_post_info"]["images"])),
            f"{post['statistics']['digg_count']:,}",
            day(post["create_time"]),
        )
        for post in posts
    ]
    return table(POST_COLUMNS, rows)


def day(seconds: int) -> str:
    """The day of a Unix time."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")


SHOWN = {
    "retail-category-v4": show_listing,
    "retail-search-v4": show_listing,
    "photoapp-post-v4": show_post,
    "professional-profile": show_profile,
    "shortvideo-photo-search-v4": show_search,  # its page signs its own calls: a real browser loads it
}
"""The calls of the demo, each with what prints its data."""


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
    for number, (name, show) in enumerate(SHOWN.items(), start=1):
        params = scrapers[name]["example"]
        print(f"{number}. {bold(name)}  {json.dumps(params)}\n   {dim(scrapers[name]['summary'])}\n")
        envelope = call(base, name, params)
        if not envelope["success"] or not show(envelope["data"], f"in {envelope['meta']['duration_ms']:,} ms"):
            print(json.dumps(envelope, indent=2))
            return False

    print(f"{len(SHOWN) + 1}. {bold('A category that does not exist')}  {json.dumps(UNKNOWN_CATEGORY)}\n")
    status = call(base, CURLED, UNKNOWN_CATEGORY)["status"]
    print(f"   {status['code']} (retryable: {json.dumps(status['retryable'])}): {status['message']}\n")
    return bool(status["code"] == "TARGET_NOT_FOUND")


def main() -> int:
    """Runs the demo. Returns the exit code: 1 when a call was not answered as it must be."""
    parser = argparse.ArgumentParser(description="Show the service at work, against simulated platforms.")
    parser.add_argument("--stay", action="store_true", help="keep the service running afterwards")
    stay: bool = parser.parse_args().stay
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the service is ended then too

    print("\nStarting the endpoint and the simulated platforms on this machine ...", flush=True)
    with service() as base:
        print(f"Ready: {bold(base)}\n")
        if not show_calls(base):
            return 1
        example = catalogue(base)[CURLED]["example"]
        print(bold("The same call with curl:") + "\n")
        if stay:
            print(f"{curl(base, CURLED, example)}\n\nThe service keeps running; Ctrl-C ends it.", flush=True)
            with contextlib.suppress(KeyboardInterrupt):
                while True:
                    time.sleep(3600)
        else:
            print(f"{Path(sys.executable).parent / 'scrapy'} serve --sandbox &   # this demo's own service ends now")
            print(f"{curl('http://127.0.0.1:8000', CURLED, example)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
