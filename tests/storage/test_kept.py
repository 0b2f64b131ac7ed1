"""Files of kept responses: written by a crawl, written by several processes at once, and damaged or malicious."""

from __future__ import annotations

import gzip
import json
import os
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from scrapy.settings import Settings
from structlog.testing import capture_logs
from web_poet import HttpResponse

from crawler.platforms import platforms
from crawler.probe.recorder import reread
from crawler.storage import kept
from crawler.storage.kept import Head, Keeper, KeptError, KeptResponse, load
from tests import forks
from tests.changed_shop import BEFORE, RATING, RENAMED
from tests.crawls import QUICK, ROOT

HEAD = Head(
    "retail", "retail-search-v4", "search", "https://shop.example/search?q=x", 200, "text/html", {}, ["x"], "now"
)
BODY = b'<p data="token":"abcdefgh"></p> https://shop.example/a g-778899 r\xc3\xa9'
LINE = b'{"platform":"retail","scraper":"retail-search-v4","source":"search","url":"https://a.example","status":200,'
LINE += b'"content_type":"text/html","params":%s,"unread":[],"at":"now"}\n'


def scrapy(folder: Path, *arguments: str, before: str = "", **env: str) -> tuple[int, str, str]:
    """Run a command in a project folder. In its process, the simulated shop is changed."""
    (folder / "scrapy.cfg").write_text((ROOT / "scrapy.cfg").read_text())
    before = f"import os; os.environ.update({env!r}); {BEFORE}\n{before}"
    command = [sys.executable, "-m", "scrapy", *arguments, "-s", "SANDBOX=1"]
    run = forks.run(command, before=before, capture_output=True, text=True, cwd=folder)
    return run.returncode, run.stdout, run.stderr


def crawl(folder: Path, *queries: str, options: tuple[str, ...] = (), before: str = "", **env: str) -> str:
    targets = folder / "targets.jsonl"
    targets.write_text("".join(json.dumps({"id": f"{n}", "query": q}) + "\n" for n, q in enumerate(queries)))
    options = ("-a", f"targets={targets}", "-s", "TARGETS_IN_FLIGHT=1", *QUICK, *options)
    code, _, log = scrapy(folder, "crawl", "retail", *options, before=before, **env)
    assert code == 0, log
    return log


def files(folder: Path) -> list[Path]:
    return [each for each in (folder / ".scrapy").rglob("*") if each.is_file()]


def test_a_crawl_keeps_the_unread_responses_and_reads_them_again(tmp_path: Path) -> None:
    crawl(tmp_path, "mustard", RENAMED)
    folder = tmp_path / ".scrapy/unread/sandbox"
    (path,) = kept.kept(folder, ["retail"])
    assert files(tmp_path) == [path]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    head, body = load(path)[:2]
    assert (head.source, head.params["query"], head.unread) == ("search", RENAMED, [f"{RATING}: missing in 53 of 53"])
    assert head.url.startswith(platforms()["retail"].origin)
    assert b"127.0.0.1" not in body
    command = ("extract", "--unread", "retail")
    code, out, log = scrapy(tmp_path, *command)
    assert (code, out.splitlines()[1:2]) == (4, [f"  {RATING}: missing in 53 of 53"]), log
    code, out, log = scrapy(tmp_path, *command, "--suggest")
    assert (code, out.splitlines()[2]) == (4, "kept responses: 1, still not read completely: 1"), log
    assert "averageRating -> starRating (" in out.splitlines()[-1]


@pytest.mark.parametrize(
    ("options", "env"),
    [(("-s", "UNREAD_KEEP=0"), {}), (("-s", "STORE=postgresql://x"), {"SHUB_JOBKEY": "1/2/3"})],
    ids=["off", "Scrapy Cloud"],
)
def test_nothing_is_written(tmp_path: Path, options: tuple[str, ...], env: dict[str, str]) -> None:
    crawl(tmp_path, RENAMED, options=options, **env)
    assert files(tmp_path) == []


def test_a_full_disk_does_not_end_the_pauses_between_responses(tmp_path: Path) -> None:
    tmp_path.joinpath("file").touch()
    written = Keeper(20, lambda: tmp_path / "file")  # nothing can be written, because this is a file and not a folder
    with capture_logs() as logged:
        for _ in range(10):
            written.unread(response(BODY * 10_000))
            written.wait()
    assert [each["event"] for each in logged] == ["response_not_kept"] * kept.FIRST
    assert [each.name for each in tmp_path.rglob("*")] == ["file"]


# Files


def keeper(folder: Path, keep: int = 20, monkeypatch: pytest.MonkeyPatch | None = None) -> Keeper:
    if monkeypatch:
        monkeypatch.setattr(kept, "REST", 0)
        monkeypatch.setattr(kept, "WAITING", 1_000)
    return Keeper(keep, lambda: folder)


def response(body: bytes = BODY, **head: Any) -> KeptResponse:
    secrets = [("Cookie", "guest=g-778899")]
    values = {name: getattr(HEAD, name) for name in Head.__struct_fields__}
    return KeptResponse(Head(**values | head), body, lambda: secrets)


def test_a_file_has_no_secrets(tmp_path: Path) -> None:
    written = keeper(tmp_path)
    written.unread(
        response(params={"csrf_token": "abcdefgh", "q": "a@b.example.com"}, url="https://shop.example/?sig=ff0")
    )
    written.wait()
    (path,) = kept.kept(tmp_path, ["retail"])
    head, body = load(path)[:2]
    assert body.decode() == '<p data="token":"xxxxxxxx"></p> https://shop.example/a x-000000 ré'
    assert head.params == {"csrf_token": "xxxxxxxx", "q": "someone@example.com"}
    assert head.url == "https://shop.example/?sig=xx0"
    assert HttpResponse(head.url, body).text


def test_several_writers_at_once_keep_the_last_responses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keepers = [keeper(tmp_path, 5, monkeypatch) for _ in range(4)]

    def write(each: Keeper) -> None:
        for number in range(30):
            each.unread(response(b"%d" % number))
        each.wait()

    threads = [Thread(target=write, args=(each,)) for each in keepers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = list(kept.kept(tmp_path, ["retail"]))
    assert len(found) == 5
    assert all(int(load(path).body) > 20 for path in found)
    assert {path.suffix for path in tmp_path.rglob("*") if path.is_file()} == {".gz"}, "no drafts"


def test_drafts_of_killed_processes_are_deleted(tmp_path: Path) -> None:
    old, new = tmp_path / "retail/search/.a-1", tmp_path / "retail/search/.a-2"
    old.parent.mkdir(parents=True)
    for draft in (old, new):
        draft.write_text("")
    os.utime(old, (0, 0))
    written = keeper(tmp_path)
    written.unread(response())
    written.wait()
    assert (old.exists(), new.exists()) == (False, True)


def test_files_are_bounded_in_age(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = keeper(tmp_path, monkeypatch=monkeypatch)
    for age in (kept.MAX_DAYS + 1, kept.MAX_DAYS - 1):
        written.unread(response())
        written.wait()
        (path,) = (each for each in kept.kept(tmp_path, ["retail"]) if each.stat().st_mtime > time.time() - 60)
        os.utime(path, times=(time.time() - age * 86_400,) * 2)
    written.unread(response())
    written.wait()
    assert len(list(kept.kept(tmp_path, ["retail"]))) == 2


def test_files_are_bounded_in_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MAX_SOURCE", 700)
    written = keeper(tmp_path, 20, monkeypatch)
    for number in range(6):
        noise = "".join(chr(33 + (i * i * (number + 7)) % 90) for i in range(500)).encode()
        written.unread(response(noise))
    written.unread(response(bytes(kept.MAX_BODY + 1)))
    written.wait()
    sizes = [path.stat().st_size for path in kept.kept(tmp_path, ["retail"])]
    assert 1 <= len(sizes) < 6
    assert sum(sizes) <= 700
    monkeypatch.setattr(kept, "MAX_SOURCE", 1)
    written.unread(response(noise))
    written.wait()
    assert len(list(kept.kept(tmp_path, ["retail"]))) == 1, "the newest file stays, whatever its size"


def test_a_folder_with_other_things_in_place_of_files_is_read(tmp_path: Path) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "unread/retail/search"
    folder.mkdir(parents=True)
    outside.write_bytes(b"private")
    os.mkfifo(folder / "1.gz")
    (folder / "2.gz").mkdir()
    for name, target in {"3": outside, "4": Path("/dev/zero"), "5": folder / "5.gz", "6": Path("/dev/tty")}.items():
        (folder / f"{name}.gz").symlink_to(target)
    (folder / "7.gz").write_bytes(b"another user's")
    (folder / "7.gz").chmod(0)
    problems = [problem_of(path) for path in kept.kept(tmp_path / "unread", ["retail"])]
    assert [each.endswith(" is not a file.") for each in problems] == [True, True, False, True, True, True, False]
    assert outside.read_bytes() == b"private"


def test_other_things_in_place_of_files_do_not_stop_the_keeper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "retail/search"
    folder.mkdir(parents=True)
    outside.write_bytes(b"private")
    (folder / "0.gz").mkdir()
    (folder / "1.gz").symlink_to(outside)
    os.mkfifo(folder / "2.gz")
    written = keeper(tmp_path, 2, monkeypatch)
    with capture_logs() as logged:
        for _ in range(3):
            written.unread(response())
        written.wait()
    assert (logged, outside.read_bytes()) == ([], b"private")
    names = sorted(each.name for each in folder.iterdir())
    assert (len(names), names[0]) == (3, "0.gz"), "a folder stays, a link and a pipe are deleted"


def problem_of(path: Path) -> str:
    """Return the problem of a kept response that cannot be read."""
    try:
        (problem,) = reread(path, Settings()).problems
    except (KeptError, OSError) as error:
        problem = str(error)
    return problem


HOSTILE: dict[str, tuple[bytes | Callable[[], bytes], str]] = {
    "not gzip": (b"x", "is not a complete gzip file"),
    "cut": (gzip.compress(LINE % b"{}" + BODY)[:-9], "is not a complete gzip file"),
    "damaged": (gzip.compress(bytes(10_000))[:30] + b"\xff" * 40, "is not a complete gzip file"),
    "empty": (b"", "does not begin with a line about a response"),
    "100 MB": (lambda: gzip.compress(LINE % b"{}" + bytes(100_000_000), 1), "has more than 8,000,000 bytes"),
    "100 MB line": (lambda: gzip.compress(b"[" * 100_000_000, 1), "has more than 8,000,000 bytes"),
    "10,000 levels": (gzip.compress(LINE % (b'{"a":' * 10_000 + b"1" + b"}" * 10_000)), "does not begin with a line"),
    "levels in the body": (gzip.compress(LINE % b"{}" + b"[" * 10_000), "EXTRACTION_FAILED"),
    "no JSON": (gzip.compress(b"\x1b[2J\n"), "does not begin with a line about a response"),
    "wrong types": (gzip.compress(LINE % b"[]"), "Expected `object`, got `array`"),
    "keys of 1 MB": (
        gzip.compress(LINE % b"{}" + b'{"search":{"searchResult":{"%b":[]}}}' % (b"k" * 1_000_000)),
        "EXTRACTION_FAILED",
    ),
    "wrong params": (gzip.compress(LINE % b'{"query":{"a":[]},"page":{}}' + BODY), "EXTRACTION_FAILED"),
    "unknown scraper": (gzip.compress(LINE.replace(b"search-v4", b"x") % b"{}"), "unknown scraper"),
    "unknown source": (gzip.compress(LINE.replace(b'"search"', b'"../../x"') % b"{}"), "the source '../../x', which"),
}


@pytest.mark.parametrize(("content", "sentence"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_file_gives_a_sentence(tmp_path: Path, content: bytes | Callable[[], bytes], sentence: str) -> None:
    path = tmp_path / "retail/search/1.gz"
    path.parent.mkdir(parents=True)
    path.write_bytes(content if isinstance(content, bytes) else content())
    assert sentence in problem_of(path)
    assert [each for each in tmp_path.rglob("*") if each.is_file()] == [path]
    if "EXTRACTION_FAILED" not in sentence and "unknown" not in sentence and "source" not in sentence:
        with pytest.raises(KeptError):
            load(path)
