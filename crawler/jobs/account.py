"""The client that owns a job: its bills and its quota, which the transactions of workers store and check."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from crawler.jobs.job import Stored
    from crawler.jobs.store import Session

AlsoStore: TypeAlias = "Callable[[Session, Sequence[Stored]], None]"
RoomOf: TypeAlias = "Callable[[Session, Any], int | None]"
"""Returns how many further targets of a job may wait, from the locked row of the job. None: its owner has no quota."""
SETTING = "JOB_ACCOUNT"
"""The setting of a crawl that is the worker of a client's job."""


@dataclass(frozen=True)
class Account:
    """A client, its bills and its quota."""

    owner: str
    also_store: AlsoStore
    """Stores the bills in the transaction that stores the outcomes."""
    room: RoomOf
    """Limits the follow-ups. Further follow-ups are paused."""
    waits: bool = True
    """Whether the crawl waits until other workers have ended their targets. Otherwise, the caller starts it again."""
