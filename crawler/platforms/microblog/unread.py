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

    def unread(self) -> list[Unread]:
        """Return the unread parts, with one entry for each path and cause."""
        return [
            Unread(path, cause, rows, max(rows, self._rows), loses_rows=lost)
            for (path, cause, lost), rows in self._found.items()
        ]


def path_of(part: Part, name: str) -> str:
    """Return the declared path of an attribute."""
    # The strict pass creates instances of subclasses of the contracts.
    kind = next(each for each in type(part).__mro__ if each.__module__.startswith("crawler.platforms"))
    return next(each.paths[0] for each in values(kind) if each.name == name)
