"""Files and folders of the project: who may read them, where they are, and what is left after a process."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from scrapy.exceptions import UsageError

from crawler.storage.files import (
    PREFIX,
    check_writable,
    create_file,
    create_folder,
    data_file,
    own_temporary_files,
    write_new,
)


def mode(path: Path) -> str:
    return oct(path.stat().st_mode & 0o777)


def test_only_the_owner_may_read_what_is_created(tmp_path: Path) -> None:
    create_file(tmp_path / "a" / "b" / "store")
    write_new(tmp_path / "a" / "c" / "key", b"abc")
    create_folder(tmp_path / "d")
    assert [mode(tmp_path / each) for each in ("a", "a/b", "a/c", "d")] == ["0o700"] * 4
    assert [mode(tmp_path / each) for each in ("a/b/store", "a/c/key")] == ["0o600"] * 2
    assert (tmp_path / "a/c/key").read_bytes() == b"abc"


def test_what_exists_keeps_its_mode_and_content(tmp_path: Path) -> None:
    store = tmp_path / "folder" / "store"
    store.parent.mkdir(0o750)
    store.write_text("rows")
    store.chmod(0o640)
    create_folder(store.parent)
    create_file(store)
    assert (mode(store.parent), mode(store), store.read_text()) == ("0o750", "0o640", "rows")
    with pytest.raises(FileExistsError):
        write_new(store, b"other")
    assert store.read_text() == "rows"
    with pytest.raises(IsADirectoryError):
        create_file(store.parent)


def test_what_no_one_may_write_is_not_writable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: mode == os.W_OK and path.name == "own")
    for name in ("own", "other"):
        (tmp_path / name).touch()
    check_writable(tmp_path / "own")
    for path, replaced in ((tmp_path / "own", True), (tmp_path / "other", False), (tmp_path / "a" / "b", False)):
        with pytest.raises(PermissionError):
            check_writable(path, replaced=replaced)


def test_data_files_are_in_the_folder_of_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SCRAPY_SETTINGS_MODULE", "json")  # any module: commands set it
    with pytest.raises(UsageError, match=r"^No scrapy\.cfg in .* or above: .*, or use --store\.$"):
        data_file("jobs/store.sqlite", instead="--store")
    (tmp_path / "scrapy.cfg").write_text("[settings]\n")
    assert data_file("jobs/store.sqlite", instead="--store") == tmp_path / ".scrapy" / "jobs" / "store.sqlite"
    assert (tmp_path / ".scrapy" / "jobs").is_dir()


def test_temporary_files_of_a_process_are_removed_with_those_of_killed_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    killed, other = tmp_path / f"{PREFIX}killed", tmp_path / "another program's"
    killed.mkdir()
    (killed / "page").touch()
    other.mkdir()
    with own_temporary_files() as outer:
        assert {*tmp_path.iterdir()} == {outer, other}
        assert tempfile.gettempdir() == str(outer)
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        with own_temporary_files() as inner:  # as in another process: the lock of the first one is held
            assert {*tmp_path.iterdir()} == {outer, inner, other}
            (inner / "page").touch()
        assert {*tmp_path.iterdir()} == {outer, other}
        assert tempfile.gettempdir() == str(tmp_path)
    with pytest.raises(OSError, match="the disk is full"), own_temporary_files():
        raise OSError("the disk is full")
    assert {*tmp_path.iterdir()} == {other}
