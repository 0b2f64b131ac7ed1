"""The golden record: its comparison, and the reproduction of a part of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RECORD = ROOT / "tests" / "golden.jsonl"
PLAIN, PAGES = 'sandbox/2/retail-search-v4/{"query":"a [plain]"}', 'sandbox/1/retail-search-v4/{"query":"a"} [pages] #2'
CAPTURE = "captures/photoapp/some [file].html"


def golden(*arguments: object) -> tuple[int, list[str], str]:
    """Run the script. Return its exit code, the printed lines and the log."""
    command = [sys.executable, "scripts/golden.py", *map(str, arguments)]
    run = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT, timeout=300)
    return run.returncode, run.stdout.splitlines(), run.stderr


def row(key: str, **changes: Any) -> dict[str, Any]:
    return {"key": key, "code": "OK", "message": "", "upstream": None, "details": None, "data": "1f"} | changes


def record(file: Path, *rows: dict[str, Any]) -> Path:
    file.write_text("".join(json.dumps(each) + "\n" for each in rows))
    return file


def test_a_comparison_lists_each_difference(tmp_path: Path) -> None:
    was = record(tmp_path / "was", row(PLAIN), row(PAGES), row(CAPTURE))
    failed = {"code": "UPSTREAM_ERROR", "message": "500", "data": None}
    now = record(tmp_path / "now", row(PLAIN, **failed), row(CAPTURE), row("captures/photoapp/new"))
    status, lines, log = golden("compare", was, "--now", now, "--captures", tmp_path)
    assert status == 1, log
    assert [line.split("\t")[0] for line in lines] == ["captures/photoapp/new", PAGES, PLAIN]
    assert lines[2].split("\t")[1:] == [
        '{"code":"OK","data":"1f","message":""}',
        '{"code":"UPSTREAM_ERROR","data":null,"message":"500"}',
    ]
    assert (lines[0].split("\t")[1], lines[1].split("\t")[2]) == ("null", "null")


def test_equal_records_do_not_differ(tmp_path: Path) -> None:
    was = record(tmp_path / "was", row(PLAIN), row(CAPTURE))
    assert golden("compare", was, "--now", was, "--captures", tmp_path)[:2] == (0, [])


def test_a_part_is_compared_with_the_same_part(tmp_path: Path) -> None:
    was = record(tmp_path / "was", row(PLAIN), row(PAGES), row(CAPTURE), row("sandbox/2/retail"))
    now = record(tmp_path / "now", *[row(key, data="2e") for key in (PLAIN, PAGES, CAPTURE, "sandbox/2/retail")])

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
    code = "rows = Capture('it', 'photoapp-post-v4', (Path(sys.argv[1]),)).rows(); print(json.dumps(rows))"
    code = f"import json, sys; from pathlib import Path; from golden import Capture; {code}"
    printed = subprocess.check_output([sys.executable, "-c", code, page], cwd=ROOT / "scripts", text=True)
    assert json.loads(printed)["it"]["code"] == "EXTRACTION_FAILED"


def test_the_record_is_reproducible() -> None:
    status, lines, log = golden("compare", RECORD, "--platform", "professional", "--variant", "robots")
    assert (status, lines) == (0, []), log
    assert "2 rows compared" in log
