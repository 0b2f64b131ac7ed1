"""Tools for contracts, which use the captures on this machine.

``python -m tests.contracts count PLATFORM`` writes a platform's ``counts.json``, and prints the declarations that the
counts contradict or do not support. ``python -m tests.contracts kinds`` prints how many values of each kind each
platform declares. ``python -m tests.contracts mutants PLATFORM`` prints the mutants that must be detected but are not,
and how many mutants of each kind are detected.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from crawler.reading.contract import contracts, values
from tests.contracts.counts import count, save, wrong_kinds
from tests.contracts.mutants import is_noticed, mutants
from tests.contracts.responses import Response, captured, of_fixtures


def _whole(platform: str = "") -> list[Response]:
    return [*(each for each in captured(platform) if each.whole), *of_fixtures(platform)]


def _count(platform: str) -> int:
    counts = count(captured(platform))
    save(platform, counts)
    roots = {payload.kind for each in captured(platform) if each.whole for payload in each.original.payloads}
    wrong = sorted({line for root in roots for line in wrong_kinds(root, counts)})
    print(*wrong, f"{len(counts)} values counted, {len(wrong)} declarations not supported", sep="\n")
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
    tools.add_parser("count").add_argument("platform")
    tools.add_parser("mutants").add_argument("platform")
    arguments = parser.parse_args()
    if arguments.tool == "kinds":
        return _kinds()
    return (_count if arguments.tool == "count" else _mutants)(arguments.platform)


if __name__ == "__main__":
    sys.exit(main())
