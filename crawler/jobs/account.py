"""The client to whom a job belongs, and what is stored in the transactions of its worker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from crawler.jobs.job import Stored
    from crawler.jobs.store import Session

AlsoStore: TypeAlias = "Callable[[Session, Sequence[Stored]], None]"
RoomOf: TypeAlias = "Callable[[Session, Any], int | None]"
"""Returns how many further targets of a job, a locked row, may wait. None: its owner has no quota."""
SETTING = "JOB_ACCOUNT"
"""The setting of a crawl that is the worker of a client's job."""


@dataclass(frozen=True)
class Account:
    """A client, its bills and its quota."""

    owner: str
    also_store: AlsoStore
    """Stores the bills, in the transaction of the outcomes."""
    room: RoomOf
    """Limits the follow-ups. Those beyond it are paused."""
    waits: bool = True
    """Whether the crawl waits until other workers have ended their targets. If not, the caller starts it again."""
