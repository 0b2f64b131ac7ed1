"""``scrapy extract --suggest``: the declarations to change after a key of a payload was renamed or moved."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import orjson
import pytest
from web_poet import HttpResponse, PageParams

from crawler.platforms import platforms
from crawler.platforms.page import PlatformPage
from crawler.platforms.retail.pages import SearchPage
from crawler.platforms.shortvideo.payload import Entry
from crawler.probe import suggest
from crawler.probe.recorder import read
from crawler.probe.suggest import Candidate, Gap, Part, Suggestion, changed_declarations, gaps, suggestions
from crawler.reading.contract import Contract, values
from crawler.reading.documents import script_block
from crawler.sandbox.protocol import FakeRequest
from crawler.sandbox.retail.site import Site
from tests.copies import ProjectCopy


def found_in(page: PlatformPage) -> list[Suggestion]:
    assert read(page).problems
    return suggestions([page])


# A page of the shop

BODY = Site(light=True).page(FakeRequest("/search", {"q": "mustard"}))[2]
BLOCK = script_block(BODY, "__NEXT_DATA__")
Row = dict[str, Any]
PATH = "props.pageProps.initialData.searchResult.itemStacks[].items[]"


def changed(*changes: Callable[[Row], object]) -> bytes:
    """Return a page of search results, all of whose products were changed."""
    assert BLOCK is not None
    data = orjson.loads(BLOCK)
    for stack in data["props"]["pageProps"]["initialData"]["searchResult"]["itemStacks"]:
        for row in stack["items"]:
            for change in changes if row["__typename"] == "Product" else ():
                change(row)
    return BODY.replace(BLOCK, orjson.dumps(data))


def shop(*changes: Callable[[Row], object]) -> SearchPage:
    response = HttpResponse("https://shop.example/search?q=mustard", changed(*changes))
    return SearchPage(response=response, page_params=PageParams(query="mustard", page=1, sort="best_match"))


def rename(key: str, new: str) -> Callable[[Row], object]:
    return lambda row: row.update({new: row.pop(key)})


def add(key: str, value: object) -> Callable[[Row], object]:
    return lambda row: row.update({key: value})


def remove(key: str) -> Callable[[Row], object]:
    return lambda row: row.pop(key)


def moved(row: Row) -> None:
    row["fulfillment"] = {"availabilityStatusV2": row.pop("availabilityStatusV2")}


def wrapped(row: Row) -> None:
    row["averageRating"] = {"value": row["averageRating"], "scale": "stars"}


SHOP: dict[str, tuple[list[Callable[[Row], object]], list[str]]] = {
    "a respelled key": ([rename("averageRating", "average_rating")], ["average_rating"]),
    "a key with another name": ([rename("averageRating", "q")], ["q"]),
    "a respelled key beside a new one": (
        [rename("averageRating", "average_rating"), add("sellerRating", 4.5)],
        ["average_rating"],
    ),
    "an object": ([rename("imageInfo", "media")], ["media.thumbnailUrl"]),
    "another level": ([moved], [f"fulfillment.availabilityStatusV2.{key}" for key in ("value", "display")]),
    "a value in a new object": ([wrapped], ["averageRating.value"]),
    "a removed key": ([remove("averageRating")], []),
    "a removed key and a new one of another type": ([remove("averageRating"), add("r", "four")], []),
    "a removed object and a new one without its keys": ([remove("priceInfo"), add("pack", {"unit": "kg"})], []),
}


@pytest.mark.parametrize(("changes", "paths"), SHOP.values(), ids=SHOP)
def test_the_first_path_of_a_suggestion_is_right(changes: list[Callable[[Row], object]], paths: list[str]) -> None:
    assert [next(iter(each.found)) for each in found_in(shop(*changes))] == paths


def test_each_page_may_have_another_change() -> None:
    pages = [shop(rename("averageRating", "starRating")), shop(rename("sellerName", "merchantName")), shop()]
    assert [bool(read(page).problems) for page in pages] == [True, True, False]
    assert [next(iter(each.found)) for each in suggestions(pages)] == ["starRating", "merchantName"]


def test_an_object_with_one_of_the_declared_keys_lacks_no_other() -> None:
    assert list(gaps(Entry, [{"item": {}}, {"item": {}}])) == []
    assert len(list(gaps(Entry, [{"item": {}}, {"post": {}}]))) == len(list(values(Entry)))


def test_other_new_keys_of_the_same_type_are_shown_with_their_values() -> None:
    (found,) = found_in(shop(rename("averageRating", "starRating"), add("sellerRating", 4.5)))
    assert list(found.found) == ["starRating", "sellerRating"]
    assert str(found).endswith(" or sellerRating (4.5, 4.5, 4.5)")


def test_without_recorded_pages_any_key_that_no_contract_declares_is_a_candidate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As in an installed package. A key with a similar name comes first."""
    monkeypatch.setattr(suggest, "FIXTURES", Path("/none"))
    (found,) = found_in(shop(rename("averageRating", "average_rating")))
    assert (len(found.found), next(iter(found.found))) == (suggest.MAX_SHOWN, "average_rating")


def test_a_suggestion_is_the_declaration_with_both_paths() -> None:
    (found,) = found_in(shop(rename("averageRating", "average_rating")))
    shown, facts = str(found).splitlines()
    file, number, line = shown.split(":", 2)
    assert file == "crawler/platforms/retail/payload.py"
    assert '"averageRating"' in Path(file).read_text().splitlines()[int(number) - 1]
    assert '("average_rating", "averageRating"' in line
    assert re.fullmatch(r"  averageRating -> average_rating \((\d\.\d, ){2}\d\.\d\)", facts)
    (found,) = found_in(shop(wrapped))
    assert '("averageRating.value"' in found.line
    assert '"averageRating"' not in found.line, "no type describes a value and an object in the same place"


@pytest.mark.parametrize("platform", platforms())
def test_every_declaration_can_be_changed(platform: str) -> None:
    """Also declarations whose paths are made of constants, and those of base classes."""
    package = import_module(f"crawler.platforms.{platform}")
    modules = [import_module(f"{package.__name__}.{each.name}") for each in iter_modules(package.__path__)]
    kinds = {each for module in modules for each in vars(module).values() if is_contract(each)}
    assert kinds
    for kind, value in ((each, value) for each in kinds for value in values(each)):
        parts = tuple(Part(value, path, ()) for path in value.paths)
        gap = Gap(kind, (), ("old",), parts, inside=False)
        for each in changed_declarations(gap, [Candidate(gap, ("new",), 0, [[] for _ in parts])]):
            (statement,) = ast.parse(each.line).body
            assert isinstance(statement, ast.AnnAssign)
            assert isinstance(statement.value, ast.Call)
            first, *others = statement.value.args
            assert (ast.literal_eval(first), bool(others)) == ("new", True)


def is_contract(each: object) -> bool:
    return isinstance(each, type) and issubclass(each, Contract) and each is not Contract


def test_a_key_with_one_value_in_all_rows_is_not_the_name_of_products() -> None:
    """Rows of 2026-08 have the name of their department, which is nearer to the lost key than the new one."""
    (found,) = found_in(shop(rename("name", "title"), add("nameOfShop", "Shop")))
    assert next(iter(found.found)) == "title"


def test_hostile_keys_are_not_suggested() -> None:
    keys = ["a.b", "[]", "*", "x" * 10_000, "\x1b[2J", '"]); import os']
    found = found_in(shop(remove("averageRating"), *(add(key, 4.5) for key in keys)))
    assert all(str(each).replace("\n", "").isprintable() for each in found)
    for each in found:
        ast.parse(each.line)
        assert len(each.line) < 500


# From the changed page to the changed project


def test_the_printed_lines_mend_the_page(tmp_path: Path) -> None:
    project = ProjectCopy(tmp_path)
    changes = [rename("averageRating", "average_rating"), rename("name", "productTitle"), rename("imageInfo", "media")]
    (tmp_path / "old.html").write_bytes(BODY)
    (tmp_path / "new.html").write_bytes(changed(*changes, moved))
    new = ("extract", "retail-search-v4", "new.html", "-a", "query=mustard")
    old = ("extract", "retail-search-v4", "old.html", "-a", "query=mustard")
    before = project(*old)
    assert project.apply(project(*new, "--suggest", code=4).stdout) == 5
    for run in (project(*new), project(*old)):  # the platform changes its pages one by one
        assert (run.stdout, run.stderr) == (before.stdout, "")
    assert project(*new, "--suggest").stdout == "read\n"
