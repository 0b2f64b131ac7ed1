"""A golden record of the project's behaviour: the outcomes of a fixed list of targets, to compare after a refactoring.

``write FILE`` runs the targets and writes one line each; ``compare FILE`` runs them again and prints the differences.

The script uses only interfaces for users (``scrapy sandbox``, ``scrapy crawl``, ``scrapy extract``) and imports nothing
of the package, so the record outlives renamed modules and classes. The targets are in ``golden_targets.jsonl``:
``scraper`` and ``params`` (or ``platform`` and ``line``, a line that is not a valid target), the ``variants`` of the
crawl (default: plain), the ``seeds`` of the sandbox (default: 1 to 3), and the name of the sandbox's ``fault``, for the
reader. The sorted order of the faults' names assigns them to handles and ids: after a fault is added to the sandbox,
change the list.

Keys and values of the rows:

- ``sandbox/<seed>/<scraper>/<params> [<variant>]``: a target, or a follow-up request's target: error code, message,
  upstream status and reason, hash of the details, hash of the data.
- ``sandbox/<seed>/<platform> [<variant>]``: a crawl: exit code, number of lines of the feed and the failures feed.
- ``captures/<platform>/<file>``: a saved response. Messages may quote it, so they are hashed too.

The record omits values that differ between runs of the same code: generated ids, ``fetched_at``, durations, and the
port in origins; and the warnings, which ``tests/test_warnings.py`` checks.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from scrapy.cmdline import execute

ROOT = Path(__file__).resolve().parents[1]
TARGETS = Path(__file__).with_name("golden_targets.jsonl")
CAPTURES = ROOT.parent / "shared" / "captures"
SEEDS = (1, 2, 3)
CRAWL_TIMEOUT_SECONDS = 1800
"""Timeout of a crawl."""
MAX_PARAM_CHARACTERS = 80
"""Characters of a param in a key. Longer params (cursors) are hashed."""
SCRAPERS = {
    "microblog": {"microblog-profile": ""},
    "photoapp": {"photoapp-post-v4": ""},
    "professional": {"professional-profile": "", "professional-profile-v4": " content"},
    "retail": {"retail-category-v4": " category", "retail-search-v4": " search"},
    "shortvideo": {"shortvideo-photo-search-v4": ""},
    "videosite": {"videosite-profile-v3": "", "videosite-profile": " page"},
}
"""The scrapers for the captures of a platform, with the suffixes of their rows' keys."""

Row = dict[str, Any]
Rows = dict[str, Row]


CAPTURED = "captures"
"""The name of the captures in the option for variants."""


@dataclass(frozen=True)
class Selection:
    """A part of the record. An empty tuple selects all."""

    platforms: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    captures: bool = True
    """Whether the captures are available."""

    def covers(self, platform: str, variant: str, seed: int | None = None) -> bool:
        """Whether a crawl, or the captures of a platform, are in the selection."""
        return (
            platform in (self.platforms or (platform,))
            and (self.captures or variant != CAPTURED)
            and variant in (self.variants or (variant,))
            and (seed is None or seed in (self.seeds or (seed,)))
        )

    def covers_row(self, key: str) -> bool:
        """Whether a row is in the selection."""
        kind, first, rest = key.split("/", 2)
        if kind == CAPTURED:
            return self.covers(first, CAPTURED)
        platform = re.split("[-/ ]", rest, maxsplit=1)[0]
        variant = re.search(r" \[(\w+)\](?: #\d+)?$", rest)
        return self.covers(platform, variant[1] if variant else "plain", int(first))


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


def canonical(value: object) -> str:
    """Encode a value as JSON with sorted keys."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def digest(value: object) -> str:
    """Hash the canonical JSON of a value."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def shortened(value: object) -> object:
    """Hash long texts in params, for a key."""
    if isinstance(value, dict):
        return {key: shortened(each) for key, each in value.items()}
    if isinstance(value, str) and len(value) > MAX_PARAM_CHARACTERS:
        return f"sha256:{hashlib.sha256(value.encode()).hexdigest()[:16]}"
    return value


def failed_row(code: str, message: str, upstream: object, details: Sequence[object]) -> Row:
    """Return the row of a target without data."""
    message = re.sub(r"\b(127\.0\.0\.1|localhost):\d+", r"\1", message)
    more = {"upstream": upstream, "details": digest(details) if details else None}
    return {"code": code, "message": message, "data": None} | {name: value for name, value in more.items() if value}


def data_row(data: object) -> Row:
    """Return the row of a target with data."""
    return {"code": "OK", "message": "", "data": digest(data)}


# The sandbox


@dataclass(frozen=True)
class Crawl:
    """The targets of one platform in one variant and sandbox, as lines of a targets file."""

    variant: str
    seed: int
    platform: str
    lines: list[str]

    @property
    def suffix(self) -> str:
        """The suffix of a key, with the variant."""
        return "" if self.variant == "plain" else f" [{self.variant}]"

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
        command = [sys.executable, "-m", "scrapy", "crawl", self.platform, "-O", str(folder / "out.jsonl")]
        command += [part for name, value in arguments.items() for part in ("-a", f"{name}={value}")]
        return command + [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]

    def run(self, origins: dict[str, str]) -> Rows:
        """Run the crawl. Return its row and those of its targets."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "targets.jsonl").write_text("".join(f"{line}\n" for line in self.lines))
            run = subprocess.run(
                self.command(origins, folder),
                check=False,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=ROOT,
                env=environment(),
                timeout=CRAWL_TIMEOUT_SECONDS,
            )
            out, failures = lines_of(folder / "out.jsonl"), lines_of(folder / "failures.jsonl")
        rows: list[tuple[str, Row]] = []
        if self.variant == "explode":
            rows += [(self.key(lines[0]), data_row(lines)) for lines in group_by_target(out)]
        else:
            rows += [(self.key(line), data_row(line["data"])) for line in out]
        for line in failures:
            rows.append((self.key(line), failed_row(line["code"], line["message"], line["upstream"], line["details"])))
        crawl = failed_row(f"EXIT {run.returncode}", f"{len(out)} lines, {len(failures)} failures", None, ())
        return numbered([*rows, (f"sandbox/{self.seed}/{self.platform}{self.suffix}", crawl)])

    def key(self, line: dict[str, Any]) -> str:
        """Return the key of a line of a feed."""
        params = canonical(shortened(line["params"]))
        return f"sandbox/{self.seed}/{line['scraper'] or self.platform}/{params}{self.suffix}"


def group_by_target(lines: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Group the lines of a feed of rows by target, in order, without values that differ between runs."""
    targets: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in lines:
        omitted = {"target_id", "fetched_at", "warnings"}
        targets[line["target_id"]].append({name: line[name] for name in line.keys() - omitted})
    return list(targets.values())


def numbered(rows: list[tuple[str, Row]]) -> Rows:
    """Return rows by key. Keys of targets with equal params get a number."""
    times: Counter[str] = Counter()
    named: Rows = {}
    for key, row in sorted(rows, key=canonical):
        times[key] += 1
        named[key if times[key] == 1 else f"{key} #{times[key]}"] = row
    return named


def lines_of(file: Path) -> list[Any]:
    """Return the objects of a JSON Lines file; an empty list for a missing file."""
    return [json.loads(line) for line in file.read_bytes().splitlines()] if file.exists() else []


def environment() -> dict[str, str]:
    """Return the environment of the commands: this package, and the project's default settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CRAWLER_", "SCRAPY_"))}
    return {**kept, "PYTHONPATH": str(ROOT)}


@contextlib.contextmanager
def sandbox(seed: int) -> Iterator[dict[str, str]]:
    """Run the simulated platforms, and yield their origins. Each run resets faults of the first request."""
    command = [sys.executable, "-m", "scrapy", "sandbox", "--seed", str(seed)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment()) as process:
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())["origins"]
        finally:
            process.kill()


def listed() -> list[dict[str, Any]]:
    """Return the list of targets."""
    return [json.loads(line) for line in TARGETS.read_text().splitlines()]


def platform_of(target: dict[str, Any]) -> str:
    """Return the platform of a target of the list. Names of scrapers begin with it."""
    return str(target.get("platform") or target["scraper"].partition("-")[0])


def crawls(only: Selection) -> list[list[Crawl]]:
    """Return the crawls, in groups that share a sandbox."""
    groups: dict[tuple[str, int], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for number, target in enumerate(listed()):
        if "captures" in target:
            continue
        platform = platform_of(target)
        line = target.get("line") or json.dumps(
            {"id": str(number), "scraper": target["scraper"], **target["params"]}, ensure_ascii=False
        )
        for variant in target.get("variants", ["plain"]):
            for seed in target.get("seeds", SEEDS):
                if only.covers(platform, variant, seed):
                    groups[variant, seed][platform].append(line)
    return [
        [Crawl(variant, seed, platform, lines) for platform, lines in platforms.items()]
        for (variant, seed), platforms in groups.items()
    ]


def run_group(group: list[Crawl]) -> Rows:
    """Run the crawls of one sandbox in turn, and return their rows."""
    rows: Rows = {}
    with sandbox(group[0].seed) as origins:
        for crawl in group:
            began = time.monotonic()
            part = crawl.run(origins)
            rows |= part
            progress(f"{crawl.platform}{crawl.suffix}, seed {crawl.seed}: {len(part)} rows", began)
    return rows


def progress(text: str, began: float) -> None:
    """Print a progress message with the duration."""
    print(f"{text}, {time.monotonic() - began:.1f} s", file=sys.stderr)


# The captures


@dataclass(frozen=True)
class Capture:
    """Saved responses of one target, with the scraper and params to extract them."""

    key: str
    scraper: str
    files: tuple[Path, ...]
    params: dict[str, str] = field(default_factory=dict)

    def rows(self) -> Rows:
        """Return the row of the target. A file with a list of responses has a row for each."""
        if self.files[0].name.startswith("BUNDLE"):
            bodies = [canonical(each["body"]).encode() for each in json.loads(self.files[0].read_bytes())]
            return {f"{self.key} #{number}": self.row([body]) for number, body in enumerate(bodies, 1)}
        return {self.key: self.row([file.read_bytes() for file in self.files])}

    def row(self, bodies: list[bytes]) -> Row:
        """Run ``scrapy extract`` and return its row."""
        status, out, errors = self.extract(bodies)
        if status not in {0, 4}:
            return failed_row(f"EXIT {status}", digest(errors), None, ())
        printed = json.loads(out)
        if not status:
            return data_row(printed)
        return failed_row(printed["code"], digest(printed["message"]), printed["upstream"], printed["details"])

    def extract(self, bodies: list[bytes]) -> tuple[object, bytes, str]:
        """Run ``scrapy extract`` and return its exit code, its output and its errors.

        It runs in this process, because a new process takes a second to start.
        """
        out, errors = io.BytesIO(), io.StringIO()
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(ROOT):
            files = [Path(folder) / str(number) for number, _ in enumerate(bodies)]
            for file, body in zip(files, bodies, strict=True):
                file.write_bytes(body)
            arguments = [part for name, value in self.params.items() for part in ("-a", f"{name}={value}")]
            text = io.TextIOWrapper(out, encoding="utf-8")
            with contextlib.redirect_stdout(text), contextlib.redirect_stderr(errors):
                try:
                    execute(["scrapy", "extract", self.scraper, *map(str, files), *arguments])
                except SystemExit as end:
                    status = end.code
            text.flush()
        return status, out.getvalue(), errors.getvalue()


def captures(folder: Path, only: Selection) -> list[Capture]:
    """Return the captures: each file of the folder, and the groups of the list."""
    single_files = [
        Capture(f"{CAPTURED}/{file.relative_to(folder)}{suffix}", scraper, (file,))
        for platform, scrapers in SCRAPERS.items()
        for file in sorted((folder / platform).rglob("*"))
        for scraper, suffix in scrapers.items()
        if file.is_file() and file.suffix != ".md" and only.covers(platform, CAPTURED)
    ]
    groups = [
        Capture(
            f"{CAPTURED}/{platform_of(target)}/{' + '.join(target['captures'])} {canonical(target['params'])}",
            target["scraper"],
            tuple(folder / platform_of(target) / name for name in target["captures"]),
            target["params"],
        )
        for target in listed()
        if "captures" in target and only.covers(platform_of(target), CAPTURED)
    ]
    return single_files + groups


# The command


def default_jobs() -> int:
    """Return the number of processors plus one, because some crawls only wait."""
    return (os.cpu_count() or 1) + 1


def record(folder: Path, only: Selection, jobs: int) -> Rows:
    """Run all targets of the selection, and return their rows."""
    rows: Rows = {}
    with ThreadPoolExecutor(jobs) as threads:
        for part in threads.map(run_group, crawls(only)):
            rows |= part
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as processes:
        for part in processes.map(Capture.rows, captures(folder, only)):
            rows |= part
    return dict(sorted(rows.items()))


def read(file: Path, only: Selection) -> Rows:
    """Read the rows of a record that are in the selection."""
    rows = {row.pop("key"): row for row in map(json.loads, file.read_text().splitlines())}
    return {key: row for key, row in rows.items() if only.covers_row(key)}


def write(file: Path, rows: Rows) -> None:
    """Write a record."""
    file.write_text("".join(f"{json.dumps({'key': key, **row}, ensure_ascii=False)}\n" for key, row in rows.items()))


def differences(was: Rows, now: Rows) -> list[str]:
    """Return one line for each different row: its key, and the old and new values of the different fields."""
    lines = []
    for key in sorted(was.keys() | now.keys()):
        before, after = was.get(key), now.get(key)
        if before is None or after is None:
            lines.append(f"{key}\t{canonical(before)}\t{canonical(after)}")
        elif before != after:
            changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
            sides = [canonical({name: row.get(name) for name in changed}) for row in (before, after)]
            lines.append("\t".join([key, *sides]))
    return lines


def main() -> int:
    """Run the command line. Return 1 if rows differ."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("action", choices=("write", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--platform", action="append", default=[], help="only this platform; may be repeated")
    parser.add_argument("--variant", action="append", default=[], help="only this variant of crawls, or 'captures'")
    parser.add_argument("--seed", action="append", default=[], type=int, help="only this seed of the sandbox")
    parser.add_argument("--captures", type=Path, default=CAPTURES, help="folder of the captures (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=default_jobs(), help="crawls at a time (default: %(default)s)")
    parser.add_argument("--now", type=Path, help="compare with this record (default: run the current code)")
    options = parser.parse_args()
    only = Selection(tuple(options.platform), tuple(options.variant), tuple(options.seed))
    if not options.captures.is_dir():
        print(f"The captures are skipped: the folder {options.captures} does not exist.", file=sys.stderr)
        only = replace(only, captures=False)
    rows = read(options.now, only) if options.now else record(options.captures, only, options.jobs)
    if options.action == "write":
        write(options.file, rows)
        return 0
    was = read(options.file, only)
    lines = differences(was, rows)
    print(*lines, sep="\n", end="\n" if lines else "")
    print(f"{len(was)} rows compared, {len(lines)} differ", file=sys.stderr)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
