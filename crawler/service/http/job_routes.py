"""The routes of jobs."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crawler.errors import JobNotFound, ShuttingDown
from crawler.jobs.export import Cursor
from crawler.jobs.lifecycle import MAX_ID
from crawler.jobs.output import FORMATS
from crawler.service.calls.envelope import Answer, Call, StreamedAnswer, empty_response, json_response, raw_response
from crawler.service.http.body import header, read_query, require_method
from crawler.service.http.static import accepts_gzip
from crawler.service.jobs import records, reports
from crawler.service.jobs.records import Selected
from crawler.service.jobs.uploads import Upload, Uploads, invalid, room

if TYPE_CHECKING:
    from scrapy.settings import Settings
    from twisted.web.server import Request

    from crawler.jobs.job import Job
    from crawler.jobs.lifecycle import Jobs
    from crawler.service.clients.keys import Holder
    from crawler.service.jobs.runs import Runs

PATH = "/v1/jobs"
JOB_ID = re.compile(r"[1-9][0-9]{0,17}")
MAX_PAGE = 100
MAX_UPLOADS = 2
"""Uploads that a process reads at once. Others wait."""

POST_QUERY = {"dry_run": ("true|false", "true or false"), "scraper": (".{1,100}", "the name of a scraper")}
LIST_QUERY = {
    "after": (JOB_ID.pattern, "the next_after of the previous page"),
    "limit": ("[1-9][0-9]?|100", "1 to 100"),
}
_POSITIONS = {
    "after": (r"[0-9]{1,18}\.[0-9]{1,18}", "the X-Next-Cursor of the previous response"),
    "limit": ("[1-9][0-9]{0,8}", "a number of targets"),
    "code": ("[A-Z_]{1,60}", "OK or an error code"),
    "scraper": (".{1,100}", "the name of a scraper"),
}
RECORDS_QUERY = {
    "format": ("|".join(FORMATS), f"one of {', '.join(FORMATS)}"),
    "fields": (".{1,4000}", "names of fields, with commas between them"),
    "explode": (".{1,200}", "the name of a list"),
    **_POSITIONS,
}
NOT_FOUND = "This client has no job with this id: it is unknown, was deleted, or has expired."


@dataclass
class JobRoutes:
    """Responds to requests about jobs of authenticated clients."""

    jobs: Jobs
    runs: Runs
    settings: Settings

    def __post_init__(self) -> None:
        self.uploads = Uploads(self.jobs, self.settings.getint("JOBS_MAX"), self.settings.getbool("SANDBOX"))
        self.keep_days = self.settings.getfloat("JOBS_KEEP")
        self._reading = asyncio.Semaphore(MAX_UPLOADS)
        self._changes: set[asyncio.Task[Any]] = set()
        """Cancellations and removals, which go on if the client disconnects."""

    async def answer(self, request: Request, call: Call, holder: Holder, path: str) -> Answer:
        """Respond to a request whose path begins with ``PATH``.

        Raises:
            JobNotFound: the client has no such job, or there is no such route.
            MethodNotAllowed, InvalidRequest, UnsupportedMediaType, StoreUnavailable: as each route.
        """
        call.is_counted = False
        job_id, _, part = path.removeprefix(PATH).removeprefix("/").partition("/")
        if not job_id:
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
        if job is None or job.owner != holder.client or job.kind != "job":
            raise JobNotFound(NOT_FOUND)
        return job

    async def _post(self, request: Request, call: Call, holder: Holder) -> Answer:
        query = read_query(request, POST_QUERY)
        assert request.content is not None
        media_type = header(request, "Content-Type") or ""
        upload = Upload(request.content, media_type, query.get("scraper"), header(request, "Idempotency-Key"))
        upload.check()
        if self.runs.crawlers.draining:
            raise ShuttingDown("The service is shutting down; retry the call.", retry_after=5)
        async with self._reading:
            if query.get("dry_run") == "true":
                contents = await self.uploads.check(upload)
                return json_response(200, {"job": None, "records_at_most": contents.valid, **contents.as_json()}, call)
            job, made = await self.uploads.make(holder, upload, call.request_id)
            if made is None:
                call.headers["Idempotent-Replayed"] = "true"
                made = await self.uploads.check(upload)
        self.runs.added()
        call.headers["Location"] = f"{call.service_url}{PATH}/{job.id}"
        body = {"job": reports.describe(job, self.keep_days), "records_at_most": made.valid, **made.as_json()}
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
        return json_response(200, reports.detail(job, await self.jobs.tallies(job.id), self.keep_days), call)

    async def _retry(self, request: Request, call: Call, holder: Holder, job: Job) -> Answer:
        read_query(request, {})
        if job.state == "cancelled":
            raise invalid("job_id", "the job is cancelled: make a new one")
        limit = room(holder)
        retried = await self._change(self.jobs.retry(job, limit))
        if job.counts["paused"]:
            await self._change(self.jobs.resume(job, limit))
        self.runs.added()
        found = await self._find(holder, str(job.id))
        return json_response(202, {"retried": retried, "job": reports.describe(found, self.keep_days)}, call)

    async def _records(self, request: Request, call: Call, holder: Holder, job: Job) -> Answer:
        query = read_query(request, RECORDS_QUERY)
        selected = await self._selected(query, job)
        rows = await records.shapes(self.jobs, job, selected)
        return self._streamed(
            request, call, job, selected, lambda: records.records(self.jobs, job, selected, rows, self.settings)
        )

    async def _failures(self, request: Request, call: Call, holder: Holder, job: Job) -> Answer:
        selected = await self._selected(read_query(request, _POSITIONS), job)
        return self._streamed(request, call, job, selected, lambda: records.failures(self.jobs, job, selected))

    async def _selected(self, query: dict[str, str], job: Job) -> Selected:
        cursor = Cursor.parse(query.pop("after", f"{job.id}.0"))
        if cursor.job != job.id:
            raise invalid("after", f"the cursor belongs to another job than {job.id}")
        limit = query.pop("limit", None)
        until = await records.last_of(self.jobs, job, cursor.seq, None if limit is None else int(limit))
        return Selected(**query, after=cursor.seq, until=max(until, cursor.seq))

    @staticmethod
    def _streamed(
        request: Request, call: Call, job: Job, selected: Selected, pieces: Callable[[], AsyncIterator[bytes]]
    ) -> Answer:
        compressed = selected.format not in records.FILES and accepts_gzip(header(request, "Accept-Encoding"))
        etag = selected.etag(job, "gzip" if compressed else "")
        headers = {"X-Next-Cursor": str(Cursor(job.id, selected.until)), "Vary": "Accept-Encoding"}
        if job.ended is not None and not job.counts["running"]:
            headers |= {"ETag": etag, "Cache-Control": "private, no-cache"}
        media_type = records.MEDIA_TYPES[selected.format]
        known = {each.strip().removeprefix("W/") for each in (header(request, "If-None-Match") or "").split(",")}
        if "ETag" in headers and known & {etag, "*"}:
            return raw_response(call, media_type, b"", headers, status=304)
        if compressed:
            headers["Content-Encoding"] = "gzip"
        whole = raw_response(call, media_type, b"", headers)
        if request.method == b"HEAD":
            return StreamedAnswer(whole.status, whole.headers, b"")
        made = records.gzipped(pieces()) if compressed else pieces()
        return StreamedAnswer(whole.status, whole.headers, b"", pieces=made)

    async def _change(self, work: Any) -> Any:
        """Change a job. It goes on if the client disconnects."""
        task = asyncio.ensure_future(work)
        self._changes.add(task)
        task.add_done_callback(self._changes.discard)
        return await asyncio.shield(task)

    async def close(self) -> None:
        """Wait for cancellations and removals."""
        if self._changes:
            await asyncio.wait(self._changes, timeout=5)
