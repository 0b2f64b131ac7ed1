"""``scrapy collect``: collects the targets in files of any format and of any platform, as one job."""

from __future__ import annotations

import argparse
import asyncio
import shlex
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError
from scrapy.exceptions import UsageError

from crawler.commands.crawl import replace_log, with_values
from crawler.commands.work import crawl_jobs
from crawler.components import install
from crawler.configuration.command import CheckedCommand, Exit, add_values, named_values, wrong_use
from crawler.errors import StoreUnavailable
from crawler.jobs import open_jobs
from crawler.jobs.extension import problem_of, problems_of
from crawler.jobs.options import JobOptions, LimitedOptions
from crawler.monitoring.progress import counted
from crawler.outputs.feed_files import AUTO, failures_feed
from crawler.outputs.formats import PLACES
from crawler.registry import spiders
from crawler.targets.parser import TargetParser
from crawler.targets.sources import TargetsUnavailableError, WrongTargetsError

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from crawler.jobs.job import Job
    from crawler.jobs.lifecycle import Jobs, Rules
    from crawler.jobs.output import Layout
    from crawler.targets.files.source import FileSource

T = TypeVar("T")
STDIN = "-"


class Command(CheckedCommand):
    """Collect targets of any platform from files, as a run of a job that continues after an interruption.

    Reads targets from files of any format (a path, glob or URL; - for standard input) and collects them with the
    spiders of their platforms, in one process. The same command continues a run that was interrupted. After a run that
    is done and written, it begins the next run, with the targets that the files have now. scrapy jobs export writes the
    records of earlier runs.

    Exit codes: 0 if all targets have data, 4 if some failed or lack rows, or if a limit paused the job, 1 if the run
    itself failed, 2 for wrong use.
    """

    requires_crawler_process = True
    arguments = "<file> [<file> ...]"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--job", metavar="NAME", help="name of the job (default depends on the files' paths)")
        parser.add_argument("--fresh", action="store_true", help="cancel a run that is not done, and begin a new one")
        add_keep(parser)
        add_layout(parser)
        parser.add_argument("-o", dest="appended", metavar="FILE", help=argparse.SUPPRESS)
        parser.add_argument("--scraper", metavar="NAME", help="scraper of the targets that do not name one")
        parser.add_argument("--encoding", help="encoding of text files without a byte order mark")
        add_values(parser, "arguments", ", ".join(LimitedOptions.model_fields))

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        super().process_options(args, opts)
        replace_log(self.settings)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        from crawler.jobs.output import check_place  # noqa: PLC0415  # imports SQLAlchemy, which takes 0.1 s

        install(self.settings)
        with job_errors(self), ExitStack() as stack:
            if opts.appended:
                raise UsageError(
                    "A job writes its whole output: use -O, or scrapy jobs export --after for new records."
                )
            if not args:
                raise UsageError("Expected a file with targets: scrapy collect <file>")
            if feed := self.settings["FAILURES_FEED"]:
                with wrong_use(ValueError):
                    failures_feed(str(feed))
                    if feed != AUTO:
                        check_place(str(feed))
            layout, options = layout_of(opts), job_options(self.settings, opts.arguments, opts.keep)
            stdin = _stdin(stack) if STDIN in args else ""
            job = run_async(self._prepare(args, stdin, options, opts, layout))
            if job.state == "open":
                crawl_jobs(self, lambda each: each.id == job.id, drain=True, restarts=())
            self.exitcode = run_async(self._finish(job.id, layout))

    async def _finish(self, job_id: int, layout: Layout | None) -> int:
        """Write the output of a job. Return the exit code."""
        from crawler.jobs import output  # noqa: PLC0415  # imports SQLAlchemy, which takes 0.1 s
        from crawler.jobs.outcomes import report  # noqa: PLC0415  # imports SQLAlchemy, too

        async with store_of(self.settings) as jobs:
            job = await jobs.get(job_id)
            if job is None:
                raise TargetsUnavailableError("The job was removed while it ran: it has no output.")
            failures = output.failures_path(self.settings, job)
            try:
                written, _ = await output.JobFiles(jobs, job, self.settings).write(layout, failures)
            except OSError as error:
                self.fail(
                    f"The output of {title(job)} cannot be written: {error}. The store has the records: repeat the"
                    " command, perhaps with another -O. It writes them before it begins a new run; with --fresh, it"
                    " begins one at once."
                )
                return Exit.RUN_FAILED
            outputs = [
                ("failures" if path == failures else "data", f"{path} ({counted(n, 'line')})")
                for path, n in written.items()
            ]
            if layout is None and job.counts["done"]:
                outputs.insert(0, ("data", f"in the store: scrapy jobs export {job.name} -O out.csv"))
            if job.state == "done":  # a repetition of the command begins the next run
                await jobs.set_options(job, job.options.model_copy(update={"unwritten": False}))
            await jobs.remove_earlier(job.name)
            for line in (await report(jobs, job, outputs, "run the same command again")).lines():
                say(line)
            return exit_code(job, await jobs.tallies(job.id))

    async def _prepare(
        self, args: list[str], stdin: str, options: JobOptions, opts: argparse.Namespace, layout: Layout | None
    ) -> Job:
        """Return the run, loaded and open. ``stdin``: the path of a copy of standard input."""
        from crawler.jobs import intake  # noqa: PLC0415  # imports SQLAlchemy, which takes 0.1 s
        from crawler.jobs.lifecycle import Rules  # noqa: PLC0415  # imports SQLAlchemy, too

        files = [stdin if each == STDIN else each for each in args]
        sources = file_sources(files, opts.scraper, opts.encoding, sliced=options.exhaustive)
        content = await asyncio.to_thread(intake.fingerprint, files, reader=(opts.scraper, opts.encoding))
        named = {**options.fixed, "scraper": opts.scraper, "encoding": opts.encoding}
        if stdin:  # without a path, only the content can name the job
            named["content"] = content
        name = opts.job or intake.job_name(["file://stdin" if each == STDIN else each for each in args], named)
        options = options.model_copy(update={"fingerprint": content, "unwritten": True})
        rules = Rules("cancel") if opts.fresh else Rules(until_written=True)
        async with store_of(self.settings) as jobs:
            job = await begun(jobs, name, options, rules)
            await _announce(jobs, job, content)
            if job.state == "loading":
                await intake.push(jobs, job, sources)
            await check_scrapers(jobs, job)
            if layout is not None:
                await layout.shapes(jobs, job)
            return await opened(jobs, job, options)


async def _announce(jobs: Jobs, job: Job, content: str) -> None:
    """Say which run a command works on, and how to export the last run that is done.

    ``content``: the hash of the files as they are now.
    """
    if job.state == "done":
        say(f"{title(job)}: done, and its output is written now. --fresh begins another run without it.")
        return
    if job.state != "loading":
        has_changed = job.options.fingerprint not in {None, content}
        say(f"{title(job)}: continued" + (" with its stored targets; the files have changed." if has_changed else "."))
        return
    say(f"{title(job)}: new.")
    for former in (await jobs.earlier(job))[:1]:
        ended = datetime.fromtimestamp(former.ended or 0, UTC)
        export = f"scrapy jobs export {shlex.quote(job.name)} --run {former.run} -O FILE"
        say(f"Run {former.run} was done at {ended:%Y-%m-%d %H:%M} UTC. To write its records: {export}")


@contextmanager
def job_errors(command: CheckedCommand) -> Iterator[None]:
    """Raise ``UsageError`` for wrong use of a job. Print other errors of jobs, and set the command's exit code."""
    from crawler.jobs.job import JobError  # noqa: PLC0415  # imports SQLAlchemy, which takes 0.1 s
    from crawler.jobs.output import OutputError  # noqa: PLC0415  # imports SQLAlchemy, too
    from crawler.jobs.worker import WorkerStoppedError  # noqa: PLC0415  # imports SQLAlchemy, too

    try:
        yield
    except (JobError, OutputError, WrongTargetsError) as error:
        raise UsageError(str(error)) from None
    except (TargetsUnavailableError, StoreUnavailable, WorkerStoppedError, OSError) as error:
        command.fail(error)


@asynccontextmanager
async def store_of(settings: BaseSettings) -> AsyncIterator[Jobs]:
    """Open the store that the settings name, and give access to its jobs. Close the store at the end."""
    jobs = open_jobs(settings)
    try:
        yield jobs
    finally:
        await jobs.close()


def add_layout(parser: argparse.ArgumentParser) -> None:
    """Add the options for the file to which records are written, and for its rows and fields."""
    parser.add_argument("-O", dest="output", metavar="FILE", help=f"file or database of the records, one of {PLACES}")
    parser.add_argument("--explode", metavar="LIST", help="write a row for each entry of this list of a record")
    parser.add_argument("--fields", metavar="NAMES", help="fields to write, with commas between them")


def layout_of(opts: argparse.Namespace) -> Layout | None:
    """Return the file to write records to, with its rows and fields. None: no records are written.

    Raises:
        UsageError: ``--explode`` or ``--fields`` is given, but no file.
        OutputError: no file of this format, or with this path, can be written.
    """
    from crawler.jobs.output import Layout  # noqa: PLC0415  # imports SQLAlchemy, which takes 0.1 s

    if opts.output:
        layout = Layout(opts.output, opts.explode, opts.fields)
        layout.check()
        return layout
    if opts.explode or opts.fields:
        raise UsageError("--explode and --fields need the file to write: -O <file>")
    return None


def file_sources(
    files: list[str], scraper: str | None, encoding: str | None, *, sliced: bool = False
) -> list[FileSource]:
    """Return one source for each path, glob or URL of targets files, which may have targets of all platforms.

    ``sliced``: whether targets may be split into slices (``exhaustive``).

    Raises:
        WrongTargetsError: a file does not exist, or is not a targets file.
    """
    from crawler.targets.files.source import FileSource  # noqa: PLC0415  # imports the readers of all formats

    known = tuple(each for found in spiders().values() for each in found.scrapers)
    parser = TargetParser(known, scraper, sliced=sliced)
    sources = [FileSource(parser, file, encoding=encoding) for file in files]
    for source in sources:
        source.check()
    return sources


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in an event loop of its own, before or after the reactor runs."""
    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        return runner.run(work)


def add_keep(parser: argparse.ArgumentParser) -> None:
    """Add the option for the number of earlier runs to keep."""
    help_text = "how many runs to keep before the newest one that is done (default 2)"
    parser.add_argument("--keep", metavar="N", help=help_text)


def job_options(settings: BaseSettings, given: list[str], keep: str | None) -> JobOptions:
    """Return the options of a job: the ``-a`` arguments, how many runs to keep, and whether it is made in the sandbox.

    Raises:
        UsageError: an argument is unknown or not valid, or arguments contradict each other.
    """
    arguments: dict[str, Any] = named_values(given, "Arguments")
    known = LimitedOptions.model_fields.keys()
    if unknown := arguments.keys() - known:
        raise UsageError(f"A job has no argument {', '.join(sorted(unknown))}; its arguments are {', '.join(known)}.")
    try:
        own = arguments if keep is None else arguments | {"keep": keep}
        return JobOptions(**own, sandbox=settings.getbool("SANDBOX"))
    except ValidationError as error:
        raise UsageError(with_values(problems_of(error), arguments)) from None


async def begun(jobs: Jobs, name: str, options: JobOptions, rules: Rules) -> Job:
    """Return the run of a job to work on: see ``Jobs.begin()``.

    Raises:
        UsageError: the run is not finished, and has different options. Different limits are not an error.
    """
    job = await jobs.begin(name, options=options, whole_roots=options.needs_whole_roots, rules=rules)
    return checked(job, options)


def checked(job: Job, options: JobOptions) -> Job:
    """Return a run that is to be continued with these options.

    Raises:
        UsageError: the run has different options.
    """
    if job.options.fixed != options.fixed:
        raise UsageError(f"{title(job)} has different options ({job.options}): use --fresh, or another name.")
    return job


async def opened(jobs: Jobs, job: Job, options: JobOptions) -> Job:
    """Let workers claim the targets of a job that was loading, or is paused, with the limits of these options.

    Return the job in its new state.

    Raises:
        TargetsUnavailableError: the job was removed.
    """
    kept = {"fingerprint": job.options.fingerprint, "unwritten": options.unwritten or job.options.unwritten}
    options = options.model_copy(update=kept)
    if job.options != options:
        await jobs.set_options(job, options)
    await (jobs.resume(job) if job.state == "paused" else jobs.open(job))
    found = await jobs.get(job.id)
    if found is None:
        raise TargetsUnavailableError(f"The job {job.name!r} was removed.")
    return found


async def check_scrapers(jobs: Jobs, job: Job) -> None:
    """Check that the options of a new job are valid for its scrapers. If they are not, remove the job.

    Raises:
        UsageError: a spider does not have an option, or has no listing that is sorted by time for ``since``.
    """
    if job.state != "loading":
        return
    if problem := problem_of(job.options, (await jobs.described(job))[0]):
        await jobs.remove(job)
        raise UsageError(problem[1])


def _stdin(stack: ExitStack) -> str:
    """Copy all of standard input to a temporary file, which ``stack`` deletes. Return the path of the file."""
    path = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "stdin"
    with path.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return str(path)


def say(text: str) -> None:
    """Print a line to stderr, unless stderr is closed."""
    with suppress(BrokenPipeError):
        print(text, file=sys.stderr)


def title(job: Job) -> str:
    """Return the name of a job and the number of its run, for messages."""
    return f"job {job.name}, run {job.run}"


def summary(job: Job) -> str:
    """Return a line about a job: its state, and the numbers of its targets by state."""
    counts = ", ".join(f"{n:,} {state}" for state, n in job.counts.items() if n)
    return f"{title(job)}: {job.state} ({counts or 'no targets'})"


def exit_code(job: Job, tallies: dict[tuple[str, str], int]) -> int:
    """Return the exit code for a job after a run: as for a crawl, and ``Exit.SOME_FAILED`` for a paused job."""
    if job.state == "paused":
        return Exit.SOME_FAILED
    if job.state != "done" or not any(job.counts.values()):
        return Exit.RUN_FAILED
    failed = job.counts["failed"] + job.counts["dead"]
    lacks_rows = any(kind in {"unread rows", "missing rows"} for kind, _ in tallies)
    return Exit.SOME_FAILED if failed or lacks_rows else Exit.ALL_HAVE_DATA
