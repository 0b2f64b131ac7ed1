"""The walks in ``docs/architecture.md`` name existing modules and functions. Walks and files stay short."""

import re
from importlib import import_module
from operator import attrgetter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/architecture.md").read_text()
WALKS = {
    title: re.findall(r"^\|.*\|$", PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0], re.MULTILINE)[2:]
    for title in ("One call", "One target")
}
SCREEN = 24


def spans(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


@pytest.mark.parametrize("row", [row for rows in WALKS.values() for row in rows])
def test_the_modules_and_names_of_a_step_exist(row: str) -> None:
    _, step, modules, names, text, _ = row.split("|")
    for path in spans(modules):
        module = import_module(f"crawler.{path.removesuffix('.py').replace('/', '.')}")
        for name in spans(names):
            assert attrgetter(name)(module) is not None
    assert bool(step.strip()) == bool(spans(modules)) == bool(spans(names))
    for path in spans(text):
        if path.endswith(".py"):
            assert (ROOT / "crawler" / path).is_file(), path


def test_names_in_the_texts_of_steps_exist() -> None:
    from crawler.spiders.base import PlatformSpider  # noqa: PLC0415  # imports Twisted's reactor users

    walks = PAGE.partition("## One call")[2].partition("## Packages")[0]
    named = re.findall(r"`(\w+Spider)\.(\w+)`", walks)
    assert len(named) >= 5
    for _, method in named:
        assert hasattr(PlatformSpider, method)


@pytest.mark.parametrize("title", WALKS)
def test_a_walk_fits_on_a_screen(title: str) -> None:
    rows = WALKS[title]
    steps = [row.split("|")[1].strip() for row in rows if row.split("|")[1].strip()]
    assert steps == [str(n) for n in range(1, len(steps) + 1)]
    assert len(rows) < SCREEN


def test_a_call_is_six_steps_each_in_a_module_of_its_own() -> None:
    modules = [path for row in WALKS["One call"] for path in spans(row.split("|")[2])]
    assert len(modules) == len(set(modules)) == 6
    assert {path.partition("/")[0] for path in modules} == {"service", "targets"}
