"""The crawls of the sandbox: all targets of the list, by variant, seed and platform."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scripts.captures import ROOT
from scripts.golden.outcome import Outcome, canonical, failure
from scripts.golden.record import PLAIN, Selection

TARGETS = Path(__file__).with_name("targets.jsonl")
SEEDS = (1, 2, 3)
CRAWL_TIMEOUT_SECONDS = 1800
"""Timeout of a crawl."""
MAX_PARAM_CHARACTERS = 80
"""Characters of a param in a key. Longer params (cursors) are hashed."""

Outcomes = dict[str, Outcome]


@dataclass(frozen=True)
class Variant:
    """A kind of crawl: settings and spider arguments in addition to the common ones."""

    settings: dict[str, object] = field(default_factory=dict)
    arguments: dict[str, str] = field(default_factory=dict)


# Timeouts are far longer than a response takes, so that the load of the machine has no influence. Variants whose
# targets wait for a timeout shorten it.
SETTINGS: dict[str, object] = {
    "BREAKER_THRESHOLD": 0,
    "BROWSER_QUIET": 30,
    "BROWSER_SCROLL_PAUSE": 0,
    "DOWNLOAD_TIMEOUT": 120,
    "HTTPPROXY_ENABLED": 0,
    "LOG_LEVEL": "CRITICAL",
    "RETRY_BACKOFF_BASE": 0.02,
    "SOURCE_TIMEOUT": 120,
    "TARGETS_IN_FLIGHT": 16,
}
VARIANTS = {
    "plain": Variant(),
    "bare": Variant({"VIDEOSITE_ENRICH_MAX": 0}),
    "deadline": Variant({"TARGET_TIMEOUT": 0.5, "DOWNLOAD_TIMEOUT": 2, "SOURCE_TIMEOUT": 2, "RETRY_TIMES": 0}),
    # One target at a time: if several slices list a product, the order decides which slice returns it.
    "exhaustive": Variant({"LISTING_CEILING": 150, "TARGETS_IN_FLIGHT": 1}, {"exhaustive": "true"}),
    "explode": Variant(),
    "fallback": Variant({"BROWSER_QUIET": 8}),
    "hang": Variant({"DOWNLOAD_TIMEOUT": 2, "SOURCE_TIMEOUT": 2, "RETRY_TIMES": 1}),
    "pages": Variant(arguments={"max_pages": "3"}),
    "plays": Variant({"PHOTOAPP_PLAY_COUNTS": 1}),
    "quiet": Variant({"BROWSER_QUIET": 3}),
    "robots": Variant({"ROBOTSTXT_OBEY": 1}),
}
EXPLODE_PATHS = {"microblog": "main", "retail": "products"}
"""By platform: the list whose rows become lines of the feed."""


@dataclass(frozen=True)
class Checkout:
    """A checkout of the project: the folder whose code runs."""

    folder: Path = ROOT

    @property
    def python(self) -> str:
        """The interpreter: that of the checkout's environment, which may have other libraries; else this one."""
        own = self.folder / ".venv" / "bin" / "python"
        return sys.executable if self.folder == ROOT or not own.exists() else str(own)

    @property
    def environment(self) -> dict[str, str]:
        """The environment of commands: this checkout's package, and the project's default settings."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("CRAWLER_", "SCRAPY_"))}
        return {**kept, "PYTHONPATH": str(self.folder)}

    @contextlib.contextmanager
    def sandbox(self, seed: int) -> Iterator[dict[str, str]]:
        """Run the simulated platforms, and yield their origins. Each run resets faults of the first request."""
        command = [self.python, "-m", "scrapy", "sandbox", "--seed", str(seed)]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, cwd=self.folder, env=self.environment
        ) as process:
            try:
                assert process.stdout is not None
                yield json.loads(process.stdout.readline())["origins"]
            finally:
                process.kill()


def shortened(value: object) -> object:
    """Hash long texts in params, for a key."""
    if isinstance(value, dict):
        return {key: shortened(each) for key, each in value.items()}
    if isinstance(value, str) and len(value) > MAX_PARAM_CHARACTERS:
        return f"sha256:{hashlib.sha256(value.encode()).hexdigest()[:16]}"
    return value


@dataclass(frozen=True)
class Crawl:
    """The targets of one platform in one variant and sandbox, as lines of a targets file."""

    variant: str
    seed: int
    platform: str
    lines: list[str]
    checkout: Checkout = Checkout()

    @property
    def suffix(self) -> str:
        """The suffix of a key, with the variant."""
        return "" if self.variant == PLAIN else f" [{self.variant}]"

    def command(self, origins: dict[str, str], folder: Path) -> list[str]:
        """Return the command line. Its files are in ``folder``."""
        variant = VARIANTS[self.variant]
        arguments = {"targets": str(folder / "targets.jsonl"), **variant.arguments}
        if self.variant == "explode":
            arguments["explode"] = EXPLODE_PATHS[self.platform]
        settings = SETTINGS | variant.settings
        settings |= {"BROWSER_FALLBACK": self.platform} if self.variant == "fallback" else {}
        settings |= {
            "FAILURES_FEED": str(folder / "failures.jsonl"),
            "PLATFORM_ORIGINS": json.dumps(origins),
            "PLATFORM_BUDGETS": json.dumps({name: {"concurrency": 16, "delay": 0, "sources": {}} for name in origins}),
        }
        command = [self.checkout.python, "-m", "scrapy", "crawl", self.platform, "-O", str(folder / "out.jsonl")]
        command += [part for name, value in arguments.items() for part in ("-a", f"{name}={value}")]
        return command + [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]

    def run(self, origins: dict[str, str]) -> Outcomes:
        """Run the crawl. Return its outcome and those of its targets."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "targets.jsonl").write_text("".join(f"{line}\n" for line in self.lines))
            run = subprocess.run(
                self.command(origins, folder),
                check=False,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=self.checkout.folder,
                env=self.checkout.environment,
                timeout=CRAWL_TIMEOUT_SECONDS,
            )
            out, failures = lines_of(folder / "out.jsonl"), lines_of(folder / "failures.jsonl")
        targets = group_by_target(out) if self.variant == "explode" else [[line] for line in out]
        found = [(self.key(lines[0]), self.success(lines)) for lines in targets]
        for line in failures:
            outcome = failure(line["code"], line["message"], line["upstream"], line["details"])
            found.append((self.key(line), outcome))
        crawl = Outcome(f"EXIT {run.returncode}", f"{len(out)} lines, {len(failures)} failures")
        return numbered([*found, (f"sandbox/{self.seed}/{self.platform}{self.suffix}", crawl)])

    def success(self, lines: list[dict[str, Any]]) -> Outcome:
        """Return the outcome of a target with data, from its lines."""
        omitted = {"target_id", "fetched_at", "warnings"}
        rows = [{name: line[name] for name in line.keys() - omitted} for line in lines]
        data = rows if self.variant == "explode" else lines[0]["data"]
        return Outcome("OK", warnings=tuple(map(canonical, lines[0]["warnings"])), data=data)

    def key(self, line: dict[str, Any]) -> str:
        """Return the key of a line of a feed."""
        params = canonical(shortened(line["params"]))
        return f"sandbox/{self.seed}/{line['scraper'] or self.platform}/{params}{self.suffix}"


def group_by_target(lines: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Group the lines of a feed of rows by target, in order."""
    targets: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in lines:
        targets[line["target_id"]].append(line)
    return list(targets.values())


def numbered(found: list[tuple[str, Outcome]]) -> Outcomes:
    """Return outcomes by key. Keys of targets with equal params get a number, in the order of their rows."""
    times: Counter[str] = Counter()
    named: Outcomes = {}
    for key, outcome in sorted(found, key=lambda each: (each[0], canonical(each[1].row()))):
        times[key] += 1
        named[key if times[key] == 1 else f"{key} #{times[key]}"] = outcome
    return named


def lines_of(file: Path) -> list[Any]:
    """Return the objects of a JSON Lines file; an empty list for a missing file."""
    return [json.loads(line) for line in file.read_bytes().splitlines()] if file.exists() else []


def listed() -> list[dict[str, Any]]:
    """Return the list of targets."""
    return [json.loads(line) for line in TARGETS.read_text().splitlines()]


def platform_of(target: dict[str, Any]) -> str:
    """Return the platform of a target of the list. Names of scrapers begin with it."""
    return str(target.get("platform") or target["scraper"].partition("-")[0])


def crawls(checkout: Checkout, only: Selection) -> list[list[Crawl]]:
    """Return the crawls, in groups that share a sandbox."""
    groups: dict[tuple[str, int], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for number, target in enumerate(listed()):
        if "captures" in target:
            continue
        platform = platform_of(target)
        line = target.get("line") or json.dumps(
            {"id": str(number), "scraper": target["scraper"], **target["params"]}, ensure_ascii=False
        )
        for variant in target.get("variants", [PLAIN]):
            for seed in target.get("seeds", SEEDS):
                if only.covers(platform, variant, seed):
                    groups[variant, seed][platform].append(line)
    return [
        [Crawl(variant, seed, platform, lines, checkout) for platform, lines in platforms.items()]
        for (variant, seed), platforms in groups.items()
    ]


def run_group(group: list[Crawl]) -> Iterator[Outcomes]:
    """Run the crawls of one sandbox in turn, and yield the outcomes of each."""
    with group[0].checkout.sandbox(group[0].seed) as origins:
        for crawl in group:
            began = time.monotonic()
            outcomes = crawl.run(origins)
            duration = time.monotonic() - began
            text = f"{crawl.platform}{crawl.suffix}, seed {crawl.seed}: {len(outcomes)} rows, {duration:.1f} s"
            print(text, file=sys.stderr)
            yield outcomes
