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
from crawler.outputs.sql.rows import tables_of
from crawler.platforms.model import Entity, Model
from crawler.registry import scrapers, spiders


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


def test_a_list_is_found_by_entity_key_or_path() -> None:
    class Post(Model):
        entity = Entity("posts", key=("id",))
        id: str

    class Data(Model):
        main: list[Post]
        more: Inner

    class Whole(Model):
        data: Data

    fields = column_type_of_models([Whole])
    assert {find_row_path(fields, name).path for name in ("posts", "main", "data.main")} == {("data", "main")}
    with pytest.raises(ValueError, match=r"its lists are: data\.main"):
        find_row_path(fields, "more")


@pytest.mark.parametrize("scraper", sorted({s.name for s in scrapers().values()}))
def test_every_scraper_has_column_types(scraper: str) -> None:
    assert list(record_paths(column_type_of_models([scrapers()[scraper].data])))


@pytest.mark.parametrize("platform", sorted(spiders()))
def test_the_entities_of_a_platform_name_existing_fields(platform: str) -> None:
    tables = tables_of(spiders()[platform].scrapers)
    assert tables, platform
    assert all(name.startswith(f"{platform}_") for name in tables)
