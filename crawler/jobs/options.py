"""The options of a job. Commands, the endpoint's parameters, the stored jobs and ``docs/jobs.md`` are made from them.

A spider has an option as its argument if its arguments model inherits the option's class. To add an option, add a
field to one of the classes, and run ``python -m tests.reference_tables``.
"""

from __future__ import annotations

import re
from datetime import date
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, ConfigDict, Field, field_validator, model_validator

from crawler.configuration.names import Described


def _int(value: object) -> object:
    if isinstance(value, bool) or (isinstance(value, str) and not re.fullmatch("[0-9]{1,9}", value)):
        raise ValueError("Input should be a valid integer, in digits")
    return value


def _flag(value: object) -> object:
    if not isinstance(value, bool) and not (isinstance(value, str) and value in {"true", "false"}):
        raise ValueError("expected true or false")
    return value


Int = Annotated[int, BeforeValidator(_int)]
"""A number, or its text in ASCII digits."""
Flag = Annotated[bool, BeforeValidator(_flag)]
"""A boolean, or one of the texts ``true`` and ``false``."""
CRAWL: dict[str, Any] = {"group": "crawl"}


class ListingOptions(Described):
    """The options of all spiders: which pages of a listing are read."""

    max_pages: Int = Field(default=1, ge=1, le=999_999, json_schema_extra=CRAWL)
    """Maximum number of pages to read of each listing, including the requested page. Each page is a record."""
    since: str = Field(default="", json_schema_extra={**CRAWL, "pattern": "^(last|[0-9]{4}-[0-9]{2}-[0-9]{2})?$"})
    """Where to stop reading a listing: ``last`` for the entries that earlier jobs or crawls have seen, or a day (UTC)
    such as 2026-11-01. If the rows of a list are written, only newer entries are."""

    @field_validator("since")
    @classmethod
    def _validate_since(cls, since: str) -> str:
        if since != "last":
            try:
                date.fromisoformat(since)
            except ValueError:
                raise ValueError(f"{since!r} is not a day: write last, or a day such as 2026-11-01") from None
        return since


class CategoryOptions(ListingOptions):
    """The options of all spiders, and those of listings of which a platform serves only a part."""

    exhaustive: Flag = Field(default=False, json_schema_extra=CRAWL)
    """Whether to collect all products of a category, each once, although one listing contains only some of them."""

    @model_validator(mode="after")
    def _validate_exhaustive(self) -> Self:
        if self.exhaustive and "max_pages" in self.model_fields_set:
            raise ValueError("an exhaustive crawl reads all pages: leave out max_pages")
        return self


class LimitedOptions(CategoryOptions):
    """The options of commands: also the limits. If one is reached, the job is paused until it gets a higher limit."""

    max_requests: Int | None = Field(default=None, ge=1, json_schema_extra=CRAWL)
    """Maximum number of pages of an exhaustive crawl, per category."""

    @model_validator(mode="after")
    def _validate_limit(self) -> Self:
        if self.max_requests is not None and not self.exhaustive:
            raise ValueError("max_requests limits exhaustive crawls: add exhaustive=true, or use max_pages")
        return self


class KeepOption(Described):
    """The option of a job whose runs are kept."""

    keep: Int = Field(default=2, ge=0, le=999, json_schema_extra=CRAWL)
    """How many runs to keep before the newest run that is done. When a run is done, earlier ones are removed."""


class JobOptions(LimitedOptions, KeepOption):
    """The options of a job as they are stored: those that were given, and the program's own."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sandbox: bool = False
    """Whether the job was made in the sandbox."""
    fingerprint: str | None = None
    """Identifies the content of the targets' files, or of an upload with an ``Idempotency-Key``."""

    unwritten: bool = False
    """Whether ``scrapy collect`` works on the run, and has not written its output since the run was done."""

    @property
    def arguments(self) -> dict[str, Any]:
        """The spider arguments: the options that were given. A flag that is false counts as not given."""
        given = {name: getattr(self, name) for name in LimitedOptions.model_fields if name in self.model_fields_set}
        return {name: value for name, value in given.items() if value is not False}

    @property
    def needs_whole_roots(self) -> bool:
        """Whether the same worker must scrape a target and all its follow-ups, because its spider keeps state."""
        return self.exhaustive or self.since == "last"

    def dump(self) -> bytes:
        """Return the given options as they are stored, as JSON."""
        return self.model_dump_json(exclude_unset=True).encode()

    @property
    def fixed(self) -> dict[str, Any]:
        """The given options that cannot change while a run is not finished, as JSON data."""
        limits = LimitedOptions.model_fields.keys() - CategoryOptions.model_fields.keys()
        return self.model_dump(exclude_unset=True, exclude={*limits, "keep", "fingerprint", "unwritten"})

    def __str__(self) -> str:
        given = [f"{name}={str(value).lower()}" for name, value in self.arguments.items()]
        return ", ".join(given + ["SANDBOX"] * self.sandbox) or "none"
