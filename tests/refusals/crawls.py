"""Crawls whose targets get refusals: one crawl for all refusals of a platform."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from crawler.registry import scrapers, spiders
from crawler.targets.parser import TargetParser
from scripts import captures
from tests import crawls, forks
from tests.microblog_pages import timeline_of
from tests.refusals.log import ENABLED
from tests.refusals.server import Page, Replay, replaying

RETRY_TIMES = 2
"""Unlike the number of a page's repetitions, so that both can be told apart."""
SETTINGS = {
    "TARGETS_IN_FLIGHT": 1,
    "BREAKER_THRESHOLD": 1_000_000,
    "RETRY_TIMES": RETRY_TIMES,
    "BROWSER_QUIET": 2,
    "BROWSER_SCROLL_PAUSE": 0,
    "RETRY_AFTER_MAX": 0.1,
    "BREAKER_COOLDOWN": 0.1,
    "UNREAD_KEEP": 0,
}
CODES = (r"\"shortcode\\?\":\\?\"([\w-]+)", r"/p/([\w-]{8,})/", r"\"code\":\s*\"([\w-]{9,})\"")
SLUG = re.compile(r"rel=\"canonical\" href=\"[^\"]*/in/([\w-]+)")
HANDLE = re.compile(r"\"screen_name\":\s*\"(\w+)\"")


@dataclass(frozen=True)
class Refusal:
    """A target that gets a refusal: a recorded page, or a fault of the simulated platform."""

    name: str
    """The name of the recorded page (and the number of its response), or the fault's."""
    platform: str
    params: dict[str, Any]
    page: Page | None = None
    """The recorded page. None: the simulated platform answers."""


@dataclass
class Replayed:
    """What a crawl did with a refusal."""

    pages: list[dict[str, Any]] = field(default_factory=list)
    """The counted pages, in order: with ``source``, ``code``, ``reason``, ``alarm``, ``details`` and ``breaker``."""
    outcome: dict[str, Any] = field(default_factory=dict)
    kept: list[str] = field(default_factory=list)
    """The reasons of the pages that would be kept."""
    requests: dict[str, float] = field(default_factory=dict)
    """Source -> the number of requests for each counted page, of both releases after a rate limit."""


def recorded(platform: str, name: str, status: int = 200) -> Refusal:
    """Return the refusal of a recorded page.

    ``name``: of the capture, with ``#2`` for the second of its responses. ``status``: the recorded HTTP status.
    """
    capture, _, number = name.partition(" #")
    body = captures.body_of(capture)
    if number:
        response = json.loads(body)[int(number) - 1]
        part, status = response["body"], response["status"]
        body = part.encode() if isinstance(part, str) else json.dumps(part, ensure_ascii=False).encode()
    text = body.decode(errors="replace")
    scraper = next(each for each in scrapers().values() if each.platform == platform)
    source = next((page.source for page in scraper.pages if page.recognise(text)), MAIN[platform])
    source = REQUESTED.get(name, source)
    params, others = PARAMS[platform](text, source, name.replace(" #", ""))
    return Refusal(name, platform, params, Page(source, body, status, others))


REQUESTED = {"901b56e9192b #5": "browse", "901b56e9192b #6": "resolve"}
"""The source of recorded pages that the page classes of several sources recognise."""


MAIN = {
    "microblog": "page",
    "photoapp": "page",
    "professional": "profile",
    "retail": "listing",
    "shortvideo": "search page",
    "videosite": "channel",
}
"""The source of the first request of a target."""


_NULL_ROW = {"itemType": "TimelineTweet", "tweet_results": {"result": None}}
_NULL_ROWS = [{"entryId": "tweet-9", "content": {"entryType": "TimelineTimelineItem", "itemContent": _NULL_ROW}}]
MADE = {
    ("microblog", "null-user"): ("user", b'{"data": {"user": {"result": null}}}'),
    ("microblog", "null-rows"): ("timeline", timeline_of({"type": "TimelineAddEntries", "entries": _NULL_ROWS})),
}
"""Platform and name of pages that neither were recorded nor are faults of the simulated platform: source and body."""


TARGETS: dict[tuple[str, str], dict[str, Any]] = {
    ("retail", "filter-ignored"): {"query": "filter-ignored", "min_price": 20, "max_price": 30},
}
"""Platform and fault of targets that are refused only with further params."""


def simulated(platform: str, fault: str) -> Refusal:
    """Return the refusal of a fault of the simulated platform, of a target, or of a page in ``MADE``."""
    if (platform, fault) in MADE:
        source, body = MADE[platform, fault]
        params, others = PARAMS[platform](body.decode(), source, fault.replace("-", "_"))
        return Refusal(fault, platform, params, Page(source, body, others=others))
    if (platform, fault) in TARGETS:
        return Refusal(fault, platform, TARGETS[platform, fault])
    site = import_module(f"crawler.sandbox.{platform}.site").Site()
    return Refusal(fault, platform, site.catalogue()["faults"][fault]["params"])


# The params of a target that gets a recorded page, and the status of its other sources


def _photoapp(text: str, _source: str, name: str) -> tuple[dict[str, Any], int]:
    found = next(filter(None, (re.search(pattern, text) for pattern in CODES)), None)
    code = found[1] if found else f"C{name[:10]}"
    return {"url": f"https://www.instagram.com/p/{code}/"}, 500


def _professional(text: str, _source: str, name: str) -> tuple[dict[str, Any], int]:
    found = SLUG.search(text)
    return {"url": f"https://www.linkedin.com/in/{found[1] if found else f'member-{name}'}"}, 500


def _retail(_text: str, _source: str, name: str) -> tuple[dict[str, Any], int]:
    return {"cat_id": str(int(name[:7], 16))}, 500


def _videosite(_text: str, source: str, name: str) -> tuple[dict[str, Any], int]:
    if source == "browse":
        return {"username": f"UC{name:_<22}"[:24]}, 500
    if source in {"channel", "resolve"}:
        return {"username": f"@c{name}"}, 500
    return {"username": "@harborlights", "details": 17 + int(name[:4], 16) % 900}, 200


def _microblog(text: str, source: str, name: str) -> tuple[dict[str, Any], int]:
    if source == "timeline":
        return {"username": "quiet_harbor"}, 200
    found = HANDLE.search(text)
    return {"username": found[1] if found else f"m{name}"}, 500


def _shortvideo(_text: str, source: str, name: str) -> tuple[dict[str, Any], int]:
    return {"keywords": name}, 200 if source == "search" else 500


PARAMS = {
    "microblog": _microblog,
    "photoapp": _photoapp,
    "professional": _professional,
    "retail": _retail,
    "shortvideo": _shortvideo,
    "videosite": _videosite,
}


@contextmanager
def served(platform: str, refusals: Iterable[Refusal]) -> Iterator[tuple[Replay, dict[str, Any]]]:
    """Serve refusals. Yields the server, and the settings of a crawl that uses it."""
    with crawls.sandbox() as settings:
        sandbox = json.loads(settings["PLATFORM_ORIGINS"])[platform]
        pages = {each.name: each.page for each in refusals if each.page}
        with replaying(pages, sandbox) as replay:
            yield replay, {**settings, "PLATFORM_ORIGINS": json.dumps({platform: replay.origin}), **SETTINGS}


def replay(
    platform: str, refusals: list[Refusal], folder: Path, **options: Any
) -> tuple[int, Mapping[str, Replayed], str]:
    """Crawl the targets of refusals, one after the other. Return the exit code, the refusals by name, and the log.

    ``folder``: exists, for the crawl's files. ``options``: settings of the crawl.
    """
    (done,) = replay_each(platform, {folder: refusals}, **options)
    return done


def replay_each(
    platform: str, batches: Mapping[Path, list[Refusal]], **options: Any
) -> list[tuple[int, Mapping[str, Replayed], str]]:
    """Do as ``replay`` for each batch (folder -> refusals). The crawls run beside each other, since they mostly wait.

    No refusal may be in two batches, because the server counts its responses by name.
    """
    with (
        served(platform, itertools.chain.from_iterable(batches.values())) as (server, settings),
        ThreadPoolExecutor(len(batches)) as pool,
    ):
        crawled = [
            pool.submit(_replay, platform, refusals, folder, server, {**settings, **options})
            for folder, refusals in batches.items()
        ]
        return [each.result() for each in crawled]


def _replay(
    platform: str, refusals: list[Refusal], folder: Path, server: Replay, settings: dict[str, Any]
) -> tuple[int, Mapping[str, Replayed], str]:
    log, targets = folder / "replay.jsonl", folder / "targets.jsonl"
    parser = TargetParser(spiders()[platform].scrapers)
    rows = ({"id": each.name, "scraper": parser.scraper(None, each.params).name, **each.params} for each in refusals)
    targets.write_text("".join(json.dumps(row) + "\n" for row in rows))
    given = {"REPLAY_LOG": log, "FAILURES_FEED": folder / "failures.jsonl", **settings}
    command = crawls.command(platform, {"targets": targets}, given, "-s", ENABLED, "-O", str(folder / "out.jsonl"))
    done = forks.run(command, timeout=300)
    found = {each.name: Replayed() for each in refusals}
    for line in crawls.lines(log):
        one = found[line["target"]]
        if "outcome" in line:
            one.outcome = line
        elif "kept" in line:
            one.kept.append(line["kept"])
        else:
            one.pages.append(line)
    for (name, source), number in list(server.sent.items()):
        if name in found:
            counted = sum(page["source"] == source for page in found[name].pages)
            again = f"event=target_postponed id={name} " in done.stderr  # each release is counted on its own
            found[name].requests[source] = number if again else number / (counted or 1)
    return done.returncode, found, done.stderr
