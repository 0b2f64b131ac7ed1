"""Tools for contracts, which use the captures on this machine.

``check`` runs the checks of all platforms that ``scripts/check`` includes: ``clean``, ``silent`` and ``count``. It
writes nothing: counts that have changed are a problem.

- ``clean [PLATFORM]`` prints which responses of the lists of clean responses have a warning or no data now. With
  ``--add``, it first adds the responses that became clean.
- ``count PLATFORM`` writes a platform's ``counts.json``, and prints the declarations that the counts contradict or do
  not support.
- ``silent [PLATFORM]`` prints the names whose change is silent in recorded responses, but which ``silent.json`` does
  not list, and those that it lists without need. With ``--write``, it first writes the list.
"""

from __future__ import annotations

import argparse
import sys

from crawler.platforms import platforms
from scripts.captures import captures
from tests.contracts.changes import listed_names, silent_names, unlisted, write, wrongly_listed
from tests.contracts.counts import contradictions, count, distinct, load, save
from tests.contracts.recorded import add_clean, clean, no_longer_clean, recorded


def _clean(platform: str | None, *, add: bool) -> int:
    chosen = [platform] if platform else list(platforms())
    if add:
        print(*(f"{each}: {add_clean(each)} added" for each in chosen), sep="\n")
    problems = [line for each in chosen for line in no_longer_clean(each)]
    print(*problems, f"{sum(len(clean(each)) for each in chosen)} responses, {len(problems)} problems", sep="\n")
    return 1 if problems else 0


def _silent(platform: str | None, *, write_list: bool) -> int:
    chosen = [platform] if platform else list(platforms())
    if write_list:
        for each in chosen:
            write(each)
    problems = [line for each in chosen for line in (*unlisted(each), *wrongly_listed(each))]
    lengths = (
        f"{each}: {len(silent_names(each))} silent changes of {len(listed_names(each))} names" for each in chosen
    )
    print(*problems, *lengths, sep="\n")
    return 1 if problems else 0


def _check() -> int:
    """Check all platforms. Without the recorded pages, nothing is checked."""
    if not captures():
        print("The recorded pages are not on this machine: contracts are not checked.")
        return 0
    codes = [_declarations(each, write_counts=False) for each in platforms()]
    return max(*codes, _clean(None, add=False), _silent(None, write_list=False))


def _declarations(platform: str, *, write_counts: bool) -> int:
    payloads = list(distinct(recorded(platform)))
    counts = count(payloads)
    if write_counts:
        save(platform, counts)
    problems = contradictions({root for _, root, _ in payloads}, counts)
    if counts != load(platform):
        problems.append(f"counts.json has other counts: run python -m tests.contracts count {platform}")
    print(*problems, f"{platform}: {len(counts)} values counted, {len(problems)} problems", sep="\n")
    return 1 if problems else 0


def main() -> int:
    """Run one of the tools. Return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.contracts", description=__doc__)
    tools = parser.add_subparsers(dest="tool", required=True)
    of_clean = tools.add_parser("clean")
    of_clean.add_argument("platform", nargs="?", choices=list(platforms()))
    of_clean.add_argument("--add", action="store_true")
    of_silent = tools.add_parser("silent")
    of_silent.add_argument("platform", nargs="?", choices=list(platforms()))
    of_silent.add_argument("--write", action="store_true")
    tools.add_parser("check")
    tools.add_parser("count").add_argument("platform")
    arguments = parser.parse_args()
    if arguments.tool == "clean":
        return _clean(arguments.platform, add=arguments.add)
    if arguments.tool == "silent":
        return _silent(arguments.platform, write_list=arguments.write)
    if arguments.tool == "check":
        return _check()
    return _declarations(arguments.platform, write_counts=True)


if __name__ == "__main__":
    sys.exit(main())
