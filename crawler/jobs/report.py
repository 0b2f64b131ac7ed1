"""What a job has collected: its failures by code with examples, and the summary for people."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from crawler.jobs.clock import store_time
from crawler.jobs.lifecycle import RETRYABLE
from crawler.jobs.outcomes import failure_line, first_failures
from crawler.monitoring.progress import counted
from crawler.monitoring.summary import Report, example
from crawler.registry import scrapers
from crawler.targets.reporter import PARTIAL, REPEATED
from crawler.targets.target import label_of
from crawler.targets.warning import FAILED_SOURCES, INCOMPLETE, UNREAD_PATHS, UNREAD_ROWS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawler.jobs.job import Job
    from crawler.jobs.lifecycle import Jobs

EXAMPLES = 3
"""Maximum number of examples of a code."""
Tallies = dict[tuple[str, str], int]


async def failures_by_code(jobs: Jobs, job: Job, tallies: Tallies) -> list[dict[str, Any]]:
    """Return the code of each failure, the number of its targets, whether a retry may help, and examples.

    An example is the line of a failure, as in the file of failures.
    """
    counts = {name: n for (kind, name), n in sorted(tallies.items()) if kind == "code" and name != "OK" and n}
    found = await first_failures(jobs, job.id, counts, EXAMPLES)
    return [
        {
            "code": code,
            "count": n,
            "retryable": code in RETRYABLE,
            "examples": [failure_line(each) for each in found[code]],
        }
        for code, n in counts.items()
    ]


async def report(jobs: Jobs, job: Job, outputs: Sequence[tuple[str, str]], again: str) -> Report:
    """Return the summary of a job.

    ``outputs``: as in ``Report``. ``again``: how the user collects the targets that are left.
    """
    tallies = await jobs.tallies(job.id)
    failures = await failures_by_code(jobs, job, tallies)
    examples = {each["code"]: _example(each["examples"][0]) for each in failures if each["examples"]}
    next_steps = []
    if job.state == "paused":
        next_steps.append(f"a limit was reached: {again} with a higher limit")
    elif job.state == "open":
        next_steps.append(again)
    elif any(each["retryable"] for each in failures):
        next_steps.append(f"scrapy jobs retry {job.name}, then {again}")
    return Report(
        f"job {job.name}", _stats(job, tallies), examples, Counter(), _incomplete(tallies), outputs, next_steps
    )


def _example(failure: dict[str, Any]) -> str:
    params = failure["params"]
    # The scraper of an invalid line may be unknown.
    if isinstance(params, dict) and (scraper := scrapers().get(failure["scraper"])):
        fields = scraper.params.model_fields
        params = {name: each for name, each in params.items() if name not in fields or fields[name].default != each}
    return example(failure["message"], failure["id"], failure["line"], label_of(params))


def _incomplete(tallies: Tallies) -> list[str]:
    coverage = {name: n for (kind, name), n in tallies.items() if kind == "coverage"}
    if not coverage:
        return []
    known = counted(coverage["collected"], "row") + (
        f" of {coverage['expected']:,}" if coverage.get("expected") else ""
    )
    return [f"listings that lack rows: {coverage['listings']:,} ({known} collected)"]


def _stats(job: Job, tallies: Tallies) -> dict[str, Any]:
    """Return the tallies of a job in the form of a crawl's stats."""
    stats: Counter[str] = Counter()
    for (kind, name), n in tallies.items():
        match kind, name.split("/"):
            case "code", _:
                stats[f"targets/{name}"] = n
            case "repeated", _:
                stats[REPEATED] = n
            case "partial", _:
                stats[PARTIAL] = n
            case "unread", _:
                stats[UNREAD_PATHS + name] = n
            case "unread rows", _:
                stats[UNREAD_ROWS + name] = n
            case "warning", [*source, _, reason] if reason != INCOMPLETE:
                stats[f"{FAILED_SOURCES}{'/'.join(source)}/{reason}"] += n
    seconds = max(0.0, (job.ended or store_time()) - job.created)
    reason = "finished" if job.state == "done" else job.state
    return {key: n for key, n in stats.items() if n} | {"elapsed_time_seconds": seconds, "finish_reason": reason}
