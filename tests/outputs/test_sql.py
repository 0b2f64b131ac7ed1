"""The format ``sql``: the same tables and rows in SQLite and PostgreSQL, each row once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import pytest
import sqlalchemy as sa
from pydantic import Field

from crawler.outputs.columns import column_type_of_models, record_paths
from crawler.outputs.feed_files import split_password, without_passwords
from crawler.outputs.sql import BEGIN, Database, DatabaseError, ScraperTables, identifier
from crawler.platforms.model import Mark, Model, Rows
from crawler.platforms.retail.schema import CategoryParams
from crawler.registry import scrapers
from crawler.targets.target import Scraper

OWN = {name: scraper for name, scraper in scrapers().items() if name == scraper.name}
START = datetime(2026, 11, 1, 12, tzinfo=UTC)
KEYS = {
    "microblog_profile": "data_additional_profile_demographics_screen_name",
    "microblog_profile_posts": "post_id",
    "photoapp_post_v4": "data_xdt_shortcode_media_id",
    "professional_profile": "public_identifier",
    "professional_profile_v4": "profile_username",
    "professional_profile_v4_posts": "content_id",
    "retail_category_v4": "params",
    "retail_category_v4_products": "item_id",
    "retail_search_v4": "params",
    "retail_search_v4_products": "item_id",
    "shortvideo_photo_search_v4": "params",
    "shortvideo_photo_search_v4_posts": "aweme_id",
    "videosite_profile": "profile_profile_id",
    "videosite_profile_posts": "content_id",
    "videosite_profile_v3": "profile_profile_id",
    "videosite_profile_v3_posts": "content_id",
}
"""Table -> its natural key. The key of all other tables is the key of their record, with the position in the list."""


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database, once of SQLite and once of PostgreSQL."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/out.db"
    return str(request.getfixturevalue("postgresql_store"))


def sandbox_line(scraper: Scraper) -> dict[str, Any]:
    """Return the line of the sandbox's record for a scraper's example."""
    site = import_module(f"crawler.sandbox.{scraper.platform}.site").Site(light=True)
    return line(site.expected_record({"scraper": scraper.name, **scraper.example}), scraper, params=scraper.example)


class Price(Model):
    amount: float | None


class Label(Model):
    text: str
    position: int | None = None


class Thing(Model):
    id: Annotated[str, Mark.KEY]
    name: str = ""
    kind: str = Field(alias="__kind", default="")
    likes: int | None = None
    price: Price = Price(amount=None)
    tags: list[str] = Field(default_factory=list)
    ad: Annotated[bool, Mark.ADVERTISED] = False


class Shelf(Model):
    things: Annotated[list[Thing], Rows("goods")]
    labels: list[Label] = Field(default_factory=list)
    total: int | None = None


def scraper(data: type[Model], name: str = "shop-shelf-v1") -> Scraper:
    return Scraper(name, "shop", "", CategoryParams, data, {})


SHELF = scraper(Shelf)


def line(
    data: dict[str, Any], of: Scraper = SHELF, *, hours: float = 0, params: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return the line of a record that was fetched some hours after ``START``."""
    fetched = (START + timedelta(hours=hours)).isoformat()
    return {
        "id": "t",
        "scraper": of.name,
        "params": params or {"cat_id": "1"},
        "fetched_at": fetched,
        "warnings": [],
        "note": "",
    } | {"data": data}


def things(*rows: dict[str, Any], hours: float = 0, cat_id: str = "1", **data: Any) -> dict[str, Any]:
    return line({"things": list(rows), **data}, hours=hours, params={"cat_id": cat_id})


class Content:
    """A database with the tables of scrapers, and access to its rows."""

    def __init__(self, url: str, *of: Scraper) -> None:
        self.database = Database(*split_password(url))
        self.database.prepare(of or (SHELF,))
        self.engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))

    def write(self, *lines: dict[str, Any]) -> None:
        self.database.write(lines)

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """Return all rows of all tables, in the order of their keys. Times have no time zone, as in SQLite."""
        metadata = sa.MetaData()
        metadata.reflect(self.engine)
        with self.engine.connect() as connection:
            return {
                table.name: [
                    {
                        name: value.astimezone(UTC).replace(tzinfo=None) if getattr(value, "tzinfo", None) else value
                        for name, value in row.items()
                    }
                    for row in connection.execute(sa.select(table).order_by(*table.primary_key.columns)).mappings()
                ]
                for table in metadata.sorted_tables
            }

    def rows(self, name: str, *columns: str) -> list[tuple[Any, ...]]:
        return [tuple(row[column] for column in columns) for row in self.tables()[name]]

    def run(self, statement: str) -> None:
        with self.engine.begin() as connection:
            connection.exec_driver_sql(statement)

    def close(self) -> None:
        self.database.close()
        self.engine.dispose()


@pytest.fixture
def db(url: str) -> Iterator[Content]:
    opened = Content(url)
    yield opened
    opened.close()


# The tables of all scrapers


def test_tables_have_the_natural_keys_of_the_data_models() -> None:
    found = [
        each for scraper in OWN.values() for made in [ScraperTables(scraper)] for each in (made.records, *made.lists)
    ]
    names = [each.table.name for each in found]
    assert len(names) == len(set(names))
    for each in found:
        (natural,) = [KEYS[each.table.name]] if each.table.name in KEYS else [None]
        key = each.table.primary_key.columns.keys()
        assert key == [natural] if natural else (len(key) == 2 and key[1] in {"position", "list_position"})
        assert all(len(name.encode()) <= 63 for name in [each.table.name, *each.table.columns.keys()])
    assert set(KEYS) <= set(names)


@pytest.mark.parametrize("name", OWN)
def test_a_list_with_a_table_of_its_own_is_no_column_of_the_records(name: str) -> None:
    paths = record_paths(column_type_of_models([OWN[name].data]))
    lists = {identifier(*each.path) for each in paths if each.is_list}
    assert lists.isdisjoint(ScraperTables(OWN[name]).records.table.columns.keys())


@pytest.mark.parametrize("name", OWN)
def test_a_natural_key_is_never_empty(name: str) -> None:
    fields = column_type_of_models([OWN[name].data])
    schema = OWN[name].data.model_json_schema(by_alias=True)
    for path in record_paths(fields):
        for key in path.fields.marked(Mark.KEY) if not path.many or path.is_list else []:
            described = schema
            for part in (*path.path, *key):
                described = described["properties"][part]
                described = described.get("items", described)
                if "$ref" in described:
                    described = schema["$defs"][described["$ref"].rpartition("/")[2]]
            assert described["type"] == "string"
            assert described.get("minLength") or described["pattern"], key


def test_both_databases_have_each_row_of_each_scraper_once(tmp_path: Path, postgresql_store: str) -> None:
    lines = [sandbox_line(scraper) for scraper in OWN.values()]
    found = []
    for url in (f"sqlite:///{tmp_path}/out.db", postgresql_store):
        db = Content(url, *OWN.values())
        db.write(*lines)
        first = db.tables()
        db.write(*lines)
        found += [first, db.tables()]
        db.close()
    assert found[0] == found[1] == found[2] == found[3]
    for scraper, written in zip(OWN.values(), lines, strict=True):
        assert rebuilt(scraper, found[0]) == without_null(written["data"]), scraper.name


def rebuilt(scraper: Scraper, tables: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Return the record that the rows of a scraper's tables contain."""
    made = ScraperTables(scraper)
    (row,) = tables[made.records.table.name]
    data: dict[str, Any] = {}
    for column in made.records.data:
        put(data, column.path, row[column.name])
    for each in made.lists:
        rows = sorted(tables[each.table.name], key=lambda row: row[each.path.position_column])
        entries: list[dict[str, Any]] = [{} for _ in rows]
        for entry, stored in zip(entries, rows, strict=True):
            for column in each.data:
                put(entry, column.path, stored[column.name])
        put(data, each.path.path, entries)
    found: dict[str, Any] = without_null(data)
    return found


def put(data: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for key in path[:-1]:
        data = data.setdefault(key, {})
    data[path[-1]] = value


def without_null(value: Any) -> Any:
    """Remove null, and objects of nothing but null: a table has no column that tells them apart."""
    if isinstance(value, list):
        return [without_null(each) for each in value]
    if isinstance(value, dict):
        kept = {key: without_null(each) for key, each in value.items()}
        return {key: each for key, each in kept.items() if each not in (None, {})}
    return value


# Rows


def test_the_row_that_was_fetched_last_is_kept(db: Content) -> None:
    db.write(things({"id": "a", "likes": 2}, hours=2, total=2, labels=[{"text": "new"}]))
    db.write(things({"id": "a", "likes": 1}, hours=1, total=1, labels=[{"text": "x"}, {"text": "old"}]))
    assert db.rows("shop_shelf_v1_goods", "id", "likes") == [("a", 2)]
    assert db.rows("shop_shelf_v1", "total") == [(2,)]
    assert db.rows("shop_shelf_v1_labels", "text") == [("new",)]
    db.write(things({"id": "a", "likes": None}, hours=3, total=None))
    assert db.rows("shop_shelf_v1_goods", "id", "likes", "fetched_at") == [
        ("a", None, (START + timedelta(hours=3)).replace(tzinfo=None))
    ]
    assert db.rows("shop_shelf_v1", "total") == [(None,)]
    assert db.rows("shop_shelf_v1_labels", "text") == []


def test_entries_with_a_key_stay_and_parts_of_a_record_are_replaced(db: Content) -> None:
    db.write(things({"id": "a"}, {"id": "b"}, labels=[{"text": "1"}, {"text": "2", "position": 7}]))
    db.write(things({"id": "c"}, hours=1, labels=[{"text": "3"}]))
    db.write(things({"id": "b"}, hours=2, cat_id="2", labels=[{"text": "other"}]))
    one, two = ('{"cat_id":"1","page":1,"sort":"best_match"}', '{"cat_id":"2","page":1,"sort":"best_match"}')
    assert db.rows("shop_shelf_v1_goods", "id", "record_params", "position") == [
        ("a", one, 0),
        ("b", two, 0),
        ("c", one, 0),
    ]
    assert db.rows("shop_shelf_v1_labels", "record_params", "list_position", "text", "position") == [
        (one, 0, "3", None),
        (two, 0, "other", None),
    ]


def test_a_link_and_its_id_are_one_record(db: Content) -> None:
    for params in ({"cat_id": "976759"}, {"url": "https://www.walmart.com/browse/food/976759"}):
        db.write(line({"things": []}, params=params))
    assert db.rows("shop_shelf_v1", "params") == [('{"cat_id":"976759","page":1,"sort":"best_match"}',)]


def test_of_two_rows_with_one_key_the_first_organic_one_is_written(db: Content) -> None:
    ad = {"ad": True, "likes": 9}
    db.write(things({"id": "a", **ad}, {"id": "a", "likes": 1, "ad": False}, {"id": "a"}, {"id": "b", **ad}))
    assert db.rows("shop_shelf_v1_goods", "id", "likes", "ad", "position") == [("a", 1, False, 1), ("b", 9, True, 3)]


VALUES: list[tuple[dict[str, Any], str, object]] = [
    ({"name": "Tío’s 🙂\n\"'; drop table x; --"}, "name", "Tío’s 🙂\n\"'; drop table x; --"),
    ({"name": "a\x00b"}, "name", "ab"),
    ({"likes": 2**63}, "likes", None),
    ({"likes": -(2**63)}, "likes", -(2**63)),
    ({"tags": ["x\x00", "\\u0000", "é"]}, "tags", ["x", "\\u0000", "é"]),
    ({"tags": []}, "tags", []),
    ({"__kind": "k"}, "__kind", "k"),
    ({"price": {"amount": 0.1}}, "price_amount", 0.1),
    ({"price": None}, "price_amount", None),
]


def test_values_are_equal_in_both_databases(db: Content) -> None:
    db.write(things(*({"id": str(number), **row} for number, (row, *_) in enumerate(VALUES))))
    rows = db.tables()["shop_shelf_v1_goods"]
    assert [row[column] for row, (_, column, _) in zip(rows, VALUES, strict=True)] == [stored for *_, stored in VALUES]


def test_a_record_has_its_target_and_its_warnings(db: Content) -> None:
    warnings = [{"source": "feed", "code": "UPSTREAM_ERROR", "reason": "no_feed"}]
    db.write(things(total=1) | {"warnings": warnings, "columns": {"sku": "007"}, "root": "r"})
    assert db.rows("shop_shelf_v1", "target_id", "root", "columns", "warnings") == [
        ("t", "r", {"sku": "007"}, warnings)
    ]


def test_records_of_one_write_are_one_transaction(db: Content) -> None:
    with pytest.raises(DatabaseError):
        db.write(things({"id": "a"}), things({"id": None}, hours=1))
    assert db.tables()["shop_shelf_v1_goods"] == []


def test_concurrent_writers(url: str) -> None:
    """Eight threads write the same entries in different orders: no deadlock, no row twice, the newest stays."""
    errors: list[BaseException] = []

    def write(number: int) -> None:
        try:
            opened = Content(url)
            for turn in range(5):
                rows = [{"id": str(n), "likes": turn} for n in range(60)]
                opened.write(things(*(rows if number % 2 else rows[::-1]), hours=turn))
            opened.close()
        except Exception as error:  # noqa: BLE001  # the main thread must get any error
            errors.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    db = Content(url)
    assert db.rows("shop_shelf_v1_goods", "id", "likes") == [(key, 4) for key in sorted(str(n) for n in range(60))]
    db.close()


def test_a_write_waits_for_other_processes_for_a_bounded_time(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crawler.outputs.sql.WAIT_SECONDS", 0.1)
    monkeypatch.setitem(BEGIN, "postgresql", BEGIN["postgresql"].replace("60s", "100ms"))
    db = Content(url)
    lock = {"sqlite": "BEGIN IMMEDIATE", "postgresql": "SELECT pg_advisory_xact_lock(7403811)"}[db.engine.name]
    with db.engine.connect() as other:
        other.exec_driver_sql(lock)
        with pytest.raises(DatabaseError, match="lock"):
            db.write(things({"id": "a"}))
    db.write(things({"id": "b"}))
    assert db.rows("shop_shelf_v1_goods", "id") == [("b",)]
    db.close()


def test_a_lost_connection_is_opened_again(postgresql_store: str) -> None:
    db = Content(postgresql_store)
    db.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND"
        " pid <> pg_backend_pid()"
    )
    db.write(things({"id": "a"}))
    assert db.rows("shop_shelf_v1_goods", "id") == [("a",)]
    db.close()


# Tables of other versions


def test_a_missing_column_is_added(url: str) -> None:
    db = Content(url)
    db.write(things({"id": "a", "likes": 1}))
    db.run("ALTER TABLE shop_shelf_v1_goods DROP COLUMN likes")
    db.run("ALTER TABLE shop_shelf_v1_goods ADD COLUMN mine TEXT")
    db.close()
    db = Content(url)
    assert db.rows("shop_shelf_v1_goods", "id", "likes", "mine") == [("a", None, None)]
    db.write(things({"id": "a", "likes": 2}))
    assert db.rows("shop_shelf_v1_goods", "id", "likes", "mine") == [("a", 2, None)]
    db.close()


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("(id TEXT, likes BIGINT)", "the table shop_shelf_v1_goods has the key (), not (id): rename or drop it"),
        ("(id TEXT, likes BIGINT, PRIMARY KEY (id, likes))", "has the key (id, likes), not (id)"),
        (
            "(id TEXT PRIMARY KEY, likes TEXT)",
            "the table shop_shelf_v1_goods has the column likes of type TEXT, not BIGINT: rename or drop the table",
        ),
    ],
)
def test_a_table_of_another_form_is_refused(url: str, statement: str, message: str) -> None:
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        connection.exec_driver_sql(f"CREATE TABLE shop_shelf_v1_goods {statement}")
    with pytest.raises(DatabaseError) as raised:
        Content(url)
    assert message in str(raised.value)
    with engine.connect() as connection:
        assert sa.inspect(connection).get_table_names() == ["shop_shelf_v1_goods"], "no other table was created"
    engine.dispose()


class DuplicateColumn(Model):
    price: Price
    price_amount: str


class DuplicateRecord(Model):
    params: str


@pytest.mark.parametrize("data", [DuplicateColumn, DuplicateRecord])
def test_two_values_with_one_column_are_refused(data: type[Model]) -> None:
    with pytest.raises(sa.exc.DuplicateColumnError):
        ScraperTables(scraper(data))


# URLs and passwords


@pytest.mark.parametrize(
    ("url", "clean", "password"),
    [
        ("postgresql://me:a%40b%2F@host:5432/db", "postgresql://me@host:5432/db", "a@b/"),
        ("postgresql://me:@host/db", "postgresql://me@host/db", ""),
        ("postgresql://me:a:b@h1:1,h2:2/db?sslmode=require", "postgresql://me@h1:1,h2:2/db?sslmode=require", "a:b"),
        ("postgresql://me@/db?host=/run", "postgresql://me@/db?host=/run", None),
        ("postgres://host/db_%(name)s", "postgres://host/db_%(name)s", None),
        ("sqlite:///a@b:c.db", "sqlite:///a@b:c.db", None),
    ],
)
def test_a_url_is_split_from_its_password(url: str, clean: str, password: str | None) -> None:
    assert split_password(url) == (clean, password)
    feeds = without_passwords({url: {"format": "sql"}, "out.csv": {"format": "csv"}})
    assert feeds == {
        clean: {"password": password, "format": "sql", "batch_item_count": 0},
        "out.csv": {"format": "csv"},
    }
    assert without_passwords(feeds) == feeds


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:top/secret@host/db",
        "postgresql://me:top#secret@host/db",
        "postgresql://me:top?secret@host/db",
        "postgresql://me@host/db?password=topsecret",
        "postgresql://me:secret@[host/db",
        "postgresql://me:secret@host",
    ],
)
def test_a_malformed_url_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(ValueError, match=r"postgresql://…: expected .* percent-encoded") as raised:
        split_password(url)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("sqlite://", "sqlite:// names no database"),
        ("postgresql://host/", "names no database"),
        ("postgresql://host:port/db", "postgresql://host:port/db is not the URL of a database"),
    ],
)
def test_a_url_without_a_database_is_refused(url: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Database(url)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("postgresql://me@127.0.0.1:9/db", "postgresql://me@127.0.0.1:9/db: connection failed: .*Connection refused"),
        ("postgres://me@127.0.0.1:9/db", "postgres://me@127.0.0.1:9/db: connection failed: "),
        ("sqlite:////proc/nothing/out.db", "sqlite:////proc/nothing/out.db: .*No such file or directory"),
        ("sqlite:////dev/null", "sqlite:////dev/null: "),
    ],
)
def test_an_unusable_database_is_named_without_its_password(url: str, message: str) -> None:
    with pytest.raises(DatabaseError, match=message) as raised:
        Database(url, "secret").prepare([SHELF])
    assert "secret" not in str(raised.value)
    assert "\n" not in str(raised.value)
