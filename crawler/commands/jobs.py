"""``scrapy jobs``: shows, fills, exports and changes the jobs of a store."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

import orjson
from scrapy.exceptions import UsageError

from crawler.commands import collect
from crawler.configuration.command import CheckedCommand, Exit, add_values, wrong_use
from crawler.jobs.options import LimitedOptions
from crawler.monitoring.progress import counted

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from crawler.jobs.job import Job
    from crawler.jobs.lifecycle import Jobs
    from crawler.jobs.options import JobOptions
    from crawler.jobs.outcomes import Cursor
    from crawler.targets.files.source import FileSource


class Command(CheckedCommand):
    """List, show, fill, export, compare, retry, cancel, check and remove runs of jobs.

    All act on the newest run of a job, or on another --run. list: prints the runs of all jobs. show: prints the state
    of a run, and how its targets ended. push: adds the targets in files to a run, or to a new one if there is none;
    scrapy work collects them. export: writes the records so far to a file. changes: writes to a file what has changed
    in the newest run that is done since the earlier ones, and prints how much.
    retry: queues failed targets again whose errors may pass; with --all, also the others; with --unread, makes a new
    job from the targets with unread parts. cancel: cancels all targets that are not in flight. check: compares the
    counters with the stored targets. rm: deletes all runs of a job with their records, or only one --run.

    Exit codes: 0 for success, 4 if check finds differences, or if targets of the job that was pushed to have failed, 1
    if the store cannot be used, 2 for wrong use.
    """

    arguments = (
        "list | show <job> | push <job> <file> ... | export <job> -O <file> | changes <job> [-O <file>]"
        " | retry | cancel | check | rm <job>"
    )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--json", action="store_true", help="list, show, changes, check: print JSON")
        parser.add_argument("--run", type=int, metavar="N", help="number of the run (default: the newest run)")
        collect.add_layout(parser)
        parser.add_argument(
            "--after",
            metavar="CURSOR",
            help="export: only outcomes after this cursor, 0 for all; prints the next cursor",
        )
        parser.add_argument("--failures", metavar="FILE", help="export: file of the failures, as JSON Lines")
        parser.add_argument(
            "--unread", action="store_true", help="retry: make a new job of the done targets with unread parts"
        )
        parser.add_argument(
            "--all", action="store_true", help="retry: also targets whose error does not pass, such as TARGET_NOT_FOUND"
        )
        parser.add_argument("--scraper", metavar="NAME", help="push: scraper of the targets that do not name one")
        add_values(parser, "arguments", f"push: {', '.join(LimitedOptions.model_fields)}")
        parser.add_argument("--next-run", action="store_true", help="push: begin a new run if the newest one is done")
        collect.add_keep(parser)
        parser.add_argument("--encoding", help="push: encoding of text files without a byte order mark")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        with collect.job_errors(self):
            self.exitcode = collect.run_async(self._with_store(self._work(args, opts)))

    def _work(self, args: list[str], opts: argparse.Namespace) -> Callable[[Jobs], Coroutine[Any, Any, int]]:
        match args:
            case ["list"]:
                return lambda jobs: _list(jobs, as_json=opts.json)
            case ["push", name, _, *_]:
                options = collect.job_options(self.settings, opts.arguments, opts.keep)
                sources = collect.file_sources(args[2:], opts.scraper, opts.encoding, sliced=options.exhaustive)
                return lambda jobs: _push(jobs, name, sources, options, next_run=opts.next_run)
            case ["changes", name]:
                return lambda jobs: _changes(jobs, name, opts, self.settings)
            case ["show" | "export" | "retry" | "cancel" | "check" | "rm" as action, name]:
                return lambda jobs: self._change(jobs, action, name, opts)
        raise self.wrong_arguments()

    async def _with_store(self, work: Callable[[Jobs], Coroutine[Any, Any, int]]) -> int:
        async with collect.store_of(self.settings) as jobs:
            return await work(jobs)

    async def _change(self, jobs: Jobs, action: str, name: str, opts: argparse.Namespace) -> int:
        job = await jobs.find(name, run=opts.run)
        if job is None:
            wanted = f"No job is called {name!r}" if opts.run is None else f"The job {name!r} has no run {opts.run}"
            raise UsageError(f"{wanted}: scrapy jobs list shows the jobs.")
        match action:
            case "show":
                await _show(jobs, job, as_json=opts.json)
            case "export":
                await self._export(jobs, job, opts)
            case "retry":
                await _retry(jobs, job, unread=opts.unread, every=opts.all)
            case "cancel":
                await jobs.cancel(job)
            case "rm":
                for each in [job] if opts.run else await jobs.runs(name):
                    await jobs.remove(each)
            case "check":
                problems = await jobs.check(job)
                print(orjson.dumps(problems).decode() if opts.json else "\n".join(problems or ["no differences"]))
                return Exit.SOME_FAILED if problems else Exit.ALL_HAVE_DATA
        return Exit.ALL_HAVE_DATA

    async def _export(self, jobs: Jobs, job: Job, opts: argparse.Namespace) -> None:
        from crawler.jobs.output import JobFiles  # noqa: PLC0415  # imports SQLAlchemy, which takes 0.1 s

        files = JobFiles(jobs, job, self.settings)
        layout = collect.layout_of(opts)
        if layout is None and not opts.failures:
            raise UsageError("Name a file: scrapy jobs export <job> -O <file>")
        if opts.after and opts.output == "-":
            raise UsageError("-O - and --after would both print: name a file for the records.")
        after = _cursor(job, opts.after) if opts.after else None
        written, cursor = await files.write(layout, opts.failures, after)
        for path in written:
            collect.say(path)
        collect.say(collect.summary(job))
        if after is not None:
            print(cursor)


async def _changes(jobs: Jobs, name: str, opts: argparse.Namespace, settings: BaseSettings) -> int:
    """Write what has changed in a run, and print how much."""
    from crawler.jobs.changes import Comparison  # noqa: PLC0415  # imports SQLAlchemy, which takes 0.1 s
    from crawler.jobs.output import JobFiles  # noqa: PLC0415  # imports SQLAlchemy, too

    runs = [each for each in await jobs.runs(name) if each.state == "done" and opts.run in {None, each.run}]
    if not runs:
        wanted = "No run" if opts.run is None else f"Run {opts.run}"
        raise UsageError(f"{wanted} of the job {name!r} is done: scrapy jobs list shows the jobs.")
    if opts.explode or opts.fields:
        raise UsageError("Changes have columns of their own: leave out --explode and --fields.")
    comparison = Comparison(runs[0], await jobs.earlier(runs[0]))
    if opts.output:
        await JobFiles(jobs, runs[0], settings).write_changes(opts.output, comparison)
        collect.say(opts.output)
    else:
        async for _ in comparison.pages(jobs):
            pass
    collect.say(f"{collect.title(runs[0])}: {comparison}")
    if opts.json:
        print(orjson.dumps({"run": runs[0].run, **comparison.counts}).decode())
    return Exit.ALL_HAVE_DATA


def _cursor(job: Job, text: str) -> Cursor:
    """Return the position in a job's outcomes from the option ``--after``.

    Raises:
        UsageError: the text is not a cursor, or belongs to another job.
    """
    from crawler.jobs.outcomes import Cursor  # noqa: PLC0415  # imports SQLAlchemy, which takes 0.1 s

    with wrong_use(ValueError):
        cursor = Cursor(job.id) if text == "0" else Cursor.parse(text)
    if cursor.job != job.id:
        raise UsageError(f"The cursor {text} belongs to a different job than {job.name!r}, or to one that was removed.")
    return cursor


def as_dict(job: Job) -> dict[str, Any]:
    """Return a job as JSON data. Times are text in the format of ISO 8601, in UTC."""
    from crawler.jobs.store import utc_text  # noqa: PLC0415  # imports SQLAlchemy, which takes 0.1 s

    times = {"created": utc_text(job.created), "ended": None if job.ended is None else utc_text(job.ended)}
    options = {"arguments": job.options.arguments, "sandbox": job.options.sandbox}
    named = {"name": job.name, "owner": job.owner, "run": job.run, "revision": job.revision, "state": job.state}
    return {**named, **times, **options, "targets": job.counts}


async def _list(jobs: Jobs, *, as_json: bool) -> int:
    async for job in jobs.every():
        print(orjson.dumps(as_dict(job)).decode() if as_json else collect.summary(job))
    return Exit.ALL_HAVE_DATA


async def _show(jobs: Jobs, job: Job, *, as_json: bool) -> None:
    from crawler.jobs.outcomes import report  # noqa: PLC0415  # imports SQLAlchemy, which takes 0.1 s

    if as_json:
        tallies = sorted((await jobs.tallies(job.id)).items())
        kinds: dict[str, dict[str, int]] = {}
        for (kind, name), n in tallies:
            kinds.setdefault(kind, {})[name] = n
        print(orjson.dumps({**as_dict(job), "tallies": kinds}).decode())
        return
    print(collect.summary(job))
    created, ended = (as_dict(job)[name] for name in ("created", "ended"))
    print(f"  created: {created}" + ("" if ended is None else f"; ended: {ended}"))
    print(*(await report(jobs, job, (), "scrapy work")).lines(), sep="\n")


async def _retry(jobs: Jobs, job: Job, *, unread: bool, every: bool) -> None:
    from crawler.jobs import intake  # noqa: PLC0415  # imports SQLAlchemy, which takes 0.1 s

    if not unread:
        n = await jobs.retry(job, every=every)
        left = 0 if every else job.counts["failed"] + job.counts["dead"] - n
        collect.say(
            f"targets to retry: {n:,}" + (f" ({counted(left, 'failure')} left out: --all repeats all)" if left else "")
        )
    elif keys := await intake.unread(jobs, job):
        made = await intake.rerun(jobs, job, f"{job.name}-unread", keys)
        found = counted(len(keys), "target")
        collect.say(f"run {made.run} of {made.name} has {found} with unread parts: scrapy work collects it.")
    else:
        collect.say(f"No target of {job.name} has an unread part.")


async def _push(jobs: Jobs, name: str, sources: list[FileSource], options: JobOptions, *, next_run: bool) -> int:
    from crawler.jobs import intake  # noqa: PLC0415  # imports SQLAlchemy, which takes 0.1 s
    from crawler.jobs.lifecycle import DEFAULT  # noqa: PLC0415  # imports SQLAlchemy, too

    newest = await jobs.find(name)
    if newest is not None and newest.state == "done" and not next_run:  # more targets for the same run
        job = collect.checked(newest, options)
    else:
        job = await collect.begun(jobs, name, options, DEFAULT)
    await jobs.remove_earlier(name)
    rows = await intake.push(jobs, job, sources)
    await collect.check_scrapers(jobs, job)
    job = await collect.opened(jobs, job, options)
    collect.say(f"{counted(rows, 'line')} pushed")
    collect.say(collect.summary(job))
    return Exit.SOME_FAILED if job.counts["failed"] else Exit.ALL_HAVE_DATA
