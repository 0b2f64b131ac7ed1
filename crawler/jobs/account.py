"""The client that owns a job. The transactions of workers also store its bills and check its quota."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from crawler.jobs.job import Stored
    from crawler.jobs.store import Session

AlsoStore: TypeAlias = "Callable[[Session, Sequence[Stored]], None]"
RoomOf: TypeAlias = "Callable[[Session, Any], int | None]"
"""Gets the locked row of a job. Returns how many more targets of the job may wait; None if its owner has no quota."""
SETTING = "JOB_ACCOUNT"
"""The setting with the ``Account``, for a crawl that works on a client's job."""


@dataclass(frozen=True)
class Account:
    """A client, its bills and its quota."""

    owner: str
    also_store: AlsoStore
    """Stores the bills in the transaction that stores the outcomes."""
    room: RoomOf
    """Limits the follow-ups that may wait. Follow-ups beyond the limit are paused."""
    waits: bool = True
    """Whether the crawl stays open until other workers have completed their targets, which may have follow-ups."""
