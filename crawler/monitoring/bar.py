"""The progress bars of the crawls in a process, drawn by rich."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable
from itertools import chain
from typing import Any, ClassVar, TextIO

import rich.progress
from rich.console import Console, RenderableType
from rich.text import Text


class Bar(rich.progress.Progress):
    """The progress bars of all crawls in this process, on stderr. The crawls' lines of text are below all bars.

    Bars and lines are redrawn only when a crawl refreshes its bar.
    """

    shared: ClassVar[Bar | None] = None
    """The bars on the terminal. None: no crawl runs."""

    def __init__(self) -> None:
        self.lines: dict[rich.progress.TaskID, list[Text]] = {}
        self._handlers: list[logging.StreamHandler[TextIO]] = []
        super().__init__(
            "{task.description}",
            rich.progress.BarColumn(bar_width=30),
            "{task.completed:,.0f}/{task.fields[expected]}",
            "{task.fields[rate]:,.1f}/s",
            "{task.fields[left]}",
            console=Console(stderr=True),
            auto_refresh=False,
            redirect_stdout=False,
            transient=True,
        )

    def get_renderables(self) -> Iterable[RenderableType]:
        yield from super().get_renderables()
        yield from chain.from_iterable(self.lines.values())

    @classmethod
    def join(cls, name: str) -> tuple[Bar, rich.progress.TaskID]:
        """Add the bar of a crawl. Show the bars if it is the first crawl."""
        if cls.shared is None:
            cls.shared = cls()
            cls.shared.start()
        bar = cls.shared
        task = bar.add_task(name, total=None, expected="?", rate=0.0, left="")
        bar.lines[task] = []
        return bar, task

    def show(self, task: rich.progress.TaskID, lines: Iterable[tuple[str, str]], **state: Any) -> None:
        """Show the state of a crawl: the fields of its bar, and lines of text, each with its style."""
        self.lines[task] = [Text(text, style=style, overflow="ellipsis", no_wrap=True) for text, style in lines]
        self.update(task, refresh=True, **state)

    def leave(self, task: rich.progress.TaskID) -> None:
        """End the bar of a crawl. Its final state stays on the terminal when the last crawl has ended."""
        self.stop_task(task)
        if all(each.stop_time is not None for each in self.tasks):
            self.live.transient = False
            self.stop()
            Bar.shared = None

    def start(self) -> None:
        """Show the bars, and make log handlers print above them. Otherwise, log lines would break the bars."""
        super().start()
        for handler in logging.root.handlers:
            if isinstance(handler, logging.StreamHandler) and handler.stream is sys.__stderr__:
                handler.setStream(sys.stderr)  # the stream with which rich has replaced stderr
                self._handlers.append(handler)

    def stop(self) -> None:
        """Leave the bars as they are, and let log handlers print to the terminal again."""
        super().stop()
        for handler in self._handlers:
            handler.setStream(sys.stderr)
