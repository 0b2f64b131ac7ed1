"""The form of outcomes in the files of a job: the line of a record or of a failure, and the rows of tables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from crawler.outputs.columns import ColumnType, RecordPath, Struct, column_type_of_models, find_row_path
from crawler.outputs.exporters import joined_rows
from crawler.outputs.selection import Selection, identified, table_columns
from crawler.outputs.tables import Table
from crawler.registry import find_scraper
from crawler.targets import lines

if TYPE_CHECKING:
    from crawler.jobs.export import Line
    from crawler.jobs.job import Job
    from crawler.targets.target import Scraper


def record_line(line: Line) -> dict[str, Any]:
    """Return the line of a target's record."""
    outcome = line.outcome or {}
    found = lines.provenance(_identity(line), outcome["fetched_at"], outcome["warnings"], _note(line))
    return lines.record(found, line.record)


def failure_line(line: Line) -> dict[str, Any]:
    """Return the line of a failed target."""
    number = line.inputs[0].line if line.inputs else line.work["line"]
    return lines.failure(_identity(line), line.work.get("parent"), number, (line.outcome or {})["error"])


def new_entries(line: Line) -> frozenset[str] | None:
    """Return the ids of the entries of a record that ``since=`` selects. None: all."""
    new = (line.outcome or {}).get("new_entries")
    return None if new is None else frozenset(new)


def _note(line: Line) -> str:
    """Return the note of the input line, whose numbers may differ from those of other lines with the same target."""
    own = line.inputs[0].note if line.inputs else None
    return str(line.work.get("note", "")) if own is None else own


def _identity(line: Line) -> dict[str, Any]:
    """Return the keys that identify the target. A follow-up has the user's columns of its root."""
    work = line.work
    own_id, own = (line.inputs[0].id, line.inputs[0].columns) if line.inputs else (work["id"], work.get("columns", {}))
    return lines.identity(own_id, work.get("root"), work["scraper"], work["params"], own)


@dataclass(frozen=True)
class Shape:
    """The form of a scraper's rows: whole records or the entries of a list, with all fields or with some of them."""

    scraper: Scraper
    own: tuple[str, ...] = ()
    """The names of the user's own columns in targets files."""
    row_path: RecordPath | None = None
    sliced: bool = False
    """Whether requested targets are split into slices. Then the column ``root`` has the id of the requested target."""
    selection: Selection | None = None
    joint: Struct | None = None
    """The columns of a table that several scrapers share."""

    @cached_property
    def table(self) -> Table:
        """The form of tables, which have the name of the scraper."""
        if self.joint is not None:
            return Table(self.joint, has_more_keys=self.selection is None, title=self.scraper.name)
        if self.selection is not None:
            return Table(self.selection.fields, title=self.scraper.name)
        fields = table_columns([self.scraper], self.row_path, sliced=self.sliced, own=self.own)
        return Table(fields, has_more_keys=True, title=self.scraper.name)

    def rows(self, line: dict[str, Any], new: Collection[str] | None = None) -> Iterator[dict[str, Any]]:
        """Yield the rows of a record's line in tables. ``new``: as in ``exploded_rows``."""
        provenance = {key: value for key, value in line.items() if key != "data"}
        if self.row_path is None:
            rows = iter([{**identified(provenance), **line["data"]}])
        else:
            rows = joined_rows(provenance, line["data"], self.row_path, self.scraper.entries, new)
        return rows if self.selection is None else map(self.selection.row, rows)

    def lines(self, line: dict[str, Any], new: Collection[str] | None = None) -> Iterator[dict[str, Any]]:
        """Yield the lines of a record in JSON: its own line, or the entries of the list."""
        if self.row_path is not None:
            yield from self.rows(line, new)
        elif self.selection is None:
            yield line
        else:
            yield {**line, "data": self.selection.row(line["data"])}


def in_one_table(shapes: Mapping[str, Shape], fields: str | None) -> dict[str, Shape]:
    """Return the shapes of several scrapers with the same columns: the selected ``fields``, or those that all have.

    Raises:
        ValueError: without ``fields``, the columns differ. The message names the scrapers.
    """
    columns = [each.table.fields for each in shapes.values()]
    if fields is None and any(each.of.keys() != columns[0].of.keys() for each in columns):
        raise ValueError(", ".join(shapes))
    joint = _joined(columns)
    if fields is not None:
        order = [name.strip().partition(".")[0] for name in fields.split(",")]
        joint = Struct(dict(sorted(joint.of.items(), key=lambda each: order.index(each[0]))))
    return {name: replace(each, joint=joint) for name, each in shapes.items()}


def _joined(structs: Iterable[Struct]) -> Struct:
    """Return the type of objects that have the keys of all types."""
    found: dict[str, ColumnType] = {}
    for name, kind in (each for struct in structs for each in struct.of.items()):
        known = found.setdefault(name, kind)
        if isinstance(known, Struct) and isinstance(kind, Struct):
            found[name] = _joined([known, kind])
    return Struct(found)


def shapes_of(
    job: Job, scrapers: Iterable[str], own: tuple[str, ...], explode: str | None, fields: str | None
) -> dict[str, Shape]:
    """Return the shapes of a job's rows by scraper, without scrapers that lack the list ``explode`` or all ``fields``.

    Raises:
        ValueError: no scraper has the list, or no scraper has one of the fields. The message has the known names.
    """
    sliced = job.options.exhaustive
    found: list[Shape] = []
    problems: list[str] = []
    for scraper in map(find_scraper, scrapers):
        try:
            data = column_type_of_models([scraper.data])
            found.append(Shape(scraper, own, find_row_path(data, explode) if explode else None, sliced))
        except ValueError as error:
            problems.append(str(error))
    if problems and not found:
        raise ValueError("; ".join(dict.fromkeys(problems)))
    if fields is not None and found:
        tables = [([each.scraper], each.row_path) for each in found]
        selections = Selection.of_tables(fields, tables, sliced=sliced)
        pairs = zip(found, selections, strict=True)
        found = [replace(each, selection=selection) for each, selection in pairs if selection.tree]
    return {each.scraper.name: each for each in found}
