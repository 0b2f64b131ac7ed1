"""The ``PAYLOAD_NAMES`` file: additional paths for contracts, and malicious files."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import orjson
import pytest
from scrapy.settings import Settings

from crawler.platforms import platforms
from crawler.platforms.names import PayloadNames, WrongNamesError, contracts_of, load_names, parse_names
from crawler.platforms.retail.payload import DataBlock, Row
from crawler.reading import careful, strict
from crawler.reading.contract import Contract, always, identity, sometimes
from crawler.reading.names import NO_NAMES, Line, Names
from crawler.reading.reader import read
from tests.contracts.responses import of_fixtures


class Price(Contract):
    amount: float | None = always("amount")


class Item(Contract):
    id: str = identity("id")
    likes: int | None = always("stats.likes")
    views: int | None = always("stats.views")
    prices: list[Price] = always("offers[]")
    note: str | None = sometimes("note")


class Shop(Contract):
    items: list[Item] = always("items[]")


ITEM: dict[str, Any] = {"id": "a", "stats": {"likes": 1, "views": 2}, "offers": [{"amount": 3.5}], "note": "n"}


def changed(**changes: Any) -> dict[str, Any]:
    return {name: value for name, value in (ITEM | changes).items() if value is not ...}


CHANGES = {
    "leaf": ([("stats.likes", "stats.hearts")], changed(stats={"hearts": 1, "views": 2})),
    "container": ([("stats", "counts")], changed(stats=..., counts={"likes": 1, "views": 2})),
    "list": ([("offers", "prices")], changed(offers=..., prices=[{"amount": 3.5}])),
    "level up": ([("stats.likes", "likes")], changed(stats={"views": 2}, likes=1)),
    "level down": ([("stats", "meta.stats")], changed(stats=..., meta={"stats": {"likes": 1, "views": 2}})),
    "into itself": ([("note", "note.text")], changed(note={"text": "n"})),
    "list into itself": ([("offers[]", "offers.rows[]")], changed(offers={"rows": [{"amount": 3.5}]})),
    "identity": ([("id", "uid")], changed(id=..., uid="a")),
    "two lines": ([("id", "uid"), ("note", "hint")], changed(id=..., uid="a", note=..., hint="n")),
}


@pytest.mark.parametrize(("lines", "item"), CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("old", [0, 1], ids=["all changed", "one old row"])
def test_lines_give_the_values_of_the_page_before_its_change(
    lines: list[tuple[str, str]], item: dict[str, Any], old: int
) -> None:
    names = Names(tuple(Line(Item, declared, further) for declared, further in lines))
    body = orjson.dumps({"items": [item] * 3 + [ITEM] * old})
    assert read(Shop, body, what="x").unread != []
    shop, unread = read(names.contract(Shop), body, what="x")
    assert shop is not None
    assert unread == []
    assert isinstance(shop, Shop)
    assert len(shop.items) == 3 + old
    for each in shop.items:
        assert isinstance(each, Item)
        assert (each.id, each.likes, each.views, each.note) == ("a", 1, 2, "n")
        assert [price.amount for price in each.prices] == [3.5]


def test_a_page_with_the_further_paths_is_read_in_one_pass() -> None:
    names = Names((Line(Item, "stats", "counts"),))
    body = orjson.dumps({"items": [CHANGES["container"][1]]})
    assert strict.decoded(names.contract(Shop), body) is not None


def test_a_page_with_the_old_keys_is_read_without_the_careful_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(careful, "read_changed", pytest.fail)
    names = Names((Line(Item, "stats", "counts"),))
    body = orjson.dumps({"items": [ITEM] * 3})
    old = names.old(Shop, body)
    assert (old, NO_NAMES.old(Shop, body)) == (Shop, None)
    shop, unread = read(names.contract(Shop), body, what="x", old=old)
    assert shop is not None
    assert ([each.likes for each in shop.items], unread) == ([1, 1, 1], [])


@pytest.mark.parametrize(
    ("lines", "rows", "notes", "unread"),
    [
        pytest.param(
            [("stats", "counts"), ("note", "hint")],
            [changed(stats={"likes": None, "views": 2}, note=..., hint="x"), changed(note=..., hint="y")],
            ["x", "y"],
            [],
            id="one line is stale",
        ),
        pytest.param(
            [("note", "hint")],
            [changed(note=..., hint="x"), changed(note=..., hint=["y"])],
            ["x", None],
            ["items[].hint"],
            id="one value has another type",
        ),
    ],
)
def test_a_page_with_a_further_key_is_not_read_without_it(
    lines: list[tuple[str, str]], rows: list[dict[str, Any]], notes: list[str | None], unread: list[str]
) -> None:
    names = Names(tuple(Line(Item, declared, further) for declared, further in lines))
    body = orjson.dumps({"items": rows})
    shop, found = read(names.contract(Shop), body, what="x", old=names.old(Shop, body))
    assert shop is not None
    assert [each.note for each in shop.items] == notes
    assert [each.path for each in found] == unread


def test_without_lines_for_it_a_contract_stays_itself() -> None:
    assert NO_NAMES.contract(Shop) is Shop
    names = Names((Line(Row, "averageRating", "rating"),))
    assert names.contract(Shop) is Shop
    assert names.contract(DataBlock) is names.contract(DataBlock) is not DataBlock


@pytest.mark.parametrize("platform", platforms())
def test_lines_for_absent_keys_change_no_fixture(platform: str) -> None:
    """The path in the line is tried first. If it has no value, the declared path is read."""
    kinds = contracts_of(platform).values()
    lines = [Line(kind, path, f"{path.rstrip('[]')}Absent") for kind in kinds for path in _flat_keys(kind)]
    names = Names(tuple(lines))
    for response in of_fixtures(platform):
        page = response.make()
        page.names = names
        assert _item(page) == response.original.item, response.name


def _flat_keys(kind: type[Contract]) -> list[str]:
    found = {path for value in kind.__dict__.values() for path in getattr(value, "paths", ())}
    return sorted(path for path in found if path.replace(".", "").isidentifier() and not path.startswith("__"))


def _item(page: Any) -> Any:
    return asyncio.run(page.to_item())


def of_rating(path: str) -> str:
    return json.dumps({"retail.Row": {"averageRating": path}})


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[" * 10_000, "it is not valid JSON: "),
        ('{"a":' * 10_000 + "1" + "}" * 10_000, "it is not valid JSON: "),
        ("[]", "expected an object of contracts"),
        ("7", "expected an object of contracts"),
        ('{"retial.Row": {}}', "retial.Row: no platform is called retial; did you mean retail?"),
        ('{"": {}}', ": no platform is called ; use a platform and a class: "),
        ('{"retail": {}}', "retail is not a contract"),
        ('{"retail.Rw": {}}', "retail.Rw is not a contract; did you mean retail.Row?"),
        ('{"retail.Row": []}', "retail.Row: expected an object of paths"),
        ('{"retail.Row": {"averageRatin": "x"}}', "averageRatin is not a path of retail.Row; did you mean averageR"),
        ('{"retail.Row": {"": "x"}}', "'' is not a path such as rows[].title."),
        ('{"retail.Row": {"averageRating": "a..b"}}', "'a..b' is not a path such as"),
        ('{"retail.Row": {"averageRating": "a[x]"}}', "'a[x]' is not a path such as"),
        ('{"retail.Row": {"averageRating": "\\u0000\\n["}}', "is not a path such as"),
        ('{"retail.Row": {"averageRating": 5}}', "expected a path such as rows[].title, of at most 300 characters."),
        ('{"retail.Row": {"averageRating": null}}', "expected a path such as"),
        ('{"retail.Row": {"averageRating": []}}', "expected a path, or a list of at most 10."),
        ('{"retail.Row": {"averageRating": ["a", 5]}}', "expected a path such as"),
        (
            '{"retail.Row": {"averageRating": "ratings[]"}}',
            "ratings[] leads to a list of values, but rating needs one",
        ),
        ('{"retail.Row": {"variantCriteria[]": "x"}}', "x leads to one value, but criteria needs a list of values"),
        ('{"retail.Row": {"averageRating": "[0]"}}', "[0] does not begin with a key"),
        ('{"retail.Row": {"averageRating": "numberOfReviews"}}', "is the declared path of another value, reviews"),
        (of_rating(".".join(["a"] * 10_000)), "at most 300 characters"),
        (of_rating(".".join(["a"] * 50)), "a path has at most 30 keys"),
        (json.dumps({"retail.Row": {"b" * 10_000: "x"}}), "at most 300 characters"),
    ],
)
def test_a_wrong_file_is_refused_with_a_sentence(text: str, sentence: str) -> None:
    with pytest.raises(WrongNamesError) as error:
        parse_names(text.encode())
    assert sentence in str(error.value)
    assert str(error.value)[-1] in ".?"
    assert len(str(error.value)) < 600
    assert str(error.value).isprintable()


def test_a_file_of_100_megabytes_is_not_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "names.json"
    with path.open("wb") as file:
        file.truncate(100_000_000)
    with pytest.raises(WrongNamesError, match=r"has more than 1,000,000 bytes\.$"):
        load_names(str(path))


@pytest.mark.parametrize("location", ["/no/such/file.json", "/", "nosuch://x/y.json", "s3://", "http://127.0.0.1:1/x"])
def test_an_unreadable_file_is_refused_with_a_sentence(location: str) -> None:
    with pytest.raises(WrongNamesError, match=r"^PAYLOAD_NAMES: cannot read .*\.$"):
        load_names(location)


def test_a_wrong_file_leaves_the_old_names_in_force(tmp_path: Path) -> None:
    path = tmp_path / "names.json"
    path.write_text('{"retail.Row": {"averageRating": "rating.value"}}')
    names = PayloadNames(Settings({"PAYLOAD_NAMES": str(path)}))
    first = names.current
    for wrong in ("{", json.dumps({"professional.sections": {"skills[].name": "li["}})):
        path.write_text(wrong)
        names.reload()
        assert names.current is first
    path.write_text('{"retail.Row": {"averageRating": ["a", "b"]}}')
    names.reload()
    assert [each.further for each in names.current.lines] == ["a", "b"]
    assert [each.further for each in first.lines] == ["rating.value"]


def test_labels_are_unique() -> None:
    for platform in platforms():
        kinds = [each for each in contracts_of(platform).values() if each.__module__.split(".")[-2] == platform]
        assert len({each.__name__ for each in kinds}) == len(kinds) > 0
