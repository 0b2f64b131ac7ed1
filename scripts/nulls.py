"""``docs/nulls.md``: how often the fields are null or absent that may be, and the fields that are always empty.

``python -m scripts.nulls measure`` counts in the sandbox's records, and in the records of saved responses if their
folder exists; it writes ``scripts/nulls.json``. With ``--scraper``, it counts only the records of this scraper.
``python -m scripts.nulls write`` writes the page from the counts and from the descriptions of the models' fields.
``tests/test_nulls.py`` checks both, and that each description says when its field may have no value.
"""

from __future__ import annotations

import argparse
import json
import os.path
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel

from crawler.monitoring.fields import fields_of, values_of
from crawler.registry import find_scraper, scraper_names
from crawler.service.route import markdown
from scripts.captures import CAPTURES, ROOT
from scripts.golden.crawls import TARGETS, Checkout, Crawl, lines_of, listed
from scripts.golden.extracts import Extractor, every_capture
from scripts.golden.record import Selection

COUNTS = Path(__file__).with_suffix(".json")
PAGE = ROOT / "docs" / "nulls.md"
SEED = 1
SANDBOX, SAVED = "sandbox", "saved"
SOURCES = (SANDBOX, SAVED)

INTRODUCTION = f"""\
# Null values

How often the fields that may be null or absent have no value, for each scraper, and the fields that were empty in all
counted objects. The description of a field says when it has none (`/openapi.json`). All other fields always have a
value, except that an unknown text is `""`, and a list without entries is `[]`.

The first column is the percentage of the counted objects (for a field of a post: of all posts) without a value, in the
sandbox / in saved responses, for each scraper in the heading. "–" means that no object was found, or that the field of
this scraper has a value.

- *Sandbox*: the targets in `{TARGETS.relative_to(ROOT)}` without a fault. It does not measure the real platforms.
- *Saved*: what `scrapy extract` reads from single saved responses of the real platforms, which were chosen because they
  differ: these percentages only show roughly how often a value may be null.
"""


NULL, ABSENT, EMPTY = "null", "absent", "always empty"
WORDS = {NULL: "null", ABSENT: "absent", EMPTY: r'always|empty|""|\[\]'}
"""Kind -> the words of a description that say when a field has this kind of value."""


class Missing(NamedTuple):
    """A field that may lack a value: its path, its kind, and the sentences that say when."""

    path: str
    kind: str
    when: str


def missing(model: type[BaseModel], path: str = "") -> Iterator[Missing]:
    """Yield the fields of a data model and of its nested models that may be null, absent or empty."""
    for field in fields_of(model):
        place = f"{path}{field.key}"
        if field.may_be_empty or field.may_be_absent:
            kind = NULL if field.may_be_null else ABSENT if field.may_be_absent else EMPTY
            yield Missing(place, kind, sentences(field.description, kind) or sentences(model.__doc__ or "", kind))
        for nested in field.models:
            yield from missing(nested, f"{place}[]." if field.is_list else f"{place}.")


def sentences(description: str, kind: str) -> str:
    """Return what a description says about when a field has a kind of value, in Markdown.

    >>> sentences("Number of posts; null if the page has no ``count``. Also null on a repost.", NULL)
    'Null if the page has no `count`. Also null on a repost.'
    >>> sentences('Code of the country, "" if not exposed. As two letters.', EMPTY)
    '"" if not exposed.'
    >>> sentences("The tagged place, or null.", NULL)
    'The tagged place, or null.'
    """
    found = re.split(r"(?<=\.)\s+(?=[A-Z`])", " ".join(description.split()))
    words = re.compile(rf"(?<!\w)(?:{WORDS[kind]})(?!\w)", re.IGNORECASE)
    text = " ".join(each for each in found if words.search(each))
    clause = re.sub(rf"^[^.]*?[;,.] (?=(?:{WORDS[kind]})(?!\w))", "", text)
    return markdown(clause[:1].upper() + clause[1:])


# Counting

Counts = dict[str, dict[str, list[int]]]
"""Scraper -> path -> number of objects that should have the field, and in how many it has no value."""


def count(records: Iterable[tuple[str, dict[str, Any]]]) -> Counts:
    """Count the fields that may be null, absent or empty. ``records``: names of scrapers, and records."""
    counts: Counts = defaultdict(dict)
    for name, data in records:
        model = find_scraper(name).data
        kinds = {each.path: each.kind for each in missing(model)}
        counts_of_scraper = counts[name]
        for value in values_of(data, model):
            if value.path in kinds:
                found = counts_of_scraper.setdefault(value.path, [0, 0])
                found[0] += 1
                found[1] += value.is_empty if kinds[value.path] == EMPTY else value.value is None
    return {name: dict(sorted(fields.items())) for name, fields in sorted(counts.items())}


def records_of_sandbox(names: Container[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Crawl the sandbox for the scrapers with these names, and yield the records."""
    lines: dict[str, list[str]] = defaultdict(list)
    for number, target in enumerate(listed()):
        is_plain = "plain" in target.get("variants", ["plain"]) and SEED in target.get("seeds", [SEED])
        if is_plain and not target.keys() & {"captures", "fault", "line"}:
            scraper = find_scraper(target["scraper"])
            if scraper.name in names:
                line = {"id": str(number), "scraper": target["scraper"], **target["params"]}
                lines[scraper.platform].append(json.dumps(line))
    checkout = Checkout()
    with checkout.sandbox(SEED) as origins, tempfile.TemporaryDirectory() as name:
        for platform, targets in lines.items():
            folder = Path(name, platform)
            folder.mkdir()
            (folder / "targets.jsonl").write_text("\n".join(targets))
            command = Crawl("plain", SEED, platform, targets, checkout).command(origins, folder)
            # Some targets do not exist: exit code 4.
            subprocess.run(command, check=False, cwd=ROOT, env=checkout.environment)
            for line in lines_of(folder / "out.jsonl"):
                yield line["scraper"], line["data"]


def records_of_captures(names: Container[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Extract the saved responses for the scrapers with these names, and yield the records. Some have no record."""
    with Extractor(Checkout()) as extractor:
        for capture in every_capture(CAPTURES, Selection()):
            if capture.scraper in names and len(capture.files) == 1 and not capture.params and not capture.is_bundle:
                status, out, _ = capture.extract(extractor, [capture.files[0].read_bytes()])
                if status == 0:
                    yield capture.scraper, json.loads(out)


def measure(names: Container[str]) -> dict[str, Counts]:
    """Count in the sandbox's records and in those of the captures, for the scrapers with these names.

    The last counts of other scrapers are kept, and those of captures if their folder does not exist.
    """
    counted = {SANDBOX: count(records_of_sandbox(names))}
    if CAPTURES.is_dir():
        counted[SAVED] = count(records_of_captures(names))
    kept = {
        source: {
            name: fields
            for name, fields in counts.items()
            if name in scraper_names() and not (source in counted and name in names)
        }
        for source, counts in read().items()
    }
    return {source: dict(sorted((kept[source] | counted.get(source, {})).items())) for source in SOURCES}


def read() -> dict[str, Counts]:
    """Return the last counts."""
    counts: dict[str, Counts] = json.loads(COUNTS.read_text())
    return counts


# The page


def page(counts: dict[str, Counts]) -> str:
    """Return the page in Markdown. It has the scrapers that were measured."""
    parts = dict.fromkeys(section(name, counts) for name in counts[SANDBOX])
    return "\n".join([INTRODUCTION, *parts])


def section(name: str, counts: dict[str, Counts]) -> str:
    """Return the table of a scraper, which is also that of its platform's scrapers with mostly the same fields.

    It has a row for each share, with the fields that have it.
    """
    listed = {each: [field.path for field in listed_fields(each, counts)] for each in alike(name)}
    fields = dict.fromkeys(path for paths in listed.values() for path in paths)
    outer = os.path.commonpath([path.replace(".", "/") for path in fields]).replace("/", ".")
    rows: dict[tuple[str, ...], list[str]] = {}
    for path in fields:
        shares = (
            "/".join(share(counts[source].get(each, {}).get(path)) for source in SOURCES) if path in paths else "–"
            for each, paths in listed.items()
        )
        rows.setdefault(tuple(shares), []).append(f"`{path.removeprefix(f'{outer}.')}`")
    head = ["| % without a value | fields |", "|---|---|"]
    prefix = [f"Paths are relative to `{outer}`.", ""] if outer else []
    lines = (f"| {', '.join(shares)} | {', '.join(names)} |" for shares, names in rows.items())
    return "\n".join([f"## {', '.join(listed)}", "", *prefix, *head, *lines, ""])


def alike(name: str) -> list[str]:
    """Return the scrapers of a scraper's platform whose records have mostly the same fields, in alphabetical order.

    >>> alike("retail-search-v4")
    ['retail-category-v4', 'retail-search-v4']
    """
    scraper = find_scraper(name)
    paths = {each.path for each in missing(scraper.data)}
    return [
        each
        for each in sorted(scraper_names())
        for other in [find_scraper(each)]
        if other.name == each and other.platform == scraper.platform
        if len(paths & (others := {field.path for field in missing(other.data)})) > max(len(paths), len(others)) / 2
    ]


def listed_fields(name: str, counts: dict[str, Counts]) -> Iterator[Missing]:
    """Yield the fields that the page lists: those that may be null or absent, and those that are always empty."""
    for each in missing(find_scraper(name).data):
        counted = [found for source in SOURCES if (found := counts[source].get(name, {}).get(each.path))]
        if each.kind != EMPTY or (counted and all(total == empty for total, empty in counted)):
            yield each


def share(counted: list[int] | None) -> str:
    """Return the share of objects in which a field is null or absent, as a percentage.

    >>> share([200, 1]), share([3, 2]), share([3, 0]), share(None)
    ('<1', '67', '0', '–')
    """
    if counted is None:
        return "–"
    total, missing = counted
    return "<1" if 0 < missing < total / 100 else str(round(100 * missing / total))


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("action", choices=("measure", "write"))
    parser.add_argument("--scraper", action="append", choices=scraper_names(), help="measure only this scraper")
    given = parser.parse_args()
    if given.action == "measure":
        text = json.dumps(measure(given.scraper or scraper_names()), indent=1)
        COUNTS.write_text(re.sub(r"\[\s+(\d+),\s+(\d+)\s+\]", r"[\1, \2]", text) + "\n")  # a field per line
    else:
        PAGE.write_text(page(read()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
