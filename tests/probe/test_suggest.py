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
from web_poet.testing import Fixture

from crawler.platforms import platforms
from crawler.platforms.page import PlatformPage
from crawler.platforms.retail.pages import SearchPage
from crawler.platforms.shortvideo.pages import ResultsPage
from crawler.platforms.shortvideo.payload import Entry
from crawler.probe import suggest
from crawler.probe.recorder import read
from crawler.probe.suggest import Candidate, Gap, Part, Suggestion, changed_declarations, gaps, suggestions
from crawler.reading.contract import OFTEN_ROWS, Contract, always, identity, often, sometimes, values
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


def test_a_page_of_plain_data_has_suggestions() -> None:
    fixture = suggest.FIXTURES / "crawler.platforms.shortvideo.pages.ResultsPage/results"
    page: Any = Fixture(fixture).get_page(ResultsPage)
    body = page.response.body.replace(b'"createTime"', b'"postedTime"')
    changed = ResultsPage(response=HttpResponse(page.response.url, body), page_params=page.page_params)
    assert [next(iter(each.found)) for each in found_in(changed)] == ["postedTime"]


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
    news = [add(key, value) for key in keys for value in (4.5, {"averageRating": 4.5})]
    found = [each for new in news for each in found_in(shop(remove("averageRating"), new))]
    assert all(str(each).replace("\n", "").isprintable() for each in found)
    for each in found:
        ast.parse(each.line)
        assert len(each.line) < 500


# Other forms of paths


class Owner(Contract):
    id: str = identity("id")
    label: str | None = always("label")
    note: str | None = sometimes("note")


class Title(Contract, one_of=True):
    short: str | None = sometimes("short")
    words: list[str] = sometimes("words[]")


class Photo(Contract, tag=("type", "photo")):
    url: str | None = always("url")


class Ad(Contract, tag=("type", "ad")):
    pass


class Sample(Contract):
    id: str = identity("id")
    name: str | None = always("name.runs[0].text", "name.simple")
    last: str | None = always("thumbs[-1].url")
    tags: list[str] = always("groups[].tag")
    parts: list[str] = always("outer[].inner[].text")
    sizes: list[int] = often("outer[].inner[].size")
    marks: list[dict[str, Any]] = always("marks[].of")
    width: int | None = often("width")
    owner: Owner | None = always("owner")
    title: Title | None = always("title")
    cards: list[Photo | Ad] = always("cards[]")
    amount: int | None = always("price.amount")
    currency: str | None = always("price.currency")


class Samples(Contract):
    rows: list[Sample] = always("rows[]")


SAMPLE: Row = {
    "name": {"runs": [{"text": "Tea"}]},
    "thumbs": [{"url": "a"}, {"url": "b"}],
    "groups": [{"tag": "x"}, {"tag": "y"}],
    "outer": [{"inner": [{"text": "x", "size": 1}]}],
    "marks": [{"of": {"type": {"id": "x"}}}],
    "width": 3,
    "owner": {"id": "1", "label": "x"},
    "title": {"short": "x"},
    "cards": [{"type": "ad"}],
    "price": {"amount": 5, "currency": "EUR"},
}
PATHS: dict[str, tuple[Row, list[str]]] = {
    "nothing": ({}, []),
    "a key in the first entry": ({"name": {"runs": [{"words": "Tea"}]}}, ["name.runs[0].words"]),
    "a list of which the last entry is read": ({"thumbs": ..., "pictures": [{"url": "a"}]}, ["pictures[-1].url"]),
    "a value beside those of two paths": ({"name": {"plain": "Tea"}}, ["name.plain"]),
    "a key in the last entry": ({"thumbs": [{"url": "a"}, {"link": "b"}]}, ["thumbs[-1].link"]),
    "a key in each entry": ({"groups": [{"label": "x"}, {"label": "y"}]}, ["groups[].label"]),
    "a key in each entry of lists in a list": ({"outer": [{"inner": [{"words": "x"}]}]}, ["outer[].inner[].words"]),
    "a list, with a required value, in some entries": ({"outer": [{"rows": [{"text": "x", "size": 1}]}, {"x": 1}]}, []),
    "a key in the entries that are objects": ({"groups": ["x", {"label": "x"}]}, ["groups[].label"]),
    "a key that is null in some entries": ({"groups": [{"label": "x"}, {"label": None}]}, ["groups[].label"]),
    "a key with values of another type": ({"groups": [{"label": "x"}, {"label": 7}]}, []),
    "a key in some entries": ({"groups": [{"label": "x"}, {"other": "x"}]}, []),
    "a key that one entry still has": ({"groups": [{"label": "x"}, {"tag": "x"}]}, []),
    "a list": ({"groups": ..., "sets": [{"tag": "x"}]}, ["sets[].tag"]),
    "null in place of a list": ({"groups": None, "sets": [{"tag": "x"}]}, []),
    "an object in place of the value of two paths": ({"name": {"simple": {"text": "Tea"}}}, ["name.simple.text"]),
    "a value that is the same in all rows": ({"width": ..., "widths": 3}, ["widths"]),
    "an object in place of a list": ({"groups": {"a": [{"tag": "x"}]}}, ["groups.a[].tag"]),
    "an empty list": ({"groups": [], "label": "x"}, []),
    "an object with its keys": (
        {"owner": ..., "aowner": {"id": "1"}, "seller": {"id": "2", "label": "x"}, "zowner": {"label": "x"}},
        ["seller"],
    ),
    "an object with one of its keys": (
        {"title": ..., "atitle": {"other": 1}, "heading": {"words": ["x"]}},
        ["heading"],
    ),
    "an object with several values": (
        {"price": ..., "cost": {"amount": 5, "currency": "EUR"}, "prices": {"amount": 5}},
        ["cost.amount", "cost.currency"],
    ),
    "an object with some of the values": (
        {"price": ..., "cost": {"amount": 5}, "prices": {"amount": 5, "currency": 7}},
        ["cost.amount", "cost.currency"],
    ),
    "a key beside an object that has the old one": (
        {"width": ..., "owner": ..., "user": {"id": "2", "label": "x", "width": 3}, "size": 3},
        ["size", "user"],
    ),
    "null in place of an object": ({"name": None, "simple": "x"}, []),
    "a list beside the value of the second path": ({"name": {"simple": "Tea", "parts": [{"text": "Tea"}]}}, []),
    "a list of marked objects": (
        {"cards": ..., "cardlist": [{"type": "photo"}], "items": [{"type": "photo", "url": "x"}, {"type": "ad"}]},
        ["items[]"],
    ),
    "a list of objects that have only a mark": (
        {"cards": ..., "cardlist": [{"type": "x"}], "ads": [{"type": "ad"}]},
        ["ads[]"],
    ),
}
"""What is new -> what changes in each row (``...``: the key is absent), and the paths that are suggested."""


def first_paths(rows: int, change: Row) -> list[str]:
    page, row = shop(), {key: value for key, value in (SAMPLE | change).items() if value is not ...}
    page.payloads = [(Samples, {"rows": [row | {"id": str(number), "number": number} for number in range(rows)]})]
    return [next(iter(each.found)) for each in suggestions([page])]


@pytest.mark.parametrize(("change", "paths"), PATHS.values(), ids=PATHS)
def test_the_first_path_of_each_suggestion(change: Row, paths: list[str]) -> None:
    assert first_paths(OFTEN_ROWS, change) == paths


def test_a_key_that_rows_may_lack_is_absent_only_from_many() -> None:
    change = {"width": ..., "size": 3}
    assert (first_paths(OFTEN_ROWS - 1, change), first_paths(OFTEN_ROWS, change)) == ([], ["size"])


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
