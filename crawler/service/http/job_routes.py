"""The routes of jobs: upload, list, show, cancel and delete, retry, and return records and failures."""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import IO, TYPE_CHECKING, Any

from pydantic import ValidationError

from crawler.errors import ConcurrencyLimited, InvalidRequest, JobNotFound, Overloaded, ShuttingDown
from crawler.jobs.export import Cursor
from crawler.jobs.job import JobError
from crawler.jobs.lifecycle import MAX_ID
from crawler.jobs.options import CategoryOptions, JobOptions
from crawler.outputs.formats import OF_FAILURES, SERVED
from crawler.platforms.model import validation_details
from crawler.service.calls.envelope import Answer, Call, StreamedAnswer, empty_response, json_response, raw_response
from crawler.service.clients import quotas
from crawler.service.http.body import (
    MAX_BODY_BYTES,
    MAX_PAGE,
    PAGE_LIMIT,
    accepted,
    read_object,
    read_query,
    require_method,
    wait_of,
)
from crawler.service.http.response_writer import compressed_pieces
from crawler.service.http.static import best_coding, has_copy
from crawler.service.jobs import records, reports
from crawler.service.jobs.records import Selected
from crawler.service.jobs.uploads import Upload, Uploads

if TYPE_CHECKING:
    from scrapy.settings import Settings
    from twisted.web.server import Request

    from crawler.jobs.job import Job
    from crawler.jobs.lifecycle import Jobs
    from crawler.jobs.rows import Shape
    from crawler.jobs.store import Store
    from crawler.outputs.formats import Format
    from crawler.service.clients.keys import Holder
    from crawler.service.jobs.runs import Runs

PATH = "/v1/jobs"
JOB_ID = re.compile(r"[1-9][0-9]{0,17}")
JSON = "application/json"
PEEKED_BYTES = 64
MAX_ARRIVING, MAX_ARRIVING_OF_CLIENT = 16, 4
"""Maximum numbers of uploads whose bodies arrive at the same time: in a process, and of one client."""
MAX_UPLOADS = 2
"""Maximum number of uploads that a process reads at once. Further uploads wait."""
POLL_SECONDS = 0.5
"""Interval in seconds at which a request that waits for a job reads its state."""
MAX_FILES = 2
"""Maximum number of files of records that a process writes at once. Further requests for files wait."""

POST_QUERY = {
    "dry_run": ("true|false", "true or false"),
    "scraper": (".{1,100}", "the name of a scraper"),
    **dict.fromkeys(CategoryOptions.model_fields, ("(?s:.*)", "")),  # JobOptions checks the values
}
LIST_QUERY = {
    "after": (JOB_ID.pattern, "the next_after of the previous page"),
    "limit": PAGE_LIMIT,
}
_POSITIONS = {
    "after": (r"[0-9]{1,18}\.[0-9]{1,18}", "the X-Next-Cursor of the previous response"),
    "limit": ("[1-9][0-9]{0,8}", "a number of targets"),
    "code": ("[A-Z_]{1,60}", "OK or an error code"),
    "scraper": (".{1,100}", "the name of a scraper"),
}
RECORDS_QUERY = {
    "format": ("|".join(SERVED), f"one of {', '.join(SERVED)}"),
    "fields": (".{1,4000}", "names of fields, with commas between them"),
    "explode": (".{1,200}", "the name of a list"),
    **_POSITIONS,
}
FAILURES_QUERY = {"format": ("|".join(OF_FAILURES), f"one of {', '.join(OF_FAILURES)}"), **_POSITIONS}
NOT_FOUND = "This client has no job with this id: it is unknown, was deleted, or has expired."


@dataclass
class JobRoutes:
    """Responds to requests about jobs of authenticated clients."""

    jobs: Jobs
    runs: Runs
    store: Store
    settings: Settings

    def __post_init__(self) -> None:
        self.uploads = Uploads(self.jobs, self.settings.getint("JOBS_MAX"), self.settings.getbool("SANDBOX"))
        self.keep_days = self.settings.getfloat("JOBS_KEEP")
        self._arriving: Counter[str] = Counter()
        """Client -> the number of its uploads that are arriving."""
        self._reading = asyncio.Semaphore(MAX_UPLOADS)
        self._writing = asyncio.Semaphore(MAX_FILES)
        self._changes: set[asyncio.Task[Any]] = set()
        """The running cancellations and removals of jobs, which continue if the client disconnects."""

    async def answer(self, request: Request, call: Call, holder: Holder, path: str) -> Answer:
        """Respond to a request whose path begins with ``PATH``.

        Raises:
            JobNotFound: the client has no such job, or there is no such route.
            ScrapeError: the route refuses the request, or the store is unavailable.
        """
        call.is_counted = False
        job_id, _, part = path.removeprefix(PATH).removeprefix("/").partition("/")
        if not job_id and not part:
            require_method(request, "GET", "POST")
            return await (self._post if request.method == b"POST" else self._list)(request, call, holder)
        job = await self._find(holder, job_id)
        routes: dict[str, tuple[tuple[str, ...], Callable[[Request, Call, Holder, Job], Awaitable[Answer]]]] = {
            "": (("GET", "DELETE"), self._one),
            "retry": (("POST",), self._retry),
            "records": (("GET",), self._records),
            "failures": (("GET",), self._failures),
        }
        if part not in routes:
            raise JobNotFound(f"A job has the routes {', '.join(each for each in routes if each)}.")
        methods, route = routes[part]
        require_method(request, *methods)
        return await route(request, call, holder, job)

    async def _find(self, holder: Holder, job_id: str) -> Job:
        job = await self.jobs.get(int(job_id)) if JOB_ID.fullmatch(job_id) else None
        if job is None or (job.owner, job.kind) != (holder.client, "job") or job.state == "loading":
            raise JobNotFound(NOT_FOUND)
        return job

    async def admit(self, call: Call, holder: Holder, uri: bytes) -> Callable[[], None]:
        """Check an upload before its body is read. ``uri``: its path and query.

        Return the function that ends the arrival of the upload.

        Raises:
            UnsupportedMediaType, InvalidRequest, ShuttingDown, StoreUnavailable: as for the upload itself.
            ConcurrencyLimited: the client has too many jobs that are not done, or too many uploads that are arriving.
            Overloaded: too many uploads are arriving.
        """
        key = call.request_headers.get("idempotency-key")
        self._check(Upload(io.BytesIO(), call.request_headers.get("content-type", ""), key=key))
        if key is None and b"dry_run=true" not in uri:  # an earlier upload with the same key may have made the job
            await self.uploads.check_room(holder)
        if self._arriving[holder.client] >= MAX_ARRIVING_OF_CLIENT:
            raise ConcurrencyLimited(
                f"{MAX_ARRIVING_OF_CLIENT} uploads of this client are arriving: wait until one of them is complete.",
                retry_after=5,
            )
        if self._arriving.total() >= MAX_ARRIVING:
            raise Overloaded("Too many uploads are arriving.", retry_after=5)
        self._arriving[holder.client] += 1
        return partial(self._arriving.subtract, [holder.client])

    def _check(self, upload: Upload) -> None:
        upload.check()
        if self.runs.crawlers.draining:
            raise ShuttingDown("The service is shutting down; retry the call.", retry_after=5)

    async def _post(self, request: Request, call: Call, holder: Holder) -> Answer:
        query = read_query(request, POST_QUERY)
        content, given = _listing(request, call)
        options = _options(given | {name: query[name] for name in CategoryOptions.model_fields if name in query})
        media_type, key = call.request_headers.get("content-type", ""), call.request_headers.get("idempotency-key")
        upload = Upload(content, media_type, query.get("scraper"), key, options)
        self._check(upload)
        async with self._reading:
            if query.get("dry_run") == "true":
                contents = await self.uploads.check(upload)
                return json_response(200, {"job": None, **contents.as_json()}, call)
            await quotas.check(self.store, holder)
            job, made = await self.uploads.make(holder, upload, call.request_id)
            if made is None:
                call.headers["Idempotent-Replayed"] = "true"
                made = await self.uploads.check(upload)
        self.runs.added()
        call.headers["Location"] = f"{call.service_url}{PATH}/{job.id}"
        job = await self._ended(call, job)
        body = {"job": reports.describe(job, self.keep_days), **made.as_json()}
        return json_response(202, body, call)

    async def _list(self, request: Request, call: Call, holder: Holder) -> Answer:
        query = read_query(request, LIST_QUERY)
        limit = int(query.get("limit", MAX_PAGE))
        page = await self.jobs.newest(holder.client, limit + 1, int(query.get("after", MAX_ID)))
        listed = [reports.describe(each, self.keep_days) for each in page[:limit]]
        following = str(page[limit - 1].id) if len(page) > limit else None
        return json_response(200, {"client_id": holder.client, "jobs": listed, "next_after": following}, call)

    async def _one(self, request: Request, call: Call, holder: Holder, job: Job) -> Answer:
        read_query(request, {})
        if request.method == b"DELETE":
            ended = job.state in {"done", "cancelled"}
            await self._change(self.jobs.remove(job) if ended else self.jobs.cancel(job))
            return empty_response(call)
        job = await self._ended(call, job)
        return json_response(200, reports.detail(job, await self.jobs.tallies(job.id), self.keep_days), call)

    async def _ended(self, call: Call, job: Job) -> Job:
        """Wait until a job has ended, for at most the seconds of ``Prefer: wait=N``. Return its last state."""
        call.wait = wait_of(call.request_headers.get("prefer", ""))
        while job.state in {"open", "paused"} and call.duration_ms < (call.wait or 0) * 1_000:
            if self.runs.crawlers.draining:
                break
            await asyncio.sleep(POLL_SECONDS)
            job = await self.jobs.get(job.id) or job
        return job

    async def _retry(self, request: Request, call: Call, holder: Holder, job: Job) -> Answer:
        read_query(request, {})
        if job.state == "cancelled":
            raise InvalidRequest.of("job_id", "the job is cancelled: make a new one")
        await quotas.check(self.store, holder)
        retried = await self._change(self.jobs.retry(job))
        if job.counts["paused"]:
            await self._change(self.jobs.resume(job))
        self.runs.added()
        found = await self._find(holder, str(job.id))
        return json_response(202, {"retried": retried, "job": reports.describe(found, self.keep_days)}, call)

    async def _records(self, request: Request, call: Call, holder: Holder, job: Job) -> Answer:
        selected = await self._selected(read_query(request, RECORDS_QUERY), call, job, SERVED)
        return await self._streamed(request, call, job, selected, await records.shapes(self.jobs, job, selected))

    async def _failures(self, request: Request, call: Call, holder: Holder, job: Job) -> Answer:
        selected = await self._selected(read_query(request, FAILURES_QUERY), call, job, OF_FAILURES)
        return await self._streamed(request, call, job, selected, None)

    async def _selected(self, query: dict[str, str], call: Call, job: Job, known: Mapping[str, Format]) -> Selected:
        query.setdefault("format", accepted(call.request_headers.get("accept", ""), known))
        cursor = Cursor.parse(query.pop("after", f"{job.id}.0"))
        if cursor.job != job.id:
            raise InvalidRequest.of("after", f"the cursor belongs to a different job than {job.id}")
        limit = query.pop("limit", None)
        until = await records.last_of(self.jobs, job, cursor.seq, None if limit is None else int(limit))
        return Selected(**query, after=cursor.seq, until=max(until, cursor.seq))

    async def _streamed(
        self, request: Request, call: Call, job: Job, selected: Selected, rows: dict[str, Shape] | None
    ) -> Answer:
        coding = "" if selected.is_file else best_coding(call.request_headers.get("accept-encoding", ""))
        etag = selected.etag(job, coding)
        headers = {"X-Next-Cursor": str(Cursor(job.id, selected.until)), "Vary": "Accept, Accept-Encoding"}
        if job.ended is not None and not job.counts["running"]:
            headers |= {"ETag": etag, "Cache-Control": "private, no-cache"}
        media_type = selected.form.media_type
        if "ETag" in headers and has_copy(call, etag):
            return raw_response(call, media_type, b"", headers, status=304)
        if coding:
            headers["Content-Encoding"] = coding
        whole = raw_response(call, media_type, b"", headers)
        if request.method == b"HEAD":
            return StreamedAnswer(whole.status, whole.headers, b"")
        async with self._writing if selected.is_file else nullcontext():
            made = await records.records(self.jobs, job, selected, rows, self.settings)
        made = compressed_pieces(made, coding) if coding else made
        return StreamedAnswer(whole.status, whole.headers, b"", pieces=made)

    async def _change(self, work: Any) -> Any:
        """Change a job. The change continues if the client disconnects.

        Raises:
            InvalidRequest: another request has cancelled or deleted the job meanwhile.
        """
        task = asyncio.ensure_future(work)
        self._changes.add(task)
        task.add_done_callback(self._changes.discard)
        try:
            return await asyncio.shield(task)
        except JobError:
            raise InvalidRequest.of("job_id", "the job was cancelled or deleted meanwhile") from None

    async def close(self) -> None:
        """Wait at most 5 seconds until cancellations and removals have ended."""
        if changes := self._changes | self.uploads.removals:
            await asyncio.wait(changes, timeout=5)


def _listing(request: Request, call: Call) -> tuple[IO[bytes], dict[str, Any]]:
    """Return the targets of an upload, and the options of the job in its body.

    Only a body that is a single JSON object contains options, in addition to the params of its target.

    Raises:
        InvalidJson, InvalidRequest: the object is not valid.
    """
    content = request.content
    assert content is not None
    head, size = content.read(PEEKED_BYTES), content.seek(0, os.SEEK_END)
    content.seek(0)
    is_json = call.request_headers.get("content-type", "").partition(";")[0].strip().lower() == JSON
    if not is_json or not head.lstrip().startswith(b"{"):
        return content, {}
    if size > MAX_BODY_BYTES:
        raise InvalidRequest.of("body", f"an object is one target, of at most {MAX_BODY_BYTES} bytes: send an array")
    target = read_object(request, call)
    options = {name: target.pop(name) for name in CategoryOptions.model_fields if name in target}
    return io.BytesIO(json.dumps([target]).encode()), options


def _options(given: dict[str, Any]) -> JobOptions:
    """Return the options of a job.

    Raises:
        InvalidRequest: a value is not valid, or options contradict each other.
    """
    try:
        return JobOptions(**given)
    except ValidationError as error:
        first = validation_details(error)[0]
        raise InvalidRequest.of(str(first["loc"][0] if first["loc"] else min(given)), first["msg"]) from None
