"""Microblog: collects contradictions between values of posts and users, which contracts cannot express."""

from __future__ import annotations

from collections import Counter

from crawler.platforms.microblog.payload import Media, Post
from crawler.platforms.microblog.payload_user import User
from crawler.reading.contract import values
from crawler.reading.paths import join
from crawler.reading.unread import Cause, Unread

Part = User | Post | Media


class Contradictions:
    """Counts the contradictions in the posts or users of one payload, by the path of the missing value."""

    def __init__(self, path: str) -> None:
        """``path``: the path of the posts or users in the payload."""
        self._path = path
        self._found: Counter[tuple[str, Cause, bool]] = Counter()
        self._rows = 0
        self._lacking: Counter[tuple[str, str]] = Counter()
        self.present: set[str] = set()
        """The names of the values, such as ``links``, that at least one part has. ``add_unless_present`` reports none
        of them: the platform may leave out single ones, but a value that was renamed is missing in all parts."""

    def row(self) -> None:
        """Count a post or user."""
        self._rows += 1

    def add(
        self, part: Part, name: str, cause: Cause = "contradiction", *, inside: str = "", loses_row: bool = False
    ) -> None:
        """Count a missing value, by its attribute's name. ``inside``: the path of the part that lacks it."""
        parent = join(self._path, inside) if inside else self._path
        path = join(parent, path_of(part, name))
        self._found[path, cause, loses_row] += 1

    def add_unless_present(self, part: Part, name: str) -> None:
        """Count a missing value that is reported only if no part of the payload has it."""
        self._lacking[join(self._path, path_of(part, name)), name] += 1

    def unread(self) -> list[Unread]:
        """Return the unread parts, with one entry for each path and cause."""
        found = self._found.copy()
        for (path, name), rows in self._lacking.items():
            if name not in self.present:
                found[path, "contradiction", False] += rows
        return [
            Unread(path, cause, rows, max(rows, self._rows), loses_rows=lost)
            for (path, cause, lost), rows in found.items()
        ]


def path_of(part: Part, name: str) -> str:
    """Return the declared path of an attribute, or its name if the format has no such value (embeds have no notes)."""
    # The strict pass creates instances of subclasses of the contracts.
    kind = next(each for each in type(part).__mro__ if each.__module__.startswith("crawler.platforms"))
    return next((each.paths[0] for each in values(kind) if each.name == name), name)
