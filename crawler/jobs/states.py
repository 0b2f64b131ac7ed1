"""The states of jobs and of their targets."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

JobState: TypeAlias = Literal["loading", "open", "paused", "cancelled", "done"]
UNFINISHED: tuple[JobState, ...] = ("loading", "open", "paused")
TargetState: TypeAlias = Literal["waiting", "running", "paused", "done", "failed", "dead", "cancelled"]
STATES: tuple[TargetState, ...] = get_args(TargetState)
"""The states of a target. A job has a counter for each."""
