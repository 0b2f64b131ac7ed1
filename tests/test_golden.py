"""The golden record: its rows and hashes, the comparison with it, and the reproduction of a part of it."""

from __future__ import annotations

import doctest
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from crawler.registry import scrapers
from crawler.targets.parser import check_params
from scripts.captures import CAPTURES, ROOT, captures
from scripts.golden import outcome
from scripts.golden.crawls import SEEDS, Checkout, listed, numbered, shortened
from scripts.golden.extracts import Capture, Extractor
from scripts.golden.outcome import Difference, Outcome, canonical, hashes, outcome_differences, row_differences
from scripts.golden.record import Rows, Selection, read, write

pytestmark = pytest.mark.meta

RECORD = ROOT / "tests" / "golden.jsonl"
PLAIN, PAGES = 'sandbox/2/retail-search-v4/{"query":"a [plain]"}', 'sandbox/1/retail-search-v4/{"query":"a"} [pages] #2'
CAPTURE = "captures/photoapp/0123456789ab"
DATA = {"rows": [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}], "next": None}


def golden(*arguments: object) -> tuple[int, list[str], str]:
    """Run the golden record's program. Return its exit code, the printed lines and the log."""
    command = [sys.executable, "-m", "scripts.golden", *map(str, arguments)]
    run = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT, timeout=300)
    return run.returncode, run.stdout.splitlines(), run.stderr


def record(file: Path, rows: Rows) -> Path:
    write(file, rows)
    return file


def row(data: Any = DATA, *warnings: str) -> dict[str, Any]:
    return Outcome("OK", data=data, warnings=warnings).row()


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        pytest.param(DATA, set(), id="equal"),
        pytest.param({**DATA, "next": 0}, {"next"}, id="null to 0"),
        pytest.param({"rows": DATA["rows"]}, {"next"}, id="a key is missing"),
        pytest.param({**DATA, "rows": [{"id": 1, "name": "a"}, {"id": 2, "name": "c"}]}, {"rows[].name"}, id="a value"),
        pytest.param(
            {**DATA, "rows": [{"id": 1, "name": "a"}, {"id": "2", "name": "b"}]}, {"rows[].id"}, id="another type"
        ),
        pytest.param(
            {**DATA, "rows": [{"id": 1, "name": "b"}, {"id": 2, "name": "a"}]},
            {"rows[].name"},
            id="values change places",
        ),
        pytest.param(
            {**DATA, "rows": [{"id": 1, "name": "a"}]}, {"rows[]", "rows[].id", "rows[].name"}, id="a row is lost"
        ),
        pytest.param({**DATA, "rows": []}, {"rows[]", "rows[].id", "rows[].name"}, id="all rows are lost"),
        pytest.param({**DATA, "rows": None}, {"rows", "rows[]", "rows[].id", "rows[].name"}, id="a list to null"),
    ],
)
def test_6_a_changed_value_changes_the_hash_of_its_path_alone(after: Any, expected: set[str]) -> None:
    assert {each.place for each in row_differences(row(), row(after))} == expected


def test_an_empty_list_is_not_null_and_an_empty_object_is_not_missing() -> None:
    values: list[Any] = [[], None, {}, "", 0, False, [None], [[]], [{}]]
    assert len({json.dumps(hashes({"a": value})) for value in values}) == len(values)
    assert hashes({}) != hashes([])


def test_warnings_are_compared_one_by_one_without_their_order() -> None:
    assert row_differences(row(DATA, "one", "two"), row(DATA, "two", "one")) == []
    (found,) = row_differences(row(DATA, "one"), row(DATA))
    assert (found.place, found.after) == ("warnings", "absent")


def test_values_are_listed_with_their_places() -> None:
    before = Outcome("OK", warnings=("one", "two"), data={"rows": [{"id": n} for n in range(5)], "next": None})
    after = Outcome("OK", warnings=("two",), data={"rows": [{"id": n} for n in (0, 1, 3, 5)], "more": []})
    assert outcome_differences(before, after) == [
        Difference("warnings", '"one"', "absent"),
        Difference("more", "absent", "[]"),
        Difference("next", "null", "absent"),
        Difference("rows[2]", '{"id":2}', "absent"),
        Difference("rows[4].id", "4", "5"),
    ]
    failed = Outcome("UPSTREAM_ERROR", "500")
    assert [each.place for each in outcome_differences(before, failed)] == [
        *("code", "message", "warnings", "warnings", "data"),
    ]
    assert outcome_differences(None, failed) == [Difference("row", "absent", '"UPSTREAM_ERROR"')]


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    rows = {
        PLAIN: row(DATA, "a warning"),
        PAGES: row({**DATA, "next": 1}),
        CAPTURE: Outcome("TARGET_NOT_FOUND", "a quoted page", {"status": 404}, [1], hides_message=True).row(),
    }
    file = record(tmp_path / "record", rows)
    assert read(file, Selection()) == rows
    assert "quoted" not in file.read_text()
    assert "a warning" not in file.read_text()
    assert file.read_text().count('"paths"') == 1  # rows with the same paths share one entry


def test_equal_keys_are_numbered_independently_of_their_order() -> None:
    found = [("key", Outcome("OK", data=1)), ("key", Outcome("OK", data=2)), ("other", Outcome("OK"))]
    assert numbered(found) == numbered(found[::-1])
    assert numbered(found).keys() == {"key", "key #2", "other"}


def test_a_comparison_lists_each_difference(tmp_path: Path) -> None:
    was = record(tmp_path / "was", {PLAIN: row(), PAGES: row(), CAPTURE: row()})
    changed = {PLAIN: Outcome("UPSTREAM_ERROR", "500").row(), "captures/photoapp/new": row(), CAPTURE: row({"next": 1})}
    now = record(tmp_path / "now", changed)
    status, lines, log = golden("compare", was, "--now", now, "--captures", tmp_path)
    assert status == 1, log
    found = [tuple(line.split("\t")[:2]) for line in lines]
    assert found == [
        *((CAPTURE, place) for place in ("next", "rows[]", "rows[].id", "rows[].name")),
        ("captures/photoapp/new", "row"),
        (PAGES, "row"),
        *((PLAIN, place) for place in ("code", "data", "message")),
    ]
    assert lines[4].split("\t")[2:] == ["absent", '"OK"']
    assert "3 rows compared, 4 differ" in log
    assert re.search(r"^ +2 row$", log, re.MULTILINE)


def test_equal_records_do_not_differ(tmp_path: Path) -> None:
    was = record(tmp_path / "was", {PLAIN: row(), CAPTURE: row()})
    assert golden("compare", was, "--now", was, "--captures", tmp_path)[:2] == (0, [])


def test_a_part_is_compared_with_the_same_part(tmp_path: Path) -> None:
    keys = (PLAIN, PAGES, CAPTURE, "sandbox/2/retail")
    was, now = (record(tmp_path / name, dict.fromkeys(keys, row(name))) for name in ("was", "now"))

    def differing(*part: str) -> list[str]:
        lines = golden("compare", was, "--now", now, "--captures", tmp_path, *part)[1]
        return [line.split("\t")[0] for line in lines]

    assert differing("--platform", "retail", "--seed", "2") == ["sandbox/2/retail", PLAIN]
    assert differing("--variant", "pages") == [PAGES]
    assert differing("--platform", "photoapp") == [CAPTURE]
    assert differing("--variant", "captures", "--variant", "pages") == [CAPTURE, PAGES]


def test_a_saved_response_that_fails_is_recorded_with_the_code_of_its_error(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("<html>Nothing that a page object reads.</html>")
    with Extractor(Checkout()) as extractor:
        found = Capture("it", "photoapp-post-v4", (page,)).outcomes(extractor)
        unknown = Capture("it", "no-scraper", (page,)).outcomes(extractor)
    assert (found["it"].code, unknown["it"].code) == ("EXTRACTION_FAILED", "EXIT 2")


def test_captures_are_named_by_their_content(tmp_path: Path) -> None:
    (tmp_path / "retail").mkdir()
    for name, content in {"retail/somebody.html": b"1", "retail/the-same.html": b"1", "retail/notes.md": b"2"}.items():
        (tmp_path / name).write_bytes(content)
    assert captures(tmp_path) == {"6b86b273ff34": tmp_path / "retail/somebody.html"}


@pytest.mark.skipif(not CAPTURES.is_dir(), reason="the captures (../shared/captures) are missing")
def test_no_file_of_the_repository_names_the_file_of_a_capture() -> None:
    stems = "\n".join({file.name.partition(".")[0] for file in captures().values()})
    found = subprocess.run(
        ["git", "grep", "--fixed-strings", "--files-with-matches", "-f", "-"],  # noqa: S607
        check=False,
        input=stems,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert (found.stdout, found.stderr) == ("", "")


def test_the_examples_are_right() -> None:
    found = doctest.testmod(outcome)
    assert (found.attempted, found.failed) == (1, 0)


@pytest.mark.soak
def test_values_of_another_checkout_are_those_of_this_one_if_it_is_this_one(tmp_path: Path) -> None:
    """The record differs from the results, but both checkouts give the same ones: no values are listed, exit code 1."""
    part = ("--platform", "professional", "--variant", "robots")
    rows = read(RECORD, Selection(("professional",), ("robots",)))
    was = record(tmp_path / "was", {key: {**each, "code": "OTHER"} for key, each in rows.items()})
    status, lines, log = golden("compare", was, *part, "--values", ROOT)
    assert (status, lines) == (1, []), log
    assert "2 rows compared, 2 differ" in log


def test_the_record_is_reproducible() -> None:
    status, lines, log = golden("compare", RECORD, "--platform", "professional", "--variant", "robots")
    assert (status, lines) == (0, []), log
    assert "2 rows compared" in log


def test_a_target_of_the_list_exists_in_the_sandbox_unless_the_list_says_otherwise() -> None:
    """Sixty members were once renamed in the sandbox, so their rows compared one "not found" error with another."""
    missing = {key for key, row in read(RECORD, Selection()).items() if row["code"] == "TARGET_NOT_FOUND"}
    for target in listed():
        if "scraper" in target and "captures" not in target and "fault" not in target:
            checked = check_params(scrapers()[target["scraper"]], target["params"])
            params = canonical(shortened(checked.model_dump(mode="json", exclude_none=True)))
            keys = {f"sandbox/{seed}/{target['scraper']}/{params}" for seed in target.get("seeds", SEEDS)}
            assert bool(keys & missing) == target.get("unknown", False), target


def test_a_selection_is_written_into_the_record(tmp_path: Path) -> None:
    """Rows that are not selected are kept, including those of the recorded pages if their folder is missing."""
    file = record(tmp_path / "record", {PLAIN: row(), PAGES: row(), CAPTURE: row()})
    now = record(tmp_path / "now", {PLAIN: row({"next": 1})})
    status, _, log = golden("write", file, "--now", now, "--variant", "plain", "--captures", tmp_path / "none")
    assert status == 0, log
    assert read(file, Selection()) == {PLAIN: row({"next": 1}), PAGES: row(), CAPTURE: row()}
