"""The demo: a service with the simulated platforms, a call of each scraper, a failure, and what to try next.

The demo uses only the standard library and plain HTTP, like any client of the service. While it waits, it prints a line
every few seconds.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import unicodedata
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar
from urllib.error import HTTPError, URLError
from urllib.request import ProxyHandler, Request, build_opener

T = TypeVar("T")

ROOT = Path(__file__).parents[1]
API_KEY = "sandbox"  # the one key that a service started with --sandbox accepts
READY_TIMEOUT_SECONDS = 60.0
PROGRESS_SECONDS = 3.0  # between the lines that say what the demo waits for
MAX_ROWS = 6
MAX_LOG = 3_000  # characters of the endpoint's log that are shown after a failure
MAX_JSON = 200  # characters of a field's value
CALL_TIMEOUT_SECONDS = 130  # longer than the longest deadline of a call
PRODUCT_COLUMNS = (("product", 38), ("price", 17), ("rating", 14), ("seller", 22), ("availability", 14))
TIMELINE_COLUMNS = (("newest posts", 14), ("kind", 10), ("caption", 77))
POSITION_COLUMNS = (("position", 38), ("company", 33), ("dates", 32))
CONTENT_COLUMNS = (("content", 9), ("caption", 58), ("author", 18), ("likes", 8), ("comments", 8))
ACCOUNT_COLUMNS = (("post", 64), ("likes", 10), ("views", 10), ("posted", 10))
FIELD_COLUMNS = (("field", 30), ("value", 73))
POST_COLUMNS = (("author", 18), ("caption", 57), ("photos", 7), ("likes", 10), ("posted", 10))
KINDS = {1: "photo", 2: "video", 8: "carousel"}
SECTIONS = ("skills", "languages", "certifications", "publications", "projects", "awards", "recommendations")
UNKNOWN_CATEGORY = {"cat_id": "1_2_3"}
CURL_SCRAPER = "retail-category-v4"
IN_BROWSER = "shortvideo-photo-search-v4"  # its page signs its own calls, so Chromium loads it
CHROMIUM = ROOT / "scripts" / "chromium"

http = build_opener(ProxyHandler({}))  # no proxy from the environment for loopback


def bold(text: str) -> str:
    """Return bold text on a terminal."""
    return f"\033[1m{text}\033[0m" if sys.stdout.isatty() else text


def dim(text: str) -> str:
    """Return dim text on a terminal."""
    return f"\033[2m{text}\033[0m" if sys.stdout.isatty() else text


@contextlib.contextmanager
def service() -> Iterator[tuple[str, Callable[[], str]]]:
    """Run ``scrapy serve --sandbox`` on a free port of loopback, and terminate it afterwards.

    Yields its base URL, and a function that returns the end of its log.

    Raises:
        SystemExit: the service exited, or is not ready in time. The message contains its log.
    """
    with tempfile.TemporaryFile("w+") as log:

        def end_of_log() -> str:
            log.seek(0)
            return log.read()[-MAX_LOG:]

        command = [sys.executable, "-m", "scrapy", "serve", "--sandbox", "--port", "0"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            assert process.stdout is not None
            base = wait_for("The endpoint starts", process.stdout.readline).removeprefix("listening on ").strip()
            if not base or not wait_for("The endpoint starts", lambda: is_ready(base, process)):
                raise SystemExit(f"The service did not start:\n{end_of_log()}")
            yield base, end_of_log
        finally:
            process.terminate()
            process.wait(timeout=60)


def wait_for(title: str, work: Callable[[], T]) -> T:
    """Return the result of a function. Print a line every few seconds until there is one."""
    started = time.monotonic()
    with ThreadPoolExecutor(max_workers=1) as pool:
        result = pool.submit(work)
        while True:
            try:
                return result.result(timeout=PROGRESS_SECONDS)
            except TimeoutError:
                if result.done():  # the function itself timed out
                    raise
                print(dim(f"   {title}: {time.monotonic() - started:.0f} s"), flush=True)


def is_ready(base: str, process: subprocess.Popen[str]) -> bool:
    """Wait until the service accepts calls. Return False if it exited or the timeout is over."""
    deadline = time.monotonic() + READY_TIMEOUT_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(URLError, ConnectionError), http.open(f"{base}/readyz"):
            return True
        time.sleep(0.1)
    return False


def catalogue(base: str) -> dict[str, dict[str, Any]]:
    """Return the service's scrapers by name."""
    with http.open(f"{base}/v1/scrapers") as response:
        return {scraper["name"]: scraper for scraper in json.load(response)["scrapers"]}


def call(base: str, scraper: str, params: dict[str, Any]) -> dict[str, Any]:
    """Make one call and return the envelope. Failures have the same envelope with another HTTP status."""
    headers = {"Content-Type": "application/json", "X-API-Key": API_KEY}
    request = Request(f"{base}/v1/scrapers/{scraper}", json.dumps(params).encode(), headers)
    try:
        with http.open(request, timeout=CALL_TIMEOUT_SECONDS) as response:
            envelope: dict[str, Any] = json.load(response)
    except HTTPError as error:
        envelope = json.load(error)
    return envelope


def product_row(product: dict[str, Any]) -> tuple[str, ...]:
    """Return a product as cells of the table, with a dash for missing values."""
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
    """Format a price, a range of prices, or a dash."""
    if price["is_price_range"] and price["min_price"] is not None:
        high = price.get("max_price")
        return f"from ${price['min_price']:,.2f}" if high is None else f"${price['min_price']:,.2f} - ${high:,.2f}"
    return "-" if price["current_price"] is None else f"${price['current_price']:,.2f}"


def fit(text: str, width: int) -> str:
    """Truncate or pad text to the width of its column."""
    shown = " ".join(text.split())
    if cells(shown) > width:
        while cells(shown) >= width:
            shown = shown[:-1]
        shown += "…"
    return shown + " " * (width - cells(shown))


def cells(text: str) -> int:
    """Return the width of a text on a terminal: some characters have no width, others take two cells."""
    marks = {"Cf", "Mn", "Me"}
    return sum(
        2 if unicodedata.east_asian_width(each) in "WF" else 1
        for each in text
        if unicodedata.category(each) not in marks
    )


def table(columns: tuple[tuple[str, int], ...], rows: Sequence[tuple[str, ...]]) -> bool:
    """Print the first rows under their titles. Return False without rows."""
    print("\n   " + bold("  ".join(fit(title.upper(), width) for title, width in columns)).rstrip())
    for row in rows[:MAX_ROWS]:
        pairs = zip(row, columns, strict=True)
        print("   " + "  ".join(fit(cell, width) for cell, (_, width) in pairs).rstrip())
    if len(rows) > MAX_ROWS:
        print(dim(f"   ... and {len(rows) - MAX_ROWS} more"))
    print()
    return bool(rows)


def show_listing(data: dict[str, Any], took: str) -> bool:
    """Print a listing's totals and its first products."""
    print(
        f"   {bold(data['heading'] or data['title'])}: {data['total_results'] or 0:,} products reported, "
        f"page {data['page']} of {data['max_page']}, {data['returned']} products on it, {took}"
    )
    return table(PRODUCT_COLUMNS, [product_row(product) for product in data["products"]])


def show_post(data: dict[str, Any], took: str) -> bool:
    """Print a post and its owner's newest posts."""
    post = data["data"]["xdt_shortcode_media"]
    owner = post["owner"]
    likes, comments = post["edge_media_preview_like"]["count"], post["edge_media_to_comment"]["count"]
    caption = "".join(edge["node"]["text"] for edge in post["edge_media_to_caption"]["edges"])
    print(
        f"   {bold('@' + owner['username'])} ({owner['full_name']}), {day(post['taken_at_timestamp'])}: "
        f"{count(likes)} likes, {count(comments)} comments, "
        f"{len(post['edge_media_to_tagged_user']['edges'])} people tagged, {took}\n   {caption}"
    )
    listed = [edge["node"] for edge in owner["polaris_ordered_timeline_connection"]["edges"]]
    rows = [(item["code"], KINDS.get(item["media_type"], "-"), item["caption"]["text"] or "-") for item in listed]
    return table(TIMELINE_COLUMNS, rows)


def show_profile(data: dict[str, Any], took: str) -> bool:
    """Print a member's profile and career."""
    sections = ", ".join(f"{len(data[name])} {name}" for name in SECTIONS if data[name])
    print(f"   {bold(data['fullName'])}, {data['location']}: {data['followers']}, {data['connections']}, {took}")
    print(f"   {data['headline']}\n   {sections}")
    rows = [
        (row["job_title"] or "-", row["company_name"] or "-", row["date_range"] or "-") for row in data["experience"]
    ]
    return table(POSITION_COLUMNS, rows)


def show_content(data: dict[str, Any], took: str) -> bool:
    """Print a profile and its newest content: a member's posts, or a channel's items."""
    profile, posts = data["profile"], data["posts"]
    print(
        f"   {bold(profile['display_name'])} ({profile['username']}): {profile['subscriber_count_text']}, "
        f"{len(posts)} posts, {'more to come' if data['pagination']['has_more'] else 'no more'}, {took}"
    )
    rows = [
        (
            post["content_type"],
            post["caption"] or "-",
            post["author_name"] or "-",
            count(post["like_count"]),
            count(post["comment_count"]),
        )
        for post in posts
    ]
    return table(CONTENT_COLUMNS, rows)


def show_account(data: dict[str, Any], took: str) -> bool:
    """Print an account and a page of its posts."""
    account, posts = data["data"]["additional"]["profile_demographics"], data["data"]["main"]
    print(
        f"   {bold('@' + account['screen_name'])} ({account['name']}): {count(account['followers_count'])} followers, "
        f"{count(account['statuses_count'])} posts, {took}" + f"\n   {account['description']}".rstrip()
    )
    rows = [
        (post["caption"] or "-", count(post["like_count"]), count(post["view_count"]), day(post["upload_timestamp"]))
        for post in posts
    ]
    return table(ACCOUNT_COLUMNS, rows)


def show_fields(data: dict[str, Any], took: str) -> bool:
    """Print the fields of any record: for a scraper without a function of its own."""
    print(f"   {len(data)} fields, {took}")
    rows = [(name, json.dumps(value, ensure_ascii=False)[:MAX_JSON]) for name, value in data.items()]
    return table(FIELD_COLUMNS, rows)


def count(number: int | None) -> str:
    """Format a number, or a dash for a missing one."""
    return "-" if number is None else f"{number:,}"


def show_search(data: dict[str, Any], took: str) -> bool:
    """Print the first photo posts of a search."""
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
    """Format a Unix time as a day."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")


SHOWN_BY = {
    "retail-category-v4": show_listing,
    "retail-search-v4": show_listing,
    "microblog-profile": show_account,
    "photoapp-post-v4": show_post,
    "professional-profile": show_profile,
    "professional-profile-v4": show_content,
    "videosite-profile-v3": show_content,
    "videosite-profile": show_content,
    IN_BROWSER: show_search,
}
"""Scraper -> the function that prints its data. These scrapers are called first."""


def curl(base: str, scraper: str, params: dict[str, Any]) -> str:
    """Return the call as a curl command."""
    return (
        f"curl -s {base}/v1/scrapers/{scraper} \\\n"
        f"     -H 'X-API-Key: {API_KEY}' -H 'Content-Type: application/json' \\\n"
        f"     -d {shlex.quote(json.dumps(params))}"
    )


def show_calls(base: str) -> bool:
    """Make the demo's calls and print their data. Return False after an unexpected response."""
    scrapers = catalogue(base)
    names = [*SHOWN_BY, *sorted(scrapers.keys() - SHOWN_BY.keys())]
    is_complete = True
    for number, name in enumerate(names, start=1):
        params = scrapers[name]["example"]
        print(f"{number}. {bold(name)}  {json.dumps(params)}\n   {dim(scrapers[name]['summary'])}\n")
        if name == IN_BROWSER and not has_chromium():
            print("   Not called, because Chromium could not be installed: see above.\n")
            is_complete = False
            continue
        envelope = wait_for("The scraper works", lambda name=name, params=params: call(base, name, params))  # type: ignore[misc]
        show = SHOWN_BY.get(name, show_fields)
        if not envelope["success"] or not show(envelope["data"], f"in {envelope['meta']['duration_ms']:,} ms"):
            print(json.dumps(envelope, indent=2))
            return False

    print(f"{len(names) + 1}. {bold('A category that does not exist')}  {json.dumps(UNKNOWN_CATEGORY)}\n")
    status = call(base, CURL_SCRAPER, UNKNOWN_CATEGORY)["status"]
    print(f"   {status['code']} (retryable: {json.dumps(status['retryable'])}): {status['message']}\n")
    return is_complete and bool(status["code"] == "TARGET_NOT_FOUND")


def has_chromium() -> bool:
    """Install Chromium if it is missing. Return False if this fails."""
    print("   This scraper loads its page in Chromium. If Chromium is missing, it is installed now (about 100 MB).")
    return subprocess.run([CHROMIUM], check=False).returncode == 0


NEXT = """
source .venv/bin/activate
scrapy crawl retail -a cat_id=976759 -a explode=products -s SANDBOX=1 -O products.csv   # a list as CSV
scripts/demo --stay                                       # the endpoint and its console, until Ctrl-C
scrapy probe --all                                        # the real platforms: which scrapers work from here?
"""
"""What to try after the demo."""


def open_in_browser(url: str) -> None:
    """Open a page in the user's browser. Do nothing without a display, where Python would start a text browser."""
    if sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        webbrowser.open(url)


def main() -> int:
    """Run the demo. Return the exit code: 1 after an unexpected response."""
    parser = argparse.ArgumentParser(description="Call the service, with simulated platforms.")
    parser.add_argument("--stay", action="store_true", help="open the console, and keep the service running")
    stay: bool = parser.parse_args().stay
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the service is terminated too

    print("\nStarting the endpoint and the simulated platforms on this machine ...", flush=True)
    with service() as (base, end_of_log):
        print(f"Ready: {bold(base)}\n")
        if not show_calls(base):
            print(f"Not all calls succeeded. The end of the endpoint's log:\n{end_of_log()}")
            return 1
        example = catalogue(base)[CURL_SCRAPER]["example"]
        if stay:
            print(f"{bold('The same call with curl:')}\n\n{curl(base, CURL_SCRAPER, example)}\n")
            print(f"The console: {bold(f'{base}/')}\n\nThe service keeps running; stop it with Ctrl-C.", flush=True)
            open_in_browser(f"{base}/")
            with contextlib.suppress(KeyboardInterrupt):
                while True:
                    time.sleep(3600)
    print(f"{bold('Next:')}\n{NEXT}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
