"""The contracts of all platforms, on captures where they are present, and on the sandbox's responses."""

from __future__ import annotations

import random
from collections.abc import Iterator

import orjson
import pytest

from crawler.platforms import platforms
from crawler.reading import careful, strict
from crawler.reading.contract import Contract, contracts, values
from scripts.captures import CAPTURES
from tests.contracts.counts import count, load, roots, wrong_lines
from tests.contracts.mutants import Mutant, is_noticed, mutants
from tests.contracts.recorded import clean, no_longer_clean, recorded
from tests.contracts.responses import FOLDER, Response, captured, listed, of_fixtures
from tests.reading.test_contract import plain

SILENT = listed("silent")
"""Mutants that may stay undetected, as ``str(mutant)``, each with its reason, from ``<platform>/silent.json``."""
FAST_MUTANTS = 100
"""Number of mutants per platform in the fast tests. The soak tests use all mutants."""

needs_captures = pytest.mark.skipif(
    not CAPTURES.is_dir(), reason="the recorded pages (../shared/captures) are not available"
)
WHOLE = [each for each in captured() if each.whole]
PLATFORMS = sorted(file.parent.name for file in FOLDER.glob("*/captures.json"))


def roots_of(responses: tuple[Response, ...]) -> set[type[Contract]]:
    """The contracts that describe the payloads of these responses from the root."""
    return {payload.kind for each in responses for payload in each.original.payloads}


@needs_captures
@pytest.mark.parametrize("platform", platforms())
def test_clean_responses_have_no_warning(platform: str) -> None:
    """The list of clean responses exists on this machine as a whole: a capture that is gone proves nothing."""
    assert len(clean(platform)) == len((FOLDER / platform / "clean.txt").read_text().splitlines()) > 0
    assert list(no_longer_clean(platform)) == []


@needs_captures
@pytest.mark.parametrize("response", WHOLE, ids=lambda each: f"{each.platform}-{each.name}")
def test_whole_captures_are_read_without_a_warning(response: Response) -> None:
    assert [str(each) for each in response.original.unread] == []
    assert response.original.payloads


@needs_captures
@pytest.mark.parametrize("response", captured(), ids=lambda each: f"{each.platform}-{each.name}")
def test_both_passes_read_the_same(response: Response) -> None:
    for kind, data in response.original.payloads:
        value, unread = careful.read_plain(kind, data)
        exact = strict.decoded(kind, orjson.dumps(data))
        assert (exact is None) == bool(unread)
        if exact is not None:
            assert plain(exact) == plain(value)


@needs_captures
@pytest.mark.parametrize("platform", platforms())
def test_counts_of_captures_have_not_changed(platform: str) -> None:
    """After a change of a contract or of the captures, run ``python -m tests.contracts count PLATFORM``."""
    assert count(recorded(platform)) == load(platform)


@needs_captures
@pytest.mark.parametrize("platform", platforms())
def test_declarations_are_counted_not_guessed(platform: str) -> None:
    """``python -m tests.contracts count PLATFORM`` prints the lines to change."""
    assert list(map(str, wrong_lines(roots(platform), load(platform)))) == []


def test_every_kind_of_value_occurs() -> None:
    """A contract in which every value is ``sometimes`` detects nothing."""
    for platform in PLATFORMS:
        kinds = {
            each.kind for root in roots_of(of_fixtures(platform)) for kind in contracts(root) for each in values(kind)
        }
        assert kinds >= {"identity", "always"}, platform


def every_mutant(platform: str) -> Iterator[tuple[Response, Mutant]]:
    """The mutants that must be detected, of a platform's whole captures and of the sandbox's responses."""
    for response in (*(each for each in captured(platform) if each.whole), *of_fixtures(platform)):
        for payload in response.original.payloads:
            for mutant in mutants(payload):
                if mutant.must_be_noticed:
                    yield response, mutant


def silent(chosen: list[tuple[Response, Mutant]]) -> list[str]:
    """The mutants that are not detected, except those that may stay undetected."""
    unnoticed = [str(mutant) for response, mutant in chosen if not is_noticed(mutant, response)]
    return [each for each in unnoticed if each not in SILENT]


@pytest.mark.parametrize("platform", PLATFORMS)
def test_changed_payloads_are_noticed(platform: str) -> None:
    every = list(every_mutant(platform))
    chosen = random.Random(1).sample(every, min(FAST_MUTANTS, len(every)))  # noqa: S311  # a fixed sample
    assert silent(chosen) == []


@pytest.mark.soak
@pytest.mark.parametrize("platform", PLATFORMS)
def test_all_changed_payloads_are_noticed(platform: str) -> None:
    assert silent(list(every_mutant(platform))) == []


def test_every_platform_of_the_list_exists() -> None:
    assert set(PLATFORMS) <= set(platforms())
