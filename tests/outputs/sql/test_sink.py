"""The SQL sink in both databases: the newest row, its history, unchanged rows, concurrent writers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

import pytest
import sqlalchemy as sa
from pydantic import Field

from crawler.outputs.sql.rows import TableSpec, rows_of, tables_of
from crawler.outputs.sql.sink import SqlSink, WriteCounts
from crawler.platforms.model import Entity, Model
from crawler.platforms.retail.schema import CategoryParams
from crawler.reading.unread import Unread
from crawler.targets.target import Record, Scraper, Target
from crawler.targets.warning import OutcomeWarning

START = datetime(2026, 11, 1, 12, tzinfo=UTC)


class Price(Model):
    amount: float | None


class Thing(Model):
    entity: ClassVar[Entity] = Entity("things", key=("id",), history=("price.amount", "likes"), placement=("ad",))
    id: str
    name: str
    kind: str = Field(alias="__kind", default="")
    likes: int | None = None
    price: Price = Price(amount=None)
    tags: list[str] = Field(default_factory=list)
    ad: bool = False


class Shelf(Model):
    things: list[Thing]
    total: int | None = None


class Plain(Model):
    total: int
    extra: dict[str, Any]


def scraper(data: type[Model], name: str = "shop-shelf-v1") -> Scraper:
    return Scraper(name, "shop", "", CategoryParams, data, {})


SHELF = scraper(Shelf)
TABLES = tables_of((SHELF,))


def record(data: dict[str, Any], hours: float = 0, of: Scraper = SHELF) -> Record:
    target = Target("t", of, CategoryParams(cat_id="1"))
    return Record(data, target, START + timedelta(hours=hours))


def things(*rows: dict[str, Any], hours: float = 0) -> Record:
    return record({"things": [{"name": "Thing", **row} for row in rows]}, hours)


class Database:
    """A sink, with access to the rows of its tables."""

    def __init__(self, url: str, tables: dict[str, TableSpec] = TABLES) -> None:
        self.tables = tables
        self.sink = SqlSink(url, tables.values())
        self.sink.open()

    def write(self, *records: Record) -> WriteCounts:
        return self.sink.write([row for each in records for row in rows_of(each, self.tables)])

    def rows(self, name: str, *columns: str) -> list[tuple[Any, ...]]:
        table = self.sink.metadata.tables[name]
        shown = [table.c[column] for column in columns]
        with self.sink.engine.connect() as connection:
            return [tuple(row) for row in connection.execute(sa.select(*shown).order_by(*table.primary_key.columns))]


@pytest.fixture
def db(database: str) -> Iterator[Database]:
    opened = Database(database)
    yield opened
    opened.sink.close()


def test_the_newest_row_and_its_history(db: Database) -> None:
    assert db.write(things({"id": "a", "price": {"amount": 1.5}, "likes": 3})) == WriteCounts(new=1, history=1)
    assert db.write(things({"id": "a", "price": {"amount": 1.5}, "likes": 3}, hours=1)) == WriteCounts(unchanged=1)
    assert db.write(things({"id": "a", "price": {"amount": None}, "likes": 3}, hours=2)) == WriteCounts(
        changed=1, history=1
    )
    renamed = {"id": "a", "name": "Other", "price": {"amount": None}, "likes": 3}
    assert db.write(things(renamed, hours=3)) == WriteCounts(changed=1)
    newest = db.rows("shop_things", "id", "name", "price_amount", "likes", "row_first_seen", "row_changed")
    assert newest == [("a", "Other", None, 3, START, START + timedelta(hours=3))]
    history = db.rows("shop_things_history", "id", "row_seen", "price_amount", "likes")
    assert history == [("a", START, 1.5, 3), ("a", START + timedelta(hours=2), None, 3)]


def test_co_6_a_row_has_the_warnings_of_its_record(db: Database) -> None:
    def fetched(hours: int, *warnings: OutcomeWarning) -> Record:
        record = things({"id": "a"}, hours=hours)
        record.warnings = warnings
        return record

    warning = OutcomeWarning("feed", "UPSTREAM_ERROR", "no_feed")
    assert db.write(fetched(0, warning)) == WriteCounts(new=1, history=1)
    assert db.rows("shop_things", "row_warnings") == [([warning.as_dict()],)]
    assert db.write(fetched(1, warning)) == WriteCounts(unchanged=1)
    assert db.write(fetched(2)) == WriteCounts(changed=1)
    assert db.rows("shop_things", "row_warnings", "row_changed") == [([], START + timedelta(hours=2))]


def test_re3_7_other_numbers_of_unread_rows_do_not_rewrite_a_row(db: Database) -> None:
    def fetched(hours: int, unread: Unread) -> Record:
        record = things({"id": "a"}, hours=hours)
        record.warnings = (OutcomeWarning.of_unread("page", unread),)
        return record

    unread = Unread("rows[].…unknown", "unknown", 2, 40, loses_rows=True, names=("x",))
    assert db.write(fetched(0, unread)) == WriteCounts(new=1, history=1)
    (stored,) = db.rows("shop_things", "row_warnings")[0][0]
    assert OutcomeWarning.from_dict(stored).unread == unread
    assert db.write(fetched(1, unread._replace(rows=3, of=50, names=("y",)))) == WriteCounts(unchanged=1)
    assert db.write(fetched(2, unread._replace(cause="type"))) == WriteCounts(changed=1)


def test_the_most_recently_fetched_row_wins(db: Database) -> None:
    db.write(things({"id": "a", "likes": 2}, hours=2))
    assert db.write(things({"id": "a", "likes": 1}, hours=1)) == WriteCounts(unchanged=1)
    assert db.rows("shop_things", "likes") == [(2,)]
    assert len(db.rows("shop_things_history", "likes")) == 1


def test_repeats_and_advertisements_are_one_row(db: Database) -> None:
    row = {"id": "a", "likes": 1}
    assert db.write(things(row, {**row, "ad": True}, {"id": "b"})) == WriteCounts(new=2, history=2, unchanged=1)
    assert db.write(things({**row, "ad": True}, hours=1)) == WriteCounts(unchanged=1)
    assert "ad" not in db.sink.metadata.tables["shop_things"].c


@pytest.mark.parametrize("missing", [{"id": ""}, {"id": None}, {}])
def test_an_entity_without_its_key_is_omitted(db: Database, missing: dict[str, Any]) -> None:
    assert db.write(things(missing)) == WriteCounts()


@pytest.mark.parametrize(
    ("row", "column", "stored"),
    [
        ({"name": "Tío’s 🙂\n\"'; drop table x; --"}, "name", "Tío’s 🙂\n\"'; drop table x; --"),
        ({"name": "a\x00b"}, "name", "ab"),
        ({"likes": 2**63}, "likes", None),
        ({"likes": -(2**63)}, "likes", -(2**63)),
        ({"tags": ["x\x00", "\\u0000", "é"]}, "tags", ["x", "\\u0000", "é"]),
        ({"tags": []}, "tags", []),
        ({"__kind": "k"}, "__kind", "k"),
        ({"price": {"amount": 0.1}}, "price_amount", 0.1),
    ],
)
def test_values_are_equal_in_both_databases(db: Database, row: dict[str, Any], column: str, stored: object) -> None:
    db.write(things({"id": "a", **row}))
    assert db.rows("shop_things", column) == [(stored,)]


def test_data_without_entities_is_stored_by_its_target(database: str) -> None:
    plain = scraper(Plain)
    db = Database(database, tables_of((plain,)))
    db.write(record({"total": 1, "extra": {"b": [1]}}, of=plain))
    assert db.write(record({"total": 1, "extra": {"b": [1]}}, 1, of=plain)) == WriteCounts(unchanged=1)
    db.write(record({"total": 2, "extra": {}}, 2, of=plain))
    params = '{"cat_id":"1","page":1,"sort":"best_match"}'
    assert db.rows("shop_records", "target_scraper", "target_params", "total", "extra") == [
        ("shop-shelf-v1", params, 2, {})
    ]
    db.sink.close()


def test_a_newer_model_adds_its_columns(database: str) -> None:
    class NewThing(Thing):
        stars: float | None = None

    class NewShelf(Model):
        things: list[NewThing]

    old = Database(database)
    old.write(things({"id": "a"}))
    old.sink.close()
    new = Database(database, tables_of((scraper(NewShelf),)))
    newer = Record({}, Target("t", scraper(NewShelf), CategoryParams(cat_id="1")), START + timedelta(hours=1))
    new.write(Record({"things": [{"id": "b", "name": "B", "stars": 4.5}]}, newer.target, newer.fetched_at))
    assert new.rows("shop_things", "id", "stars") == [("a", None), ("b", 4.5)]
    new.sink.close()


def test_a_batch_is_one_transaction(db: Database) -> None:
    with db.sink.engine.begin() as connection:
        connection.exec_driver_sql("drop table shop_things_history")
    with pytest.raises((sa.exc.SQLAlchemyError, ConnectionError)):
        db.write(things({"id": "a"}))
    assert db.rows("shop_things", "id") == []


def test_concurrent_writers(database: str) -> None:
    """Eight threads write the same entities in different order: no deadlock, no duplicate row, the newest wins."""
    errors: list[BaseException] = []

    def write(number: int) -> None:
        try:
            opened = Database(database)
            for turn in range(5):
                rows = [{"id": str(n), "likes": turn} for n in range(60)]
                opened.write(things(*(rows if number % 2 else rows[::-1]), hours=turn))
            opened.sink.close()
        except (sa.exc.SQLAlchemyError, ConnectionError) as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    db = Database(database)
    assert db.rows("shop_things", "id", "likes") == [(key, 4) for key in sorted(str(n) for n in range(60))]
    seen = db.rows("shop_things_history", "id", "row_seen", "likes")
    assert all(likes == (moment - START) / timedelta(hours=1) for _, moment, likes in seen)
    assert {key for key, _, likes in seen if likes == 4} == {str(n) for n in range(60)}
    db.sink.close()


class UnknownKey(Model):
    entity: ClassVar[Entity] = Entity("things", key=("a.b",))
    a: dict[str, str]


class DuplicateColumn(Model):
    entity: ClassVar[Entity] = Entity("things", key=("price_amount",))
    price: Price
    price_amount: str


@pytest.mark.parametrize(
    ("model", "message"),
    [(UnknownKey, "has no column a_b"), (DuplicateColumn, "two fields have the column price_amount")],
)
def test_an_invalid_entity_is_refused(model: type[Model], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tables_of((scraper(model),))


def test_two_entities_with_one_name_are_refused() -> None:
    class Other(Model):
        entity: ClassVar[Entity] = Entity("things", key=("name",))
        name: str

    with pytest.raises(ValueError, match="shop_things"):
        tables_of((SHELF, scraper(Other, "shop-other-v1")))
