"""Budgets without a memory, a clock that stands, and lanes of three egresses."""

import pytest

from tests.downloads.sending import Sending, made


@pytest.fixture(autouse=True)
def _no_kept_starts(monkeypatch: pytest.MonkeyPatch, patient: None) -> None:  # noqa: ARG001  # a fixture
    """Budgets begin with their whole burst: they do not continue those of earlier tests."""
    monkeypatch.setattr("crawler.downloads.shared_state._budgets_folder", lambda _: None)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The monotonic time, the only number in a list, which stands until the test changes it. Nothing can wait."""
    now = [1_000.0]
    monkeypatch.setattr("crawler.downloads.facts.time.monotonic", lambda: now[0])
    return now


@pytest.fixture
def sending(monkeypatch: pytest.MonkeyPatch) -> Sending:
    """A crawler's throttle middleware with three egresses, each with one download slot."""
    return Sending(made(), monkeypatch)
