"""All routes of the endpoint. A new route is a class with its function ``answer``, and an entry in ``ROUTES``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawler.service.calls import scrape_routes
from crawler.service.jobs.routes import (
    CreateJob,
    DeleteJob,
    ListJobs,
    ReadChanges,
    ReadFailures,
    ReadJob,
    ReadRecords,
    RepeatJob,
    RetryJob,
)
from crawler.service.status import ReadCatalogue, ReadHealth, ReadMetrics, ReadReadiness, ReadUsage

if TYPE_CHECKING:
    from crawler.service.route import Route

ROUTES: tuple[type[Route], ...] = (
    *scrape_routes(),
    ReadCatalogue,
    ReadUsage,
    ReadHealth,
    ReadReadiness,
    ReadMetrics,
    ListJobs,
    CreateJob,
    ReadJob,
    DeleteJob,
    ReadRecords,
    ReadFailures,
    ReadChanges,
    RetryJob,
    RepeatJob,
)
"""The routes, in the order of the documents."""
