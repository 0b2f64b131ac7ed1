"""What every command of the project says: its help, and the sentence and exit code for wrong use."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest
from scrapy.exceptions import UsageError
from scrapy.settings import Settings

from crawler.configuration.command import CheckedCommand, wrong_use


class Push(CheckedCommand):
    """Push targets to a job.

    The job is made by
    ``scrapy jobs``.
    """

    arguments = "NAME FILE"

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        raise NotImplementedError


def made(**settings: object) -> Push:
    command = Push()
    command.settings = Settings(settings)
    return command


def test_the_help_is_the_docstring() -> None:
    command = made()
    assert command.syntax() == "[options] NAME FILE"
    assert command.short_desc() == "Push targets to a job"
    assert command.long_desc() == "Push targets to a job. The job is made by scrapy jobs."
    assert str(command.wrong_arguments()) == "Usage: scrapy test_command NAME FILE"


def test_commands_need_a_project_and_start_no_crawlers() -> None:
    assert Push.requires_project
    assert not Push.requires_crawler_process


@pytest.mark.parametrize(
    ("message", "sentence"), [("No file", "No file."), ("Did you mean a?", "Did you mean a?"), ("No.", "No.")]
)
def test_wrong_use_is_a_sentence_on_stderr_and_in_the_log_file_and_exit_code_2(
    message: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log"
    log.write_text("before\n")
    for settings in ({"LOG_FILE": None}, {"LOG_FILE": str(log)}):
        parser = argparse.ArgumentParser(conflict_handler="resolve")
        made(**settings).add_options(parser)
        with pytest.raises(SystemExit) as ended:
            parser.error(message)
        assert ended.value.code == 2
        assert capsys.readouterr().err == f"{sentence}\n"
    assert log.read_text() == f"before\n{sentence}\n"


def test_a_failed_run_has_its_message_and_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    for code in (1, 4):
        command = made()
        command.fail(ValueError("No space is left."), code)
        assert (command.exitcode, capsys.readouterr().err) == (code, "No space is left.\n")
    command.fail("Lost.")
    assert command.exitcode == 1


def test_only_named_errors_are_wrong_use() -> None:
    with pytest.raises(UsageError, match=r"^no number$"), wrong_use(ValueError, OSError):
        raise ValueError("no number")
    with pytest.raises(KeyError), wrong_use(ValueError):
        raise KeyError("a")
