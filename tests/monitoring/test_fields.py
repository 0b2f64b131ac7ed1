"""Traversal of a data model, for the metrics and ``scrapy probe``."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from crawler.monitoring.fields import FieldCount, count_fields, fields_of, optional_values
from crawler.platforms.model import Model


class Author(Model):
    """An author."""

    name: str = Field(min_length=1)
    age: int | None
    """Years; null where unknown."""


class Team(Model):
    """A group of authors."""

    name: str
    size: int


class Page(Model):
    """The whole data."""

    typename: str = Field(alias="__typename")
    authors: list[Author | Team]
    first: Author | None
    extra: dict[str, str]


DATA: dict[str, Any] = {
    "__typename": "",
    "authors": [{"name": "a", "age": None}, {"name": "b", "size": 0}, {"name": ""}],
    "first": None,
    "extra": {},
}


def test_fields_have_descriptions_and_may_be_empty() -> None:
    assert {each.key: each.may_be_empty for each in fields_of(Page)} == {
        "__typename": True,
        "authors": True,
        "first": True,
        "extra": False,
    }
    assert [(each.key, each.may_be_empty, each.description) for each in fields_of(Author)] == [
        ("name", False, ""),
        ("age", True, "Years; null where unknown."),
    ]
    assert {each.key for each in fields_of(Author, Team)} == {"name", "age", "size"}


def test_counts_and_fill_rates_use_the_same_values() -> None:
    counts: dict[str, FieldCount] = {}
    count_fields(DATA, Page, counts)
    assert counts == {
        "__typename": FieldCount(rows=1),
        "authors": FieldCount(rows=1, filled=1),
        "authors[].name": FieldCount(rows=3, filled=2),
        "authors[].age": FieldCount(rows=3, null=1),
        "authors[].size": FieldCount(rows=3, filled=1),
        "first": FieldCount(rows=1, null=1),
        "extra": FieldCount(rows=1),
    }
    assert list(optional_values(Page, DATA)) == [
        ("__typename", True),
        ("authors", False),
        *[("authors.name", False), ("authors.age", True)] * 2,
        *[("authors.name", True), ("authors.age", True)],
        ("first", True),
    ]
    assert list(optional_values(Page, {**DATA, "authors": []}))[1] == ("authors", True)
