"""The captures: ``scrapy extract`` of each one, and of the groups of the list."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from scripts import captures
from scripts.golden.crawls import Checkout, Outcomes, listed, platform_of
from scripts.golden.outcome import Outcome, canonical, failure
from scripts.golden.record import CAPTURED, Selection

WORKER = Path(__file__).with_name("worker.py")
WARNING = "Warning: "
"""The beginning of a warning in the log of ``scrapy extract``."""
SCRAPERS = {
    "microblog": {"microblog-profile": ""},
    "photoapp": {"photoapp-post-v4": ""},
    "professional": {"professional-profile": "", "professional-profile-v4": " content"},
    "retail": {"retail-category-v4": " category", "retail-search-v4": " search"},
    "shortvideo": {"shortvideo-photo-search-v4": ""},
    "videosite": {"videosite-profile-v3": "", "videosite-profile": " page"},
}
"""The scrapers for the captures of a platform, with the suffixes of their rows' keys."""


class Extractor:
    """A process that runs ``scrapy extract`` in a checkout, because the start of a process takes a second."""

    def __init__(self, checkout: Checkout) -> None:
        self._process = subprocess.Popen(
            [checkout.python, "-P", str(WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=checkout.folder,
            env=checkout.environment,
        )

    def run(self, arguments: list[str]) -> tuple[int, str, str]:
        """Return the exit code, the output and the errors of the command."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(arguments) + "\n")
        self._process.stdin.flush()
        status, out, errors = json.loads(self._process.stdout.readline())
        return int(status), str(out), str(errors)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()


@dataclass(frozen=True)
class Capture:
    """Captures of one target, with the scraper and params to extract them."""

    key: str
    scraper: str
    files: tuple[Path, ...]
    params: dict[str, str] = field(default_factory=dict)

    @property
    def is_bundle(self) -> bool:
        """Whether the capture is a list of responses."""
        return self.files[0].name.startswith("BUNDLE")

    def outcomes(self, extractor: Extractor) -> Outcomes:
        """Return the outcome of the target. Each response of a bundle has an outcome."""
        if self.is_bundle:
            bodies = [canonical(each["body"]).encode() for each in json.loads(self.files[0].read_bytes())]
            return {f"{self.key} #{number}": self.outcome(extractor, [body]) for number, body in enumerate(bodies, 1)}
        return {self.key: self.outcome(extractor, [file.read_bytes() for file in self.files])}

    def outcome(self, extractor: Extractor, bodies: list[bytes]) -> Outcome:
        """Run ``scrapy extract`` and return its outcome."""
        status, out, errors = self.extract(extractor, bodies)
        if status not in {0, 4}:
            return Outcome(f"EXIT {status}", errors, hides_message=True)
        printed = json.loads(out)
        if status:
            error = failure(printed["code"], printed["message"], printed["upstream"], printed["details"])
            return Outcome(error.code, error.message, error.upstream, error.details, hides_message=True)
        warnings = tuple(line for line in errors.splitlines() if line.startswith(WARNING))
        return Outcome("OK", warnings=warnings, data=printed)

    def extract(self, extractor: Extractor, bodies: list[bytes]) -> tuple[int, str, str]:
        """Run ``scrapy extract`` and return its exit code, its output and its errors."""
        with tempfile.TemporaryDirectory() as folder:
            files = [Path(folder) / str(number) for number, _ in enumerate(bodies)]
            for file, body in zip(files, bodies, strict=True):
                file.write_bytes(body)
            arguments = [part for name, value in self.params.items() for part in ("-a", f"{name}={value}")]
            return extractor.run(["extract", self.scraper, *map(str, files), *arguments])


def every_capture(folder: Path, only: Selection) -> Iterator[Capture]:
    """Yield each capture of the folder, and the groups of the list."""
    files = captures.captures(folder)
    for name, file in files.items():
        platform = file.relative_to(folder).parts[0]
        if only.covers(platform, CAPTURED):
            for scraper, suffix in SCRAPERS[platform].items():
                yield Capture(f"{CAPTURED}/{platform}/{name}{suffix}", scraper, (file,))
    for target in listed():
        platform, names = platform_of(target), target.get("captures", [])
        if names and files.keys() >= set(names) and only.covers(platform, CAPTURED):
            key = f"{CAPTURED}/{platform}/{' + '.join(names)} {canonical(target['params'])}"
            yield Capture(key, target["scraper"], tuple(files[name] for name in names), target["params"])


def run_captures(checkout: Checkout, listed_captures: Sequence[Capture]) -> Iterator[Outcomes]:
    """Extract captures one after the other, and yield the outcomes of each."""
    with Extractor(checkout) as extractor:
        for each in listed_captures:
            yield each.outcomes(extractor)
