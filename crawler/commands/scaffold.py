"""Shared code of ``scrapy newplatform`` and ``scrapy newscraper``: names, templates, and the parts of a scraper.

Both commands write an example that works with simulated pages of its own. A developer then changes the files for the
real site.
"""

from __future__ import annotations

import json
import keyword
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import Path
from string import Template

from scrapy.exceptions import UsageError

import crawler

# Names that are valid in a host name, and short enough for all generated lines.
NAME = re.compile(r"[a-z][a-z0-9]{0,19}")
CHECKOUT = ("pyproject.toml", "docs/platforms", "tests/platforms")
GOLDEN_TARGETS = "scripts/golden/targets.jsonl"
ITEMS = "crawler/items.py"
PLACES = {
    "data": "\nDATA_MODELS = {\n",
    "import": "\nif TYPE_CHECKING:\n",
    "item": "\n\ndef __getattr__(",
    "names": "\n__all__ = [\n",
}
"""Part to add to the module of items -> the text after which the part is inserted. The part ``item``, an item class, is
inserted before its text."""
EXAMPLES = 2
"""Number of the example's targets in the golden record. The page of the second target hides a value."""
NEXT_STEPS = """
Try it:     scripts/test -k "{platform} and {thing}"
            scrapy crawl {platform} -a {thing}_id={thing}-1 -s SANDBOX=1 -O -:jsonlines
Record it:  python -m scripts.golden write tests/golden.jsonl --platform {platform}
Check it:   scripts/check"""

Files = dict[str, str]
"""Path in the project -> text."""


def checkout() -> Path:
    """Return the folder of the project.

    Raises:
        UsageError: the package is installed, or the tools of developers are missing.
    """
    root = Path(crawler.__file__).parents[1]
    if not all((root / path).exists() for path in CHECKOUT):
        raise UsageError(f"{root} contains an installed package: run this command in a checkout of the project.")
    if find_spec("ruff") is None:
        raise UsageError("ruff, which formats the files, is not installed: pip install -e '.[dev]'")
    return root


def check_name(name: str, kind: str) -> None:
    """Raise ``UsageError`` unless a name is valid for a module. ``kind``: the kind of name, for the message."""
    if not NAME.fullmatch(name) or keyword.iskeyword(name):
        raise UsageError(
            f"{name!r} is not a {kind} name: use 1 to 20 lower-case letters and digits, starting with a letter."
        )


def words(platform: str, thing: str, origin: str, **modules: str) -> dict[str, str]:
    """Return the replacements for the words in templates.

    ``thing``: the entity that a record describes, in the singular.

    ``modules``: the names of the modules ``pages``, ``schema``, ``payload`` and ``requests``, and of the ``source`` of
    the fixtures.
    """
    a_thing = f"{'an' if thing[0] in 'aeiou' else 'a'} {thing}"
    names = {"platform": platform, "thing": thing, "a_thing": a_thing, "origin": origin, **modules}
    names["class"] = thing.capitalize()
    capitalized = {name.capitalize(): word.capitalize() for name, word in names.items()}
    return {**names, **capitalized, "scraper": f"{platform}-{thing}"}


def rendered(folder: str, words: dict[str, str]) -> Files:
    """Return the files of a folder of templates. In their paths, words in upper case are replaced."""
    paths = re.compile("|".join(name.upper() for name in words if name.islower()))
    return {
        paths.sub(lambda found: words[found[0].lower()], path.removesuffix(".tmpl")): Template(text).substitute(words)
        for path, text in _templates(files("crawler.commands") / "templates" / folder)
    }


def _templates(folder: Traversable, above: str = "") -> Iterator[tuple[str, str]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _templates(entry, f"{above}{entry.name}/")
        elif entry.name.endswith(".tmpl"):
            yield above + entry.name, entry.read_text(encoding="utf-8")


def with_scraper(root: Path, words: dict[str, str]) -> Files:
    """Return the module of items and the list of the golden record's targets, with a new scraper added to both.

    Raises:
        UsageError: the module of items has no place for the scraper.
    """
    thing = words["thing"]
    targets = (root / GOLDEN_TARGETS).read_text(encoding="utf-8") if (root / GOLDEN_TARGETS).exists() else ""
    for number in range(1, EXAMPLES + 1):
        target = {"scraper": words["scraper"], "params": {f"{thing}_id": f"{thing}-{number}"}}
        targets += f"{json.dumps(target)}\n"
    text = (root / ITEMS).read_text(encoding="utf-8")
    for name, part in rendered("items", words).items():
        before, place, after = text.partition(PLACES[name])
        if not place:
            raise UsageError(f"{ITEMS} lacks the line {PLACES[name].strip()!r}: add the scraper by hand.")
        text = f"{before}{part}{place}{after}" if name == "item" else f"{before}{place}{part}{after}"
    return {GOLDEN_TARGETS: targets, ITEMS: text}


def write(root: Path, new: Files, changed: Files, words: dict[str, str]) -> None:
    """Write the files of a new scraper, format and document them, and print their paths and what to do next.

    Files in ``new`` must not exist.

    Raises:
        UsageError: a program that formats or documents the files has failed.
    """
    for path, text in new.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        with (root / path).open("x", encoding="utf-8") as file:
            file.write(text)
        print(path)
    for path, text in changed.items():
        (root / path).write_text(text, encoding="utf-8")
        print(f"{path} (changed)")
    format_modules(root, new | changed)
    # These programs add the scraper to the generated documentation. ``measure`` crawls the scraper's simulated pages.
    _run(root, "tests.platform_pages")
    _run(root, "scripts.nulls", "measure", "--scraper", words["scraper"])
    _run(root, "scripts.nulls", "write")
    print("docs/nulls.md, scripts/nulls.json (changed)")
    print(NEXT_STEPS.format(**words))


def format_modules(root: Path, paths: Iterable[str]) -> None:
    """Format the modules among some files. Sort their imports and ``__all__``, whose order depends on the new names."""
    modules = [path for path in paths if path.endswith(".py")]
    _run(root, "ruff", "check", "--no-cache", "--quiet", "--select", "I,RUF022", "--fix", *modules)
    _run(root, "ruff", "format", "--no-cache", "--quiet", *modules)


def _run(root: Path, *program: str) -> None:
    """Run a module of the project or of its tools. A module that fails prints the reason to stderr.

    Raises:
        UsageError: the module has failed.
    """
    command = [sys.executable, "-m", *program]
    done = subprocess.run(command, check=False, cwd=root, stdout=subprocess.DEVNULL)  # noqa: S603  # our own programs
    if done.returncode:
        raise UsageError(f"The files were written, but this command has failed: python -m {' '.join(program[:4])}")
