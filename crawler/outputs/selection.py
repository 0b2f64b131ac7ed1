"""The columns of tables, and ``-a fields=``, which selects some of them.

A column is named by the path of its value, with a dot between the keys: ``price.current_price``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from crawler.configuration.names import hint
from crawler.outputs.columns import ColumnType, ListOf, RecordPath, Struct, column_type_of_models, without_lists
from crawler.targets.target import Record, Scraper

WARNINGS = ListOf(
    Struct(
        {
            **dict.fromkeys(("source", "code", "reason", "path", "cause"), "text"),
            **dict.fromkeys(("rows", "of"), "integer"),
            "loses_rows": "boolean",
            "names": ListOf("text"),
            **dict.fromkeys(("expected", "collected"), "integer"),
            "reasons": ListOf("text"),
        }
    )
)
"""The type of the column ``warnings``.

The values from ``path`` to ``names`` are null unless a part of a payload was unread, or a limit excluded rows.
``expected``, ``collected`` and ``reasons`` are null unless a listing is incomplete.
"""


def provenance_columns(
    scrapers: Sequence[Scraper], row_path: RecordPath | None, *, sliced: bool, own: Sequence[str] = ()
) -> Struct:
    """Return the columns that identify the target of a row.

    ``row_path``: the list whose entries are the rows. None: the rows are whole records. ``sliced``: whether requested
    targets are split into slices. Then ``root`` contains the id of the requested target. ``own``: the names of the
    user's own columns in targets files.
    """
    return Struct(
        {
            "target_id": "text",
            **({"root": "text"} if sliced else {}),
            "scraper": "text",
            "params": column_type_of_models([scraper.params for scraper in scrapers]),
            **({"columns": Struct(dict.fromkeys(own, "text"))} if own else {}),
            "fetched_at": "text",
            "warnings": WARNINGS,
            "note": "text",
            **({row_path.position_column: "integer"} if row_path else {}),
        }
    )


def table_columns(
    scrapers: Sequence[Scraper], row_path: RecordPath | None, *, sliced: bool, own: Sequence[str] = ()
) -> Struct:
    """Return the columns of a table with all fields, as nested objects.

    The arguments have the same meaning as in ``provenance_columns``.
    """
    data = column_type_of_models([scraper.data for scraper in scrapers]) if row_path is None else row_path.fields
    return Struct({**provenance_columns(scrapers, row_path, sliced=sliced, own=own).of, **data.of})


def flat_columns(fields: Struct) -> Iterator[str]:
    """Yield the name of each column of a table without nested objects.

    >>> list(flat_columns(Struct({"name": "text", "price": Struct({"amount": "number"})})))
    ['name', 'price.amount']
    """
    for name, column_type in fields.of.items():
        if isinstance(column_type, Struct):
            yield from (f"{name}.{inner}" for inner in flat_columns(column_type))
        else:
            yield name


def flat_row(row: dict[str, Any], fields: Struct) -> dict[str, Any]:
    """Return the values of a table's columns. A column whose object is null or missing is omitted.

    >>> flat_row({"price": {"amount": 2}, "extra": {}}, Struct({"price": Struct({"amount": "number"})}))
    {'price.amount': 2, 'extra': {}}
    """
    values: dict[str, Any] = {}
    for name, value in row.items():
        column_type = fields.of.get(name)
        if isinstance(column_type, Struct) and isinstance(value, dict):
            values |= {f"{name}.{inner}": each for inner, each in flat_row(value, column_type).items()}
        elif value is not None or not isinstance(column_type, Struct):
            values[name] = value
    return values


def table_row(record: Record) -> dict[str, Any]:
    """Return the row of a record: the columns that identify its target, and the keys of its data."""
    return {**identified(record.provenance()), **record.data}


def identified(provenance: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of a row that identify its target. ``provenance``: the keys that precede the data in feeds."""
    return {"target_id" if key == "id" else key: value for key, value in provenance.items()}


Tree = dict[str, Any]
"""Selected key -> the tree of the keys that are selected in its value, or None for the whole value."""


@dataclass(frozen=True)
class Selection:
    """The fields that ``-a fields=`` names, in the order in which they were named."""

    tree: Tree
    fields: Struct
    """The selected columns and keys with their types."""

    @classmethod
    def parse(cls, text: str, scrapers: Sequence[Scraper], row_path: RecordPath | None, *, sliced: bool) -> Selection:
        """Parse names with commas between them. A name selects a field of the data, or a column of the target.

        ``row_path``: the list whose entries are the rows. None: the rows are whole records.

        Raises:
            ValueError: no field has one of the names. The message contains the nearest name, or all fields.
        """
        (selection,) = cls.of_tables(text, [(scrapers, row_path)], sliced=sliced)
        return selection

    @classmethod
    def of_tables(
        cls, text: str, tables: Sequence[tuple[Sequence[Scraper], RecordPath | None]], *, sliced: bool
    ) -> list[Selection]:
        """Parse names for several tables. The selection of a table contains those of the named fields that it has.

        ``tables``: for each table, its scrapers, and the list whose entries are its rows.

        Raises:
            ValueError: no table has one of the names. The message contains the nearest name, or all fields.
        """
        known = [_known(scrapers, row_path, sliced=sliced) for scrapers, row_path in tables]
        paths = [dict(_paths(each)) for each in known]
        trees: list[Tree] = [{} for _ in known]
        for name in (part.strip() for part in text.split(",")):
            if not any(name in each for each in paths):
                every = {each for of_table in paths for each in of_table}
                fields = dict.fromkeys(each for of_table in known for each in of_table.of)
                others = f"the fields are {', '.join(fields)}"
                raise ValueError(f"fields={text}: no field is called {name!r}; {hint(name, every, others)}")
            for tree, of_table in zip(trees, paths, strict=True):
                if name in of_table:
                    add_path(tree, of_table[name])
        return [cls(tree, _narrowed(fields, tree)) for tree, fields in zip(trees, known, strict=True)]

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return the selected keys of a row. Keys that the row lacks are omitted."""
        selected: dict[str, Any] = pruned(row, self.tree)
        return selected

    def record(self, record: Record) -> Record:
        """Return a record with only the selected keys. The line of a batch keeps the keys that identify its target."""
        if record.is_line:
            chosen: dict[str, Any] = {**record, "data": self.row(record.data)}
        else:
            chosen = self.row(table_row(record))
        return type(record)(chosen, record.target, record.fetched_at, record.warnings, is_line=record.is_line)


def _known(scrapers: Sequence[Scraper], row_path: RecordPath | None, *, sliced: bool) -> Struct:
    """Return the fields that can be selected."""
    # The user's own columns are known only after the files are open.
    return Struct({**table_columns(scrapers, row_path, sliced=sliced).of, "columns": "json"})


def _paths(fields: Struct, parent: tuple[str, ...] = ()) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the name and the path of each key, including those of objects in lists."""
    for name, column_type in fields.of.items():
        path = (*parent, name)
        yield ".".join(path), path
        inner = without_lists(column_type)
        if isinstance(inner, Struct):
            yield from _paths(inner, path)


def add_path(tree: Tree, path: Sequence[str]) -> None:
    """Add a selected path to the tree."""
    for key in path[:-1]:
        if tree.setdefault(key, {}) is None:
            return  # an object that contains this key is already selected as a whole
        tree = tree[key]
    tree[path[-1]] = None


def _narrowed(fields: Struct, tree: Tree) -> Struct:
    return Struct({name: _narrowed_type(fields.of[name], inner) for name, inner in tree.items()})


def _narrowed_type(column_type: ColumnType, tree: Tree | None) -> ColumnType:
    if tree is None:
        return column_type
    if isinstance(column_type, ListOf):
        return ListOf(_narrowed_type(column_type.of, tree))
    assert isinstance(column_type, Struct)
    return _narrowed(column_type, tree)


def pruned(value: Any, tree: Tree | None) -> Any:
    """Return the selected keys of a value, and of the objects in its lists. Keys that it lacks are omitted."""
    if tree is None:
        return value
    if isinstance(value, list):
        return [pruned(each, tree) for each in value]
    if isinstance(value, dict):
        return {name: pruned(value[name], inner) for name, inner in tree.items() if name in value}
    return value  # null instead of an object or a list
