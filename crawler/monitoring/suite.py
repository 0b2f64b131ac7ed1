"""The monitors and the reports, as Spidermon has them: add its actions (mail, chat) in a suite of your own."""

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
    """The report as text, by the suffix of its file."""
    return {f".{kind}": TEMPLATES.get_template(f"report.{kind}").render(report=report) for kind in ("md", "html")}


class PlatformMonitor(Monitor):  # type: ignore[misc]  # untyped
    """Whether the platform still gives what it gave."""

    def test_page_is_as_before(self) -> None:
        """No field vanished, and pages are understood as before."""
        report: Report = self.data.report
        if report.page_changed:
            self.fail(report.headline)

    def test_fields_are_filled_as_before(self) -> None:
        """No field is filled clearly less often."""
        report: Report = self.data.report
        if report.dropped:
            self.fail(", ".join(f"{each.path}: {each.now.coverage:.0%}" for each in report.dropped))

    def test_targets_end_as_before(self) -> None:
        """No more targets fail than before, or than may."""
        report: Report = self.data.report
        if report.failing:
            self.fail(", ".join(f"{each.code}: {each.now.coverage:.0%}" for each in report.failing))


class WriteReports(Action):  # type: ignore[misc]  # untyped
    """Keeps the run for the next ones, with its reports beside it."""

    def run_action(self) -> None:
        report: Report = self.data.report
        path = self.data.history.add(report.run, render(report))
        self.data.meta["report"] = str(path.with_suffix(".html"))


class Suite(MonitorSuite):  # type: ignore[misc]  # untyped
    """What runs at the end of a batch run, unless ``MONITORS_SUITE`` names another one."""

    monitors: ClassVar[list[type[Monitor]]] = [PlatformMonitor]
    monitors_finished_actions: ClassVar[list[type[Action]]] = [WriteReports]
