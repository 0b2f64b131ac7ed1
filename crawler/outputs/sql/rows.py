"""Records as rows: which tables a scraper's data goes to, their columns, and what a row of each is."""

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
)
from crawler.platforms.model import Entity
from crawler.targets.target import Record, Scraper

TARGET_KEY = ("target_scraper", "target_params")
"""The key of things that have none of their own: who was asked, and for what."""
WHOLE = Entity("records")
"""What the data of a scraper is whose models name no entity."""


@dataclass(frozen=True)
class TableSpec:
    """A table as all databases have it: columns by name, those of the key first."""

    name: str
    key: tuple[str, ...]
    columns: Mapping[str, Scalar]
    history: tuple[str, ...]
    """Columns whose former values are kept."""
    entity: Entity


@dataclass(frozen=True, slots=True)
class Row:
    """The newest state of one thing."""

    table: TableSpec
    values: dict[str, Any]
    digest: str
    """Of the values: rows with the same one are not written again."""
    fetched_at: datetime

    @property
    def key(self) -> tuple[str, ...]:
        """What tells it from the others of its table."""
        return tuple(self.values[name] for name in self.table.key)


def tables_of(scrapers: tuple[Scraper, ...]) -> dict[str, TableSpec]:
    """The tables of a platform's scrapers by name: one for each entity of their data.

    Raises:
        ValueError: an entity that names a field which its model does not have, or two fields that are one column.
    """
    tables: dict[str, TableSpec] = {}
    for scraper in scrapers:
        for place in entity_paths(scraper.data):
            table = _table(scraper.platform, place)
            known = tables.get(table.name)
            if known is None:
                tables[table.name] = table
            elif known.entity != table.entity:
                raise ValueError(f"two data models give {table.name} in different ways")
            else:
                both = {**known.columns, **table.columns}
                for name in known.columns.keys() & table.columns.keys():
                    both[name] = _column(merged(known.columns[name], table.columns[name]))
                tables[table.name] = TableSpec(table.name, table.key, both, table.history, table.entity)
    return tables


@cache
def entity_paths(model: type[BaseModel]) -> tuple[RecordPath, ...]:
    """Where a data model holds entities; the data as a whole where none is named."""
    fields = column_type_of_models([model])
    found = tuple(place for place in record_paths(fields) if place.fields.entity)
    return found or (RecordPath((), Struct(fields.of, WHOLE), many=False),)


def rows_of(record: Record, tables: Mapping[str, TableSpec]) -> Iterator[Row]:
    """The rows that a record gives. Things without a key (it is empty) are left out."""
    scraper = record.target.scraper
    for place in entity_paths(scraper.data):
        entity = place.fields.entity
        assert entity is not None
        table = tables[f"{scraper.platform}_{entity.name}"]
        for found in place.rows(record.data):
            values = dict.fromkeys(table.columns)
            values.update(_flat(found, place.fields))
            if not entity.key:
                values[TARGET_KEY[0]] = scraper.name
                asked = _storable(record.target.as_dict()["params"])
                values[TARGET_KEY[1]] = orjson.dumps(asked, option=orjson.OPT_SORT_KEYS).decode()
            if all(values[name] not in {None, ""} for name in table.key):
                digest = blake2b(orjson.dumps(values, option=orjson.OPT_SORT_KEYS), digest_size=16).hexdigest()
                yield Row(table, values, digest, record.fetched_at)


def _table(platform: str, place: RecordPath) -> TableSpec:
    entity = place.fields.entity
    assert entity is not None
    columns: dict[str, Scalar] = {}
    for path, kind in _leaves(place.fields):
        name = _name(path)
        if name in columns:
            raise ValueError(f"{platform}_{entity.name}: two fields are the column {name}")
        columns[name] = kind
    named = [_named(name) for name in (*entity.key, *entity.history)]
    unknown = [name for name in named if name not in columns]
    if unknown:
        raise ValueError(f"{platform}_{entity.name}: the data has no {', '.join(unknown)}")
    key = tuple(_named(name) for name in entity.key) or TARGET_KEY
    columns = {**dict.fromkeys(key, "text"), **columns}
    return TableSpec(f"{platform}_{entity.name}", key, columns, tuple(map(_named, entity.history)), entity)


def _leaves(fields: Struct) -> Iterator[tuple[tuple[str, ...], Scalar]]:
    """The columns of an object: objects within it are opened, lists are JSON, entities have their own table."""
    placement = fields.entity.placement if fields.entity else ()
    for name, shape in fields.of.items():
        if name in placement or _is_entity(shape):
            continue
        if isinstance(shape, Struct):
            yield from (((name, *path), kind) for path, kind in _leaves(shape))
        else:
            yield (name,), _column(shape)


def _flat(value: dict[str, Any], fields: Struct, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    placement = fields.entity.placement if fields.entity else ()
    for name, shape in fields.of.items():
        if name in placement or _is_entity(shape):
            continue
        if isinstance(shape, Struct):
            yield from _flat(value.get(name) or {}, shape, (*path, name))
        else:
            found = value.get(name)
            kind = _column(shape)
            yield _name((*path, name)), _storable(found if kind == "json" else coerce(found, kind))


def _is_entity(shape: ColumnType) -> bool:
    while isinstance(shape, ListOf):
        shape = shape.of
    return isinstance(shape, Struct) and shape.entity is not None


def _column(shape: ColumnType) -> Scalar:
    return "json" if isinstance(shape, Struct | ListOf) else shape


def _name(path: tuple[str, ...]) -> str:
    return "_".join(path)


def _named(field: str) -> str:
    """The column of a field that an entity names."""
    return _name(tuple(field.split(".")))


def _storable(value: Any) -> Any:
    """A value without NUL characters: PostgreSQL's text has none, so that no database gets them."""
    if isinstance(value, str):
        return value.replace("\x00", "")
    if isinstance(value, list):
        return [_storable(each) for each in value]
    if isinstance(value, dict):
        return {_storable(key): _storable(each) for key, each in value.items()}
    return value
