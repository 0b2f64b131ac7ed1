"""The plot for ``docs/speed.md``: ratios as horizontal bars, in plain SVG."""

from __future__ import annotations

from html import escape

from benchmarks.figures import Ratio
from benchmarks.tables import value

WIDTH, MARGIN, ROW, BAR = 760, 10, 46, 14
LENGTH = WIDTH - 2 * MARGIN - 110
"""Length of the longest bar: the rest is for its number."""
TEXT, COLOUR, GOAL = "#768390", "#3b82d6", "#d2792f"
"""Colours with enough contrast on white and on black. An image cannot know the colours of the page around it."""

STYLE = f"text {{ font: 13px system-ui, sans-serif; fill: {TEXT}; }} .value {{ font-weight: 600; }}"


def plot(goals: list[tuple[str, Ratio]]) -> str:
    """Return an SVG with a bar for each ratio for which more is better. A mark in each bar is the goal.

    Args:
        goals: ratios with goals, each with the title of its table.
    """
    shown = [(title, ratio, ratio.at_least) for title, ratio in goals if ratio.at_least is not None]
    longest = max((max(ratio.median, at_least) for _, ratio, at_least in shown), default=1.0)
    bars = [
        line
        for number, (title, ratio, at_least) in enumerate(shown)
        for line in _bar(f"{title}. {ratio.name}", ratio.median, at_least, longest, MARGIN + number * ROW)
    ]
    height = 2 * MARGIN + len(shown) * ROW + 20
    caption = "Ratios of the same round: a longer bar is better. The orange mark is the goal."
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" role="img">',
            f"<title>{caption}</title>",
            f"<style>{STYLE}</style>",
            *bars,
            f'<text x="{MARGIN}" y="{height - MARGIN}">{caption}</text>',
            "</svg>\n",
        ]
    )


def _bar(label: str, median: float, at_least: float, longest: float, top: int) -> list[str]:
    """Return the elements of one bar: its label above it, its number behind it."""
    length, mark = (max(1.0, LENGTH * each / longest) for each in (median, at_least))
    bar = top + 20
    number = max(length, mark) + MARGIN + 6
    return [
        f'<text x="{MARGIN}" y="{top + 13}">{escape(label)}</text>',
        f'<rect x="{MARGIN}" y="{bar}" width="{length:.0f}" height="{BAR}" rx="2" fill="{COLOUR}"/>',
        f'<rect x="{MARGIN + mark - 1:.0f}" y="{bar - 3}" width="3" height="{BAR + 6}" fill="{GOAL}"/>',
        f'<text class="value" x="{number:.0f}" y="{bar + 12}">{value(median)} × (goal {at_least:g})</text>',
    ]
