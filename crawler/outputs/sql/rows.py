"""Converts a scraper's data to tables and rows of the SQL sink."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from hashlib import blake2b
from typing import Any

import orjson
from pydantic import BaseModel

from crawler.outputs.columns import (
    ColumnType,
    ListOf,
    RecordPath,
    Scalar,
    Struct,
    coerce,
    column_type_of_models,
    merged,
    record_paths,
    without_lists,
)
from crawler.platforms.model import Entity
from crawler.targets.target import Record, Scraper

TARGET_KEY = ("target_scraper", "target_params")
"""The key columns of entities without a natural key: the scraper and the params of the target."""
WHOLE_RECORD = Entity("records")
"""The entity for the whole data of a scraper whose models declare no entity."""
_CAUSE = ("source", "code", "reason", "path", "cause")
"""The keys of a warning that are part of a row's digest."""


@dataclass(frozen=True)
class TableSpec:
    """A table, described independently of the database."""

    name: str
    key: tuple[str, ...]
    columns: Mapping[str, Scalar]
    history: tuple[str, ...]
    """Names of the columns that are also in the history table, which has a row for each change of their values."""
    entity: Entity


@dataclass(frozen=True, slots=True)
class Row:
    """A row with the newest state of an entity."""

    table: TableSpec
    values: dict[str, Any]
    warnings: list[dict[str, Any]]
    """The warnings of the record."""
    digest: str
    """A digest of the values and of the warnings. Rows with an unchanged digest are not rewritten."""
    fetched_at: datetime

    @property
    def key(self) -> tuple[str, ...]:
        """The values of the key columns."""
        return tuple(self.values[name] for name in self.table.key)


def tables_of(scrapers: tuple[Scraper, ...]) -> dict[str, TableSpec]:
    """Return the tables for a platform's scrapers, by name. Each entity in their data has one table.

    Raises:
        ValueError: an entity names a field that its model does not have, two fields have the same column, or two models
            declare the same table differently.
    """
    tables: dict[str, TableSpec] = {}
    for scraper in scrapers:
        for path in entity_paths(scraper.data):
            table = _table(scraper.platform, path)
            known = tables.get(table.name)
            if known is None:
                tables[table.name] = table
            elif known.entity != table.entity:
                raise ValueError(f"two data models declare the table {table.name} differently")
            else:
                columns = {**known.columns, **table.columns}
                for name in known.columns.keys() & table.columns.keys():
                    columns[name] = _column(merged(known.columns[name], table.columns[name]))
                tables[table.name] = TableSpec(table.name, table.key, columns, table.history, table.entity)
    return tables


@dataclass(frozen=True, slots=True)
class Column:
    """A column, and where its value is found in an object."""

    name: str
    path: tuple[str, ...]
    """The keys that lead to the value: several if the value is in a nested object."""
    kind: Scalar

    def value(self, found: dict[str, Any]) -> Any:
        """Return the column's value for an object; None if a key is missing."""
        *parents, key = self.path
        for parent in parents:
            found = found.get(parent) or {}
        value = found.get(key)
        return _storable(value if self.kind == "json" else coerce(value, self.kind))


@dataclass(frozen=True, slots=True)
class EntityPath:
    """The path of an entity in the data, and the columns for it."""

    record_path: RecordPath
    entity: Entity
    columns: tuple[Column, ...]


@cache
def entity_paths(model: type[BaseModel]) -> tuple[EntityPath, ...]:
    """Return the paths of the entities in a data model, or the path of the whole data if no entity is declared."""
    fields = column_type_of_models([model])
    paths = [path for path in record_paths(fields) if path.fields.entity] or [RecordPath((), fields, many=False)]
    return tuple(EntityPath(path, path.fields.entity or WHOLE_RECORD, tuple(_columns(path.fields))) for path in paths)


def rows_of(record: Record, tables: Mapping[str, TableSpec]) -> Iterator[Row]:
    """Yield the rows for the entities in a record. An entity is omitted if a value of its key is empty."""
    scraper = record.target.scraper
    warnings = _storable(record.provenance()["warnings"])
    for path in entity_paths(scraper.data):
        table = tables[f"{scraper.platform}_{path.entity.name}"]
        for found in path.record_path.rows(record.data):
            values = dict.fromkeys(table.columns)
            values |= {column.name: column.value(found) for column in path.columns}
            if not path.entity.key:
                values[TARGET_KEY[0]] = scraper.name
                params = _storable(record.target.as_dict()["params"])
                values[TARGET_KEY[1]] = orjson.dumps(params, option=orjson.OPT_SORT_KEYS).decode()
            if all(values[name] not in {None, ""} for name in table.key):
                yield Row(table, values, warnings, _digest(values, warnings), record.fetched_at)


def _digest(values: dict[str, Any], warnings: list[dict[str, Any]]) -> str:
    # Rows without warnings have the same digest as in earlier versions of the project. The numbers of unread rows are
    # not in the digest, because they differ from page to page, so that all rows would be rewritten in each run.
    causes = [{name: each[name] for name in _CAUSE if name in each} for each in warnings]
    content = [values, causes] if warnings else values
    return blake2b(orjson.dumps(content, option=orjson.OPT_SORT_KEYS), digest_size=16).hexdigest()


def _table(platform: str, path: EntityPath) -> TableSpec:
    entity = path.entity
    columns: dict[str, Scalar] = {}
    for column in path.columns:
        if column.name in columns:
            raise ValueError(f"{platform}_{entity.name}: two fields have the column {column.name}")
        columns[column.name] = column.kind
    named = [_named(name) for name in (*entity.key, *entity.history)]
    unknown = [name for name in named if name not in columns]
    if unknown:
        raise ValueError(f"{platform}_{entity.name}: the data model has no column {', '.join(unknown)}")
    key = tuple(_named(name) for name in entity.key) or TARGET_KEY
    columns = {**dict.fromkeys(key, "text"), **columns}
    return TableSpec(f"{platform}_{entity.name}", key, columns, tuple(map(_named, entity.history)), entity)


def _columns(fields: Struct, parents: tuple[str, ...] = ()) -> Iterator[Column]:
    """Yield the columns for an object.

    The keys of nested objects become columns of the same table, lists become JSON, and nested entities are omitted,
    because they have their own tables.
    """
    placement = fields.entity.placement if fields.entity else ()
    for name, column_type in fields.of.items():
        path = (*parents, name)
        inner = without_lists(column_type)
        if name in placement or (isinstance(inner, Struct) and inner.entity is not None):
            continue
        if isinstance(column_type, Struct):
            yield from _columns(column_type, path)
        else:
            yield Column("_".join(path), path, _column(column_type))


def _column(column_type: ColumnType) -> Scalar:
    return "json" if isinstance(column_type, Struct | ListOf) else column_type


def _named(field: str) -> str:
    """Return the column name for a dotted field path in an entity's declaration."""
    return field.replace(".", "_")


def _storable(value: Any) -> Any:
    """Remove NUL characters from all texts. PostgreSQL cannot store them, and SQLite must have the same content."""
    if isinstance(value, str):
        return value.replace("\x00", "")
    if isinstance(value, list):
        return [_storable(each) for each in value]
    if isinstance(value, dict):
        return {_storable(key): _storable(each) for key, each in value.items()}
    return value
