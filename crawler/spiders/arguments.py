"""The ``-a`` arguments that all spiders have."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from crawler.targets.files import Shard

RUNNER_ARGUMENTS = frozenset({"_job", "source", "shared"})
"""Arguments that are set by the runner of a spider, not by its user: Scrapyd's job id, the endpoint's queue."""


class CrawlArguments(BaseModel):
    """The ``-a`` arguments of every spider. Each spider adds the params of its scrapers, as text."""

    model_config = ConfigDict(extra="ignore", use_attribute_docstrings=True)

    scraper: str | None = None
    """The scraper's name; optional where the params fit only one scraper."""
    targets: str | None = Field(default=None, json_schema_extra={"group": "crawl"})
    """Files of targets instead of params: a path, a glob or a URL of JSON Lines, CSV or Parquet, gzipped or not."""
    explode: str | None = Field(default=None, json_schema_extra={"group": "crawl"})
    """A list in the data (products, posts): the feeds get one line per row of it, instead of one line per target."""
    shard: str | None = Field(default=None, json_schema_extra={"group": "crawl"})
    """A part of the targets: 3/16 is the third of sixteen."""
    resume: str | None = Field(default=None, json_schema_extra={"group": "crawl"})
    """A folder for the journal of finished targets: a run that was interrupted continues from it."""
    queue: str | None = Field(default=None, pattern=r"^[\w.-]{1,64}$", json_schema_extra={"group": "crawl"})
    """A queue in Redis instead of params, filled by ``scrapy targets push``; any number of workers may read it."""
    wait: bool = Field(default=False, json_schema_extra={"group": "crawl"})
    """Whether the worker waits for new targets when its queue is empty, instead of exiting."""
    max_pages: int = Field(default=1, ge=1, json_schema_extra={"group": "crawl"})
    """Maximum number of pages per listing, including the requested one."""
    since: Literal["last"] | None = Field(default=None, json_schema_extra={"group": "crawl"})
    """``last``: follow pages only until the entries that the last run has seen."""

    @model_validator(mode="after")
    def _validate_shard(self) -> Self:
        if self.shard is not None:
            Shard.parse(self.shard)
            if self.targets is None:
                raise ValueError("shard selects a part of targets files: add targets=, or remove shard=")
        return self

    @model_validator(mode="after")
    def _validate_queue(self) -> Self:
        if self.queue is None:
            if self.wait:
                raise ValueError("only a queue can be waited for: add queue=, or remove wait=")
        elif self.targets or self.resume or self.since:
            raise ValueError("queue cannot be combined with targets, resume or since: the queue tracks its own targets")
        return self
