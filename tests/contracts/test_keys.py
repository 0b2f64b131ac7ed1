"""Every key that a contract reads occurs in a page of the tests: a stale or misspelled key reads nothing, silently."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest

from crawler.platforms import platforms
from crawler.reading.contract import Contract, steps, values

TESTS = Path(__file__).parents[1]
PACKAGE = TESTS.parent / "crawler" / "platforms"
RECORDED = {
    "microblog": {
        *("moduleEntryId", "moduleItems", "quotedRefResult", "quoted_status", "retweeted_status"),
        "unavailable_reason",
    },
    "photoapp": {
        *("audio_cluster_id", "dash_info", "display_artist", "edge_media_to_parent_comment"),
        "music_consumption_info",
    },
    "shortvideo": {"card_title", "challenge_list", "isPinnedItem", "live_info", "statusCode"},
    "videosite": {
        *("adSlotRenderer", "backstagePostThreadRenderer", "channelRenderer", "channelVideoPlayerRenderer"),
        *("commandExecutorCommand", "endTimestamp", "gridPlaylistRenderer", "gridShowRenderer"),
        *("horizontalCardListRenderer", "messages", "playlistRenderer", "postRenderer", "radioRenderer"),
        *("recognitionShelfRenderer", "sharedPostRenderer", "showRenderer", "videoInfo"),
    },
}
"""The keys that no page of the tests has: those of recorded pages and of other projects only. The lists may shrink."""


def words_of_tests(platform: str) -> set[str]:
    """Return all words in the fixtures of a platform, its table and its tests."""
    folders = (*(TESTS / "fixtures").glob(f"crawler.platforms.{platform}.*"), TESTS / "platforms" / platform)
    files = (file for folder in folders for file in folder.rglob("*") if file.is_file() and file.suffix != ".pyc")
    return {word for file in files for word in re.findall(r"\w+", file.read_text(errors="replace"))}


def words_of_contracts(platform: str) -> set[str]:
    """Return the words of all keys in the contracts of a platform."""
    modules = (
        import_module(f"crawler.platforms.{platform}.{each.name}") for each in iter_modules([str(PACKAGE / platform)])
    )
    kinds = {each for module in modules for each in vars(module).values() if inspect.isclass(each)}
    declared = {
        each for each in kinds if issubclass(each, Contract) and each.__module__.startswith("crawler.platforms.")
    }
    keys = {key for kind in declared for value in values(kind) for path in value.paths for key in steps(path)}
    return {word for key in keys if isinstance(key, str) for word in re.findall(r"\w+", key)}


@pytest.mark.parametrize("platform", platforms())
def test_every_key_of_a_contract_is_in_a_page_of_the_tests(platform: str) -> None:
    missing = words_of_contracts(platform) - words_of_tests(platform)
    assert missing == RECORDED.get(platform, set())
