"""Checks the commands in the documentation without running them: programs, options, arguments, files."""

from __future__ import annotations

import itertools
import re
import shlex
import subprocess
import sys
import tomllib
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from scrapy.cmdline import ScrapyArgumentParser
from scrapy.commands import ScrapyCommand
from scrapy.utils.conf import arglist_to_dict
from scrapy.utils.project import get_project_settings

from crawler.jobs.extension import argument_problems
from crawler.registry import spiders
from tests.crawls import ROOT

OTHERS = frozenset({"caddy", "cd", "curl", "export", "git", "nginx", "npm", "npx", "touch"})
"""Programs whose arguments are not checked."""
SEPARATORS = {"&&", "||", "|", ";", "&"}
ASSIGNMENT = re.compile(r"[A-Z_]+=")
HERE_DOCUMENT = re.compile(r"<<'(\w+)'.*?^\1$", re.MULTILINE | re.DOTALL)


def check_block(text: str) -> list[str]:
    """Check the commands of a block. Return them, each as one line.

    Raises:
        AssertionError: a program, an option, a setting, an argument or a file does not exist.
    """
    found = commands(text)
    for program, *arguments in found:
        if program == "scrapy":
            _check_scrapy(arguments)
        elif program.startswith("scripts/"):
            _check_script(program, arguments)
        elif program in {"pip", "python"}:
            _check_python(program, arguments)
        elif program in {"docker", "kubectl"}:
            files = [value for option, value in itertools.pairwise(arguments) if option == "-f"]
            assert all((ROOT / name).is_file() for name in files), files
        else:
            assert program in OTHERS, f"an unknown program: {program}"
    return [shlex.join(each) for each in found]


def commands(text: str) -> list[list[str]]:
    """Split a block into commands, and the commands into words, without variables that are set for a single command.

    >>> commands("cd x && A=1 scrapy list   # all\\nscrapy crawl a \\\\\\n  -O b")
    [['cd', 'x'], ['scrapy', 'list'], ['scrapy', 'crawl', 'a', '-O', 'b']]
    """
    found = []
    for line in HERE_DOCUMENT.sub("", text).replace("\\\n", " ").splitlines():
        words: list[str] = []
        for word in [*shlex.split(line, comments=True), ";"]:
            if word not in SEPARATORS:
                words.append(word)
                continue
            while words and ASSIGNMENT.match(words[0]):
                del words[0]
            if words:
                found.append(words)
            words = []
    return found


def _check_scrapy(arguments: list[str]) -> None:
    """Parse a command of Scrapy with its own parser."""
    name, *rest = arguments
    module = f"crawler.commands.{name}"
    command: ScrapyCommand = import_module(module if find_spec(module) else f"scrapy.commands.{name}").Command()
    settings = command.settings = get_project_settings()
    parser = ScrapyArgumentParser(prog=f"scrapy {name}", conflict_handler="resolve")
    command.add_options(parser)
    try:
        options, names = parser.parse_known_args(rest)
    except SystemExit:
        raise AssertionError(f"scrapy {shlex.join(arguments)}") from None
    assert not [each for each in names if each.startswith("-")], f"unknown options: {names}"
    unknown = [key for key in arglist_to_dict(options.set) if key not in settings]
    assert not unknown, f"unknown settings: {unknown}"
    if name == "crawl":
        problems = argument_problems(spiders()[names[0]], arglist_to_dict(options.spargs))
        assert not problems, problems


def _check_script(program: str, arguments: list[str]) -> None:
    text = (ROOT / program).read_text()
    header = text[: text.index("\nset -euo")]
    accepts_more = "[pytest arguments]" in header
    unknown = [each for each in arguments if each.startswith("-") and each not in header and not accepts_more]
    assert not unknown, f"{program} does not have the options {unknown}"


def _check_python(program: str, arguments: list[str]) -> None:
    if program == "pip":
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        named = {
            extra for each in arguments for extra in re.findall(r"[a-z0-9]+", "".join(re.findall(r"\[(.*)\]", each)))
        }
        assert named <= extras.keys(), named - extras.keys()
        return
    assert arguments[0] == "-m", arguments
    unknown = [each for each in arguments[2:] if each.startswith("-") and each not in _help(arguments[1])]
    assert not unknown, f"python -m {arguments[1]} does not have the options {unknown}"


@cache
def _help(module: str) -> Any:
    return subprocess.run(
        [sys.executable, "-m", module, "--help"], check=True, cwd=ROOT, capture_output=True
    ).stdout.decode()
