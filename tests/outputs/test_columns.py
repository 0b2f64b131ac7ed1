"""The description of a data model's columns, from which all table formats are derived."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from crawler.outputs.columns import (
    ColumnType,
    ListOf,
    Struct,
    coerce,
    column_type_of,
    column_type_of_models,
    find_row_path,
    record_paths,
)
from crawler.platforms.model import Mark, Model, Rows


class Inner(Model):
    count: int | None


class Node(BaseModel):
    name: str
    children: list[Node] = []


class Empty(Model):
    pass


class Outer(Model):
    kind: str = Field(alias="__kind")
    inner: Inner
    rows: list[Inner]


class Wider(Outer):
    also: float | None


class Other(Model):
    inner: str
    rows: list[str]
    also: list[str]


@pytest.mark.parametrize(
    ("annotation", "column_type"),
    [
        (str, "text"),
        (int | None, "integer"),
        (Annotated[float | None, Field(ge=0)], "number"),
        (bool, "boolean"),
        (Literal["a", "b"], "text"),
        (Literal["a", 1], "json"),
        (int | float, "number"),
        (str | int, "json"),
        (dict[str, Any], "json"),
        (Any, "json"),
        (list[str], ListOf("text")),
        (list[Annotated[str, Field(min_length=1)] | None], ListOf("text")),
        (list[list[Any]], ListOf(ListOf("json"))),
        (Inner | None, Struct({"count": "integer"})),
        (Empty, "json"),
        (Node, Struct({"name": "text", "children": ListOf("json")})),
        (bytes, "json"),
    ],
)
def test_annotations_have_column_types(annotation: Any, column_type: ColumnType) -> None:
    assert column_type_of(annotation) == column_type


def test_models_of_one_table_are_merged() -> None:
    inner = Struct({"count": "integer"})
    expected: dict[str, ColumnType] = {"__kind": "text", "inner": inner, "rows": ListOf(inner), "also": "number"}
    assert column_type_of_models([Outer, Wider]) == Struct(expected)
    assert column_type_of_models([Wider, Outer]) == Struct(expected)
    either = expected | {"inner": "json", "rows": ListOf("json"), "also": "json"}
    assert column_type_of_models([Wider, Other]) == column_type_of_models([Other, Wider]) == Struct(either)


@pytest.mark.parametrize(
    ("value", "column_type", "coerced"),
    [
        (None, ListOf("text"), None),
        (2**63 - 1, "integer", 2**63 - 1),
        (2**63, "integer", None),
        ({"a": [1, None]}, "json", '{"a":[1,null]}'),
        ({"count": 3}, Struct({"count": "integer", "late": "text"}), {"count": 3, "late": None}),
        ([{"count": 2**70}], ListOf(Struct({"count": "integer"})), [{"count": None}]),
    ],
)
def test_values_are_coerced(value: Any, column_type: ColumnType, coerced: Any) -> None:
    assert coerce(value, column_type) == coerced


def test_rows_are_found_through_lists_and_objects() -> None:
    class Edge(Model):
        node: Inner | None

    class Page(Model):
        edges: list[Edge]

    data = {"edges": [{"node": {"count": 1}}, {"node": None}, {}, {"node": {"count": 2}}]}
    (record_path,) = (each for each in record_paths(column_type_of_models([Page])) if each.path[-1:] == ("node",))
    assert record_path.rows(data) == [{"count": 1}, {"count": 2}]
    assert record_path.rows({}) == []


def test_a_list_is_found_by_name_key_or_path() -> None:
    class Post(Model):
        id: str

    class Data(Model):
        main: Annotated[list[Post], Rows("posts")]
        more: Inner

    class Whole(Model):
        data: Data

    fields = column_type_of_models([Whole])
    assert {find_row_path(fields, name).path for name in ("posts", "main", "data.main")} == {("data", "main")}
    with pytest.raises(ValueError, match=r"its lists are: data\.main"):
        find_row_path(fields, "more")


def test_marked_fields_are_found_in_objects_but_not_in_lists() -> None:
    class Person(Model):
        id: Annotated[str, Mark.KEY]

    class Post(Model):
        code: Annotated[str, Mark.KEY] = Field(alias="__code")
        author: Person
        likers: list[Person]
        ad: Annotated[bool, Mark.ADVERTISED]

    fields = column_type_of_models([Post])
    assert fields.marked(Mark.KEY) == [("__code",), ("author", "id")]
    assert fields.marked(Mark.ADVERTISED) == [("ad",)]


def test_rows_are_distinct_by_their_key_and_organic_rows_come_first() -> None:
    class Post(Model):
        id: Annotated[str, Mark.KEY]
        ad: Annotated[bool | None, Mark.ADVERTISED] = None

    class Page(Model):
        posts: list[Post]
        plain: list[Inner]

    posts, plain = (each for each in record_paths(column_type_of_models([Page])) if each.is_list)
    ad, first, second, other = ({"id": "a", "ad": True}, {"id": "a"}, {"id": "a", "ad": False}, {"id": "b", "ad": True})
    found = posts.distinct_rows({"posts": [ad, first, second, other, other]})
    assert found == {("a",): (1, first), ("b",): (3, other)}
    assert plain.distinct_rows({"plain": [{"count": 1}, {"count": 1}]}) == {
        (0,): (0, {"count": 1}),
        (1,): (1, {"count": 1}),
    }
