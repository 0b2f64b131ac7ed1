"""The Spidermon suite with its monitors and reports. Derive a class from ``Suite`` to add actions (mail, chat)."""

from __future__ import annotations

from typing import ClassVar

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from spidermon import Monitor, MonitorSuite
from spidermon.core.actions import Action

from crawler.monitoring.compare import Report

TEMPLATES = Environment(
    loader=PackageLoader("crawler.monitoring"),
    autoescape=select_autoescape(["html"]),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def render(report: Report) -> dict[str, str]:
    """Render the reports. Return the suffix of each report's file, with its text."""
    return {f".{kind}": TEMPLATES.get_template(f"report.{kind}").render(report=report) for kind in ("md", "html")}


class PlatformMonitor(Monitor):  # type: ignore[misc]  # untyped
    """Fails if a run differs significantly from the last runs."""

    def test_page_is_as_before(self) -> None:
        """Check that no field has vanished, extraction does not fail more often, and no path is newly unread."""
        report: Report = self.data.report
        if report.page_changed:
            self.fail(report.headline)

    def test_fields_are_filled_as_before(self) -> None:
        """Check that no field is filled significantly less often than before."""
        report: Report = self.data.report
        if report.dropped:
            self.fail(", ".join(f"{each.path}: {each.now.coverage:.0%}" for each in report.dropped))

    def test_targets_end_as_before(self) -> None:
        """Check that targets do not fail more often than before or than ``MONITORS_MAX_FAILED`` allows."""
        report: Report = self.data.report
        if report.failing:
            self.fail(", ".join(f"{each.name}: {each.now.coverage:.0%}" for each in report.failing))

    def test_sources_fail_as_before(self) -> None:
        """Check that no optional source fails for a significantly greater share of the targets than before."""
        report: Report = self.data.report
        if report.failing_sources:
            self.fail(", ".join(f"{each.name}: {each.now.coverage:.0%}" for each in report.failing_sources))


class WriteReports(Action):  # type: ignore[misc]  # untyped
    """Stores the run for comparison with later runs, and writes its reports."""

    def run_action(self) -> None:
        report: Report = self.data.report
        path = self.data.history.add(report.run, render(report))
        self.data.meta["report"] = str(path.with_suffix(".html"))


class Suite(MonitorSuite):  # type: ignore[misc]  # untyped
    """The suite that runs at the end of a batch run, unless the setting ``MONITORS_SUITE`` names another one."""

    monitors: ClassVar[list[type[Monitor]]] = [PlatformMonitor]
    monitors_finished_actions: ClassVar[list[type[Action]]] = [WriteReports]
