"""The arguments of the tools that are not params of scrapers."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

DEFAULT_KB = 20


Names = Annotated[list[Annotated[str, Field(min_length=1, max_length=100)]], Field(max_length=100)]


class Sized(BaseModel):
    """The argument of all tools that return data."""

    model_config = ConfigDict(extra="forbid", strict=True)

    max_kb: int = Field(
        default=DEFAULT_KB,
        ge=5,
        le=10_000,
        description=f"Maximum kilobytes, by default {DEFAULT_KB}. `cut` lists what was left out.",
    )


class View(Sized):
    """The arguments of all scrapers' tools that limit how much of a record is returned."""

    fields: Names = Field(default=[], description="Return only these fields, such as `products.price.current_price`.")
    limit: int | None = Field(default=None, ge=1, description="Maximum entries of each list.")


class Part(View):
    """The arguments of the tool that returns an earlier record."""

    request_id: str = Field(max_length=100, description="The `request_id` of an earlier result.")


class Links(Sized):
    """The arguments of the tool that makes a job."""

    targets: Annotated[list[Annotated[str, Field(max_length=2_000, pattern=r"^[^\r\n]+$")]], Field(max_length=500)] = (
        Field(
            min_length=1,
            description="Links to posts, profiles, channels, searches, categories. Platforms may be mixed.",
        )
    )


class Outcomes(Sized):
    """The arguments of the tool that reads a job."""

    job_id: str = Field(pattern="^[0-9]{1,18}$", description="The `job_id` of a result of `collect`.")
    kind: Literal["records", "failures"] = Field(default="records", description="What to read.")
    after: str = Field(default="", max_length=40, description="The `next` of the previous result.")
    fields: Names = Field(default=[], description="Return only these fields of the records.")
    targets: int = Field(default=10, ge=1, le=100, description="Maximum targets whose outcomes are read.")
    wait: int = Field(default=30, ge=0, le=60, description="Seconds to wait if there is nothing new yet.")
