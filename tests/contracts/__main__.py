"""Tools for contracts, which use the captures on this machine.

``python -m tests.contracts clean [PLATFORM]`` prints which responses of the lists of clean responses have a warning or
no data now. With ``--add``, it first adds the responses that became clean. ``count PLATFORM`` writes a platform's
``counts.json``, and prints the declarations that the counts contradict or do not support. ``kinds`` prints how many
values of each kind each platform declares. ``mutants PLATFORM`` prints the mutants that must be detected but are not,
and how many mutants of each kind are detected.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from crawler.platforms import platforms
from crawler.reading.contract import contracts, values
from tests.contracts.counts import count, roots, save, wrong_lines
from tests.contracts.mutants import is_noticed, mutants
from tests.contracts.recorded import add_clean, clean, no_longer_clean, recorded
from tests.contracts.responses import Response, captured, of_fixtures


def _whole(platform: str = "") -> list[Response]:
    return [*(each for each in captured(platform) if each.whole), *of_fixtures(platform)]


def _clean(platform: str | None, *, add: bool) -> int:
    chosen = [platform] if platform else list(platforms())
    if add:
        print(*(f"{each}: {add_clean(each)} added" for each in chosen), sep="\n")
    problems = [line for each in chosen for line in no_longer_clean(each)]
    print(*problems, f"{sum(len(clean(each)) for each in chosen)} responses, {len(problems)} problems", sep="\n")
    return 1 if problems else 0


def _count(platform: str) -> int:
    counts = count(recorded(platform))
    save(platform, counts)
    wrong = wrong_lines(roots(platform), counts)
    print(*wrong, f"{len(counts)} values counted, {len(wrong)} declarations to change", sep="\n")
    return 1 if wrong else 0


def _kinds() -> int:
    platforms = sorted({each.platform for each in _whole()})
    for platform in platforms:
        roots = {payload.kind for each in _whole(platform) for payload in each.original.payloads}
        declared = {(kind, value) for root in roots for kind in contracts(root) for value in values(kind)}
        kinds = Counter(value.kind for _, value in declared)
        often = sum(value.often for _, value in declared)
        print(platform, *(f"{kind}={number}" for kind, number in sorted(kinds.items())), f"(also often: {often})")
    return 0


def _mutants(platform: str) -> int:
    noticed: Counter[tuple[str, bool]] = Counter()
    for response in _whole(platform):
        for payload in response.original.payloads:
            for mutant in mutants(payload):
                found = is_noticed(mutant, response)
                noticed[mutant.kind, found] += 1
                if mutant.must_be_noticed and not found:
                    print(f"{response.name}: {mutant}")
    for (kind, found), number in sorted(noticed.items()):
        print(f"{kind}: {number} {'noticed' if found else 'silent'}")
    return 0


def main() -> int:
    """Run one of the tools. Return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.contracts", description=__doc__)
    tools = parser.add_subparsers(dest="tool", required=True)
    tools.add_parser("kinds")
    of_clean = tools.add_parser("clean")
    of_clean.add_argument("platform", nargs="?", choices=list(platforms()))
    of_clean.add_argument("--add", action="store_true")
    tools.add_parser("count").add_argument("platform")
    tools.add_parser("mutants").add_argument("platform")
    arguments = parser.parse_args()
    if arguments.tool == "clean":
        return _clean(arguments.platform, add=arguments.add)
    if arguments.tool == "kinds":
        return _kinds()
    return (_count if arguments.tool == "count" else _mutants)(arguments.platform)


if __name__ == "__main__":
    sys.exit(main())
