"""Contracts: both passes read the same values, and each deviation from the contract is reported once with its path."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.errors import ExtractionFailed
from crawler.reading import careful, strict
from crawler.reading.careful import read, read_plain
from crawler.reading.contract import Contract, NonEmpty, Unread, always, filled, identity, often, sometimes, values
from crawler.reading.strict import MAX_ROWS


class Variant(Contract):
    color: str | None = sometimes("color")
    product: Product | None = sometimes("product")


class Product(Contract, tag=("type", "product")):
    id: str = identity("id")
    name: str | None = always("name")
    rating: float | None = always("rating.average", often=True)
    seller: str | None = often("seller")
    price: int | float | str | None = sometimes("price", "prices.now")
    image: str | None = sometimes("images[-1].url")
    badges: list[str] = sometimes("badges[].flag.text")
    variants: list[Variant] = sometimes("variants[]")

    @property
    def label(self) -> str:
        return f"{self.id} {self.name}"


class Placeholder(Contract, tag=("type", "ad")):
    pass


class Listing(Contract):
    total: int | None = always("total")
    rows: list[Product | Placeholder] = always("stacks[].rows[]")


class Text(Contract, one_of=True):
    simple: str | None = sometimes("simpleText")
    runs: list[str] = sometimes("runs[].text")


class Header(Contract):
    title: Text | None = always("title")


def product(number: int = 1, **changes: Any) -> dict[str, Any]:
    row = {
        "type": "product",
        "id": str(number),
        "name": f"Tea {number}",
        "rating": {"average": 4.5},
        "seller": "Harbor",
        "price": 3,
        "images": [{"url": "a"}, {"url": "b"}],
        "badges": [{"flag": {"text": "New"}, "other": "x"}, {"flag": {"text": "Deal"}}],
        "variants": [{"color": "red", "product": None}],
    }
    return row | changes


def listing(*rows: dict[str, Any]) -> dict[str, Any]:
    return {"total": len(rows), "stacks": [{"rows": [*rows]}]}


def plain(value: Any) -> Any:
    """Return an instance of a contract as plain data. It may come from either pass."""
    if isinstance(value, list):
        return [plain(each) for each in value]
    if not isinstance(value, Contract):
        return value
    return {name: plain(getattr(value, name)) for name in (each.name for each in values(type(value)))}


def read_both(kind: type[Contract], data: Any) -> list[Unread]:
    """Read a payload in both passes. If the strict pass succeeds, both must agree, and nothing may be unread."""
    body = orjson.dumps(data)
    exact = strict.decoded(kind, body)
    value, unread = careful.read_plain(kind, data)
    assert (exact is not None) == (unread == [])
    if exact is not None:
        assert plain(exact) == plain(value)
    assert plain(read(kind, body, what="data").value) == plain(value)
    return unread


def test_values_are_counted_among_the_rows_of_their_own_contract() -> None:
    rows = [product(number, rating=None) for number in range(9)]
    without = {key: value for key, value in product(9).items() if key != "name"}
    ads = [{"type": "ad"}, {"type": "ad"}]
    unread = read_both(Listing, listing(*rows, without, *ads, {"type": "new"}))
    assert [(each.path.rpartition(".")[2], each.rows, each.of) for each in unread] == [
        ("name", 1, 10),
        ("…unknown", 1, 13),
    ]
    without["rating"] = None  # the rule "not null in at least one row" needs ten rows
    assert [each.cause for each in read_both(Listing, listing(*rows[1:], without, *ads))] == ["missing"]


class Named(Contract):
    id: NonEmpty | int = identity("id")
    label: NonEmpty | None = always("label")


class NamedRows(Contract):
    rows: list[Named] = always("rows[]")


def test_an_empty_text_is_not_an_identity() -> None:
    rows = [{"id": "a", "label": "x"}, {"id": "", "label": "y"}, {"id": 3, "label": ""}, {"id": 4, "label": None}]
    assert read_both(NamedRows, {"rows": rows}) == [
        Unread("rows[].id", "type", 1, 4, loses_rows=True),
        Unread("rows[].label", "type", 1, 4),
    ]
    assert [row.id for row in read_plain(NamedRows, {"rows": rows}).value.rows] == ["a", 3, 4]  # type: ignore[union-attr]


class Moved(Contract):
    tags: list[str] = sometimes("now.tags[]", "tags[]")


@pytest.mark.parametrize(
    ("data", "tags"),
    [
        ({"now": {"tags": []}, "tags": ["a"]}, ["a"]),
        ({"now": {"tags": ["b"]}, "tags": ["a"]}, ["b"]),
        ({"now": {"tags": []}, "tags": []}, []),
    ],
)
def test_a_list_is_read_from_the_first_path_where_it_has_entries(data: dict[str, Any], tags: list[str]) -> None:
    assert read_both(Moved, data) == []
    assert plain(careful.read_plain(Moved, data).value) == {"tags": tags}


def test_both_passes_read_a_whole_payload() -> None:
    data = listing(product(1), {"type": "ad"}, product(2, price=None, prices={"now": "3.50"}))
    assert read_both(Listing, data) == []
    for value in (strict.decoded(Listing, orjson.dumps(data)), read_plain(Listing, data).value):
        assert value is not None
        first, ad, second = value.rows
        assert isinstance(ad, Placeholder)
        assert isinstance(first, Product)
        assert isinstance(second, Product)
        assert (first.label, first.rating, first.image, first.badges) == ("1 Tea 1", 4.5, "b", ["New", "Deal"])
        assert (first.price, second.price) == (3, "3.50")
        assert first.variants[0].color == "red"


ROWS = "stacks[].rows[]"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"name": ...}, [Unread(f"{ROWS}.name", "missing", 1, 12)]),
        ({"name": 5}, [Unread(f"{ROWS}.name", "type", 1, 12)]),
        ({"name": None}, []),
        ({"id": ...}, [Unread(f"{ROWS}.id", "missing", 1, 12, loses_rows=True)]),
        ({"id": None}, [Unread(f"{ROWS}.id", "null", 1, 12, loses_rows=True)]),
        ({"id": 7}, [Unread(f"{ROWS}.id", "type", 1, 12, loses_rows=True)]),
        ({"rating": {}}, [Unread(f"{ROWS}.rating.average", "missing", 1, 12)]),
        ({"rating": None}, []),
        ({"rating": "4"}, [Unread(f"{ROWS}.rating.average", "type", 1, 12)]),
        ({"seller": ...}, []),
        ({"price": ...}, []),
        ({"price": [3]}, [Unread(f"{ROWS}.price", "type", 1, 12)]),
        ({"badges": [{"flag": {}}, {"flag": {"text": None}}]}, []),
        ({"badges": {"flag": 1}}, [Unread(f"{ROWS}.badges[].flag.text", "type", 1, 12)]),
        ({"images": []}, []),
        ({"type": "video"}, [Unread(f"{ROWS}.…unknown", "unknown", 1, 12, loses_rows=True, names=("video",))]),
        ({"type": ...}, [Unread(f"{ROWS}.type", "missing", 1, 12)]),
        ({"variants": [{"product": {"type": "product"}}]}, [Unread(f"{ROWS}.variants[].product.id", "missing", 1, 1)]),
    ],
)
def test_a_change_of_one_row_is_reported_by_its_path(change: dict[str, Any], expected: list[Unread]) -> None:
    changed = {key: value for key, value in product(99, **change).items() if value is not ...}
    assert read_both(Listing, listing(*(product(number) for number in range(11)), changed)) == expected


@pytest.mark.parametrize(
    ("key", "given", "cause"),
    [("seller", ..., "missing"), ("seller", None, "null"), ("seller", "", "null"), ("rating", None, "null")],
)
def test_a_value_that_is_never_empty_in_all_rows(key: str, given: object, cause: str) -> None:
    def rows(count: int) -> list[dict[str, Any]]:
        changed = (product(number, **{key: given}) for number in range(count))
        return [{name: value for name, value in row.items() if value is not ...} for row in changed]

    path = f"{ROWS}.{'rating.average' if key == 'rating' else key}"
    assert read_both(Listing, listing(*rows(10))) == [Unread(path, cause, 10, 10)]  # type: ignore[arg-type]
    assert read_both(Listing, listing(*rows(9))) == []
    assert read_both(Listing, listing(*rows(10), product())) == []


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"total": 1}, [Unread("stacks[].rows[]", "missing", loses_rows=True)]),
        ({"total": 1, "stacks": {}}, [Unread("stacks[].rows[]", "type", loses_rows=True)]),
        ({"total": 1, "stacks": [{"list": []}]}, [Unread("stacks[].rows[]", "missing", loses_rows=True)]),
        ({"total": 1, "stacks": None}, []),
        ({"total": 1, "stacks": []}, []),
        ([], [Unread("$", "type")]),
    ],
)
def test_a_change_of_the_container(data: object, expected: list[Unread]) -> None:
    assert read_both(Listing, data) == expected


@pytest.mark.parametrize("body", [b'{"title": {}}', b'{"title": {"simpleText": null}}'])
def test_an_object_that_is_empty_or_has_null_is_not_unknown(body: bytes) -> None:
    """Platforms send an empty object for something that was deleted."""
    value, unread = read(Header, body, what="it")
    assert value is not None
    assert value.title is not None
    assert (value.title.simple, value.title.runs, unread) == (None, [], [])


@pytest.mark.parametrize(
    "body",
    [
        b'{"title": {}}',
        b'{"title" : { }}',
        b'{"title": {}, "note": "\\"title\\": {}"}',
        b'{"title": {"simpleText": "a"}, "other": {"title": {}}}',
    ],
)
def test_the_strict_pass_reads_an_empty_object_in_place_of_a_deleted_one(body: bytes) -> None:
    """A page of 2024-10 has a deleted quote (capture 92218a725b1b). The strict pass must be able to read it."""
    assert strict.decoded(Header, body) is not None


@pytest.mark.parametrize(
    "body",
    [
        b'{"title": {"new": 1}}',
        b'{"title": {"simpleText": null}}',
        b'{"title": {"new": 1}, "note": "\\"title\\": {}"}',
        b'{"title": {"new": 1}, "other": [{"title": {}}, {"title": {}}]}',
    ],
)
def test_the_strict_pass_does_not_read_an_object_without_a_known_value(body: bytes) -> None:
    assert strict.decoded(Header, body) is None


class Row(Contract):
    product: Product | Placeholder = identity("content")


class Rows(Contract):
    rows: list[Row] = always("rows[]")


@pytest.mark.parametrize(
    ("lost", "expected"),
    [
        ({"type": "b"}, Unread("rows[].content.…unknown", "unknown", 1, 2, loses_rows=True, names=("b",))),
        (product(id=None), Unread("rows[].content.id", "null", 1, 2, loses_rows=True)),
    ],
)
def test_a_row_whose_identity_cannot_be_read_is_lost(lost: dict[str, Any], expected: Unread) -> None:
    value, unread = read(Rows, orjson.dumps({"rows": [{"content": product()}, {"content": lost}]}), what="it")
    assert value is not None
    assert [type(row.product).__name__ for row in value.rows] == ["Product"]
    assert unread == [expected]


class Deep(Contract):
    id: str = identity("inner.id")
    note: str | None = sometimes("inner.note")


@pytest.mark.parametrize("data", [{"inner": None}, {}, {"inner": {"id": None}}])
def test_an_identity_below_null_is_missing(data: dict[str, Any]) -> None:
    assert read(Deep, orjson.dumps(data), what="it").value is None


def test_an_object_with_none_of_the_known_keys_is_unknown() -> None:
    assert read_both(Header, {"title": {"simpleText": "a"}}) == []
    assert read_both(Header, {"title": {"runs": [{"text": "a"}, {"text": "b"}]}}) == []
    unknown = Unread("title.…unknown", "unknown", names=("content",))
    assert read_both(Header, {"title": {"content": "a"}}) == [unknown]


class Keyed(Contract):
    id: str = identity("new.id", "id")
    ads: list[Placeholder] = sometimes("ads[]")


def test_an_identity_may_be_null_at_one_of_its_paths() -> None:
    assert read_both(Keyed, {"id": "a", "new": None}) == []


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([None, {"content": product()}, None], [Unread("rows[]", "null", 2, 3, loses_rows=True)]),
        ([3, {"content": product()}], [Unread("rows[]", "type", 1, 2, loses_rows=True)]),
        ([], []),
        (None, []),
    ],
)
def test_a_null_entry_of_a_list_is_a_lost_row_although_the_list_may_be_null(
    rows: list[Any] | None, expected: list[Unread]
) -> None:
    assert read_both(Rows, {"rows": rows}) == expected


def test_an_unknown_entry_of_a_list_without_identities_is_no_lost_row() -> None:
    unknown = Unread("ads[].…unknown", "unknown", 1, 1, names=("new",))
    assert read_both(Keyed, {"id": "a", "ads": [{"type": "new"}]}) == [unknown]


class Renderer(Contract, one_of=True):
    video: Product | None = sometimes("rich.content.video", "video")
    shelf: Renderers | None = sometimes("shelf")


class Renderers(Contract):
    rows: list[Renderer] = always("rows[]")


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"video": product()}, []),
        ({"rich": {"content": {"video": product()}}}, []),
        ({"shelf": {"rows": [{"video": product()}]}}, []),
        ({"video": product(id=None)}, [Unread("rows[].video.id", "null", 1, 2, loses_rows=True)]),
        (
            {"rich": {"content": {"new": {}}}},
            [Unread("rows[].…unknown", "unknown", 1, 2, loses_rows=True, names=("new",))],
        ),
        ({"new": {}}, [Unread("rows[].…unknown", "unknown", 1, 2, loses_rows=True, names=("new",))]),
        ({"video": {"type": "product"}}, [Unread("rows[].video.id", "missing", 1, 2, loses_rows=True)]),
        (
            {"video": {"type": "other"}},
            [Unread("rows[].video.…unknown", "unknown", 1, 2, loses_rows=True, names=("other",))],
        ),
    ],
)
def test_a_row_of_which_no_renderer_could_be_read_is_lost(row: dict[str, Any], expected: list[Unread]) -> None:
    assert read_both(Renderers, {"rows": [row, {"video": product()}]}) == expected


def test_contracts_that_contain_themselves_too_often_are_refused() -> None:
    body = b'{"shelf": {"rows": [' * 330 + b"]}}" * 330
    with pytest.raises(ExtractionFailed, match="nested too deeply"):
        read(Renderer, body, what="data")


@pytest.mark.parametrize("cut", [b"", b"\t", rb"\ud83d", b"\xf0\x9f"], ids=["none", "tab", "surrogate", "bytes"])
def test_program_code_after_a_document(cut: bytes) -> None:
    """Also if the document must be repaired."""
    body = b' {"note": "' + cut + b'", ' + orjson.dumps(listing(product()))[1:] + b';var meta = "x";'
    assert read(Listing, body, what="data", code_after=True).value is not None
    with pytest.raises(ExtractionFailed, match="not valid JSON"):
        read(Listing, body, what="data")


def test_names_from_the_platform_are_bounded() -> None:
    data = listing(*(product(number, type=f"{number}{'x' * 100}") for number in range(9)))
    (unread,) = read_both(Listing, data)
    assert (unread.rows, unread.of, len(unread.names), {len(name) for name in unread.names}) == (9, 9, 5, {60})


def test_more_rows_than_any_page_has_are_refused() -> None:
    body = orjson.dumps(listing(*({"type": "ad"} for _ in range(MAX_ROWS + 1))))
    with pytest.raises(ExtractionFailed, match="more than 2,000 rows"):
        read(Listing, body, what="data")


NESTED = b'{"total": 1, "stacks": ' + b"[" * 1_000 + b"]" * 1_000 + b"}"
BIG = b'{"total": 1, "stacks": [], "rest": "' + b"x" * 30_000_000 + b'"}'


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "not valid JSON"),
        (b"<html>", "not valid JSON"),
        (b'{"total": 1, "stacks": [{"rows"', "not valid JSON"),
        (b'{"total": NaN, "stacks": []}', "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b"x" * 30_000_000, "not valid JSON"),
    ],
)
def test_rubbish_is_a_typed_error(body: bytes, message: str) -> None:
    with pytest.raises(ExtractionFailed, match=message):
        read(Listing, body, what="data")


@pytest.mark.parametrize(
    ("body", "total", "unread"),
    [
        (b'{"total": 1, "stacks": [], "cut": "\\ud83d"}', 1, []),
        (b'{"total": 1, "stacks": [], "cut\\ud83d": 1}', 1, []),
        (b'{"total": 1, "stacks": [], "bad": "\xf0\x9f"}', 1, []),
        (b'{"total": 1, "stacks": [], "raw": "a\nb"}', 1, []),
        (b'{"total": 1, "total": 2, "stacks": []}', 2, []),
        (BIG, 1, []),
        (NESTED, 1, ["stacks[].rows[]"]),
        (b'{"total": 1.5, "stacks": []}', None, ["total"]),
    ],
)
def test_damaged_payloads_are_read(body: bytes, total: int | None, unread: list[str]) -> None:
    value, found = read(Listing, body, what="data")
    assert value is not None
    assert (value.total, [each.path for each in found]) == (total, unread)


def test_declarations_that_contradict_themselves() -> None:
    class NullIdentity(Contract):
        id: str | None = identity("id")

    class NoList(Contract):
        names: str | None = sometimes("rows[].name")

    class NoTag(Contract):
        row: Text | Product | None = sometimes("row")

    for kind in (NullIdentity, NoList, NoTag):
        with pytest.raises(TypeError, match=kind.__name__):
            values(kind)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(sorted(product())), inner, max_size=4),
    max_leaves=20,
)


@given(JSON | st.lists(st.dictionaries(st.sampled_from(sorted(product())), JSON)).map(lambda rows: listing(*rows)))
def test_both_passes_agree_on_any_data(data: Any) -> None:
    read_both(Listing, data)


@given(st.lists(st.tuples(st.sampled_from(sorted(product())), JSON), max_size=12))
def test_both_passes_agree_on_damaged_rows(damages: list[tuple[str, Any]]) -> None:
    read_both(Listing, listing(*(product(number, **{key: value}) for number, (key, value) in enumerate(damages))))


# Values that are never null, beside values that may be


class Shelf(Contract):
    title: str | None = filled("title")
    owner: str | None = sometimes("owner.name", nulls=False)
    town: str | None = sometimes("owner.town")
    cover: str | None = often("cover", "images[0].url", nulls=False)
    note: str | None = always("note")
    marks: list[str] = sometimes("rows[].cells[].mark", nulls=False)
    texts: list[str] = sometimes("rows[].cells[].text")


class Town(Contract, nulls=False):
    name: str | None = sometimes("name")


class Strict(Contract, nulls=False):
    name: str | None = sometimes("name")
    nick: str | None = sometimes("nick", nulls=True)
    town: Town | None = sometimes("town")


SHELF = {
    "title": "T",
    "owner": {"name": "N", "town": "B"},
    "cover": "c",
    "note": "n",
    "rows": [{"cells": [{"mark": "m", "text": "t"}, {"mark": "m"}]}, {"cells": []}],
}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"title": None}, ["title: null"]),
        ({"note": None}, []),
        ({"owner": None}, ["owner.name: null"]),
        ({"owner": {"name": None}}, ["owner.name: null"]),
        ({"owner": {"town": None}}, []),
        ({"owner": {}}, []),
        ({"cover": None}, ["cover: null"]),
        ({"images": [{"url": "a"}, {"url": "b"}]}, []),
        ({"images": []}, []),
        ({"images": [{"url": "a"}, {"url": None}]}, ["images[0].url: null"]),
        ({"rows": None}, ["rows[].cells[].mark: null"]),
        ({"rows": [None]}, ["rows[].cells[].mark: null", "rows[].cells[].text: null"]),
        ({"images": [None, {"url": "b"}]}, ["images[0].url: null"]),
        ({"rows": [{"cells": None}]}, ["rows[].cells[].mark: null"]),
        ({"rows": [{"cells": [{"mark": None}]}]}, ["rows[].cells[].mark: null"]),
        ({"rows": [{"cells": [{"text": None, "mark": "m"}]}]}, []),
        ({"rows": [{"cells": [{"text": "t"}]}]}, []),
        ({"rows": [{}, {"cells": [{}]}]}, []),
    ],
)
def test_a_null_is_reported_for_a_value_that_is_never_null(change: dict[str, Any], expected: list[str]) -> None:
    """A key that is absent below a list is not null, and null is not absence."""
    assert list(map(str, read_both(Shelf, SHELF | change))) == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"name": None}, ["name: null"]),
        ({"nick": None}, []),
        ({"town": None}, ["town: null"]),
        ({"town": {"name": None}}, ["town.name: null"]),
    ],
)
def test_a_value_may_be_null_in_a_class_without_nulls(data: dict[str, Any], expected: list[str]) -> None:
    assert list(map(str, read_both(Strict, data))) == expected


def test_a_filled_value_is_not_empty_in_all_rows_of_a_page() -> None:
    class Page(Contract):
        shelves: list[Shelf] = always("shelves[]")

    assert read_both(Page, {"shelves": [SHELF | {"title": ""}] * 9}) == []
    assert list(map(str, read_both(Page, {"shelves": [SHELF | {"title": ""}] * 10}))) == [
        "shelves[].title: null in 10 of 10"
    ]


NODES = st.recursive(
    st.none() | st.just("t"),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["cells", "mark", "text", "name", "url"]), inner)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from([*SHELF]), NODES))
def test_both_passes_agree_on_nulls_at_any_depth(changes: dict[str, Any]) -> None:
    read_both(Shelf, SHELF | changes)
