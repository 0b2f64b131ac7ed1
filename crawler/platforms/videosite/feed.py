"""Video site: the contracts of the Atom feeds, and functions that convert their XML to plain data."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from lxml import etree

from crawler.reading.contract import Contract, always, filled, identity, often, sometimes

ATOM = "http://www.w3.org/2005/Atom"
_PREFIXES = {
    ATOM: "",
    "http://www.youtube.com/xml/schemas/2015": "yt:",
    "http://search.yahoo.com/mrss/": "media:",
}
_ENTRY = f"{{{ATOM}}}entry"
MAX_BYTES = 500_000
"""Maximum size of a feed. A feed has 15 entries, with at most 5,000 characters of description each."""
_GROUP = "media:group/media:"


class Entry(Contract, nulls=False):
    """An entry of a feed: one video."""

    id: str = identity("yt:videoId")
    url: str = identity("link:alternate@href")
    channel: str | None = often("yt:channelId")
    title: str | None = filled("title")
    published: str | None = filled("published")
    description: str | None = always(f"{_GROUP}description")
    """Not ``filled``, although all 30 recorded entries have a text: all videos of a channel may lack a description."""
    image: str | None = filled(f"{_GROUP}thumbnail@url")
    likes: str | None = often(f"{_GROUP}community/media:starRating@count")
    views: str | None = often(f"{_GROUP}community/media:statistics@views")


class Feed(Contract):
    """The Atom feed of a channel or of a playlist. Both have the same format."""

    url: str | None = sometimes("link:self@href")
    channel: str | None = sometimes("yt:channelId")
    title: str | None = sometimes("title")
    author: str | None = sometimes("author/name")
    author_url: str | None = sometimes("author/uri")
    published: str | None = sometimes("published")
    entries: list[Entry] = sometimes("entry[]")


def feed_root(body: bytes) -> Any:
    """Return a feed's root element, or None if the response is not an Atom feed.

    XML that is larger than ``MAX_BYTES`` or not well-formed is not read: libxml2 needs seconds to recover from 2 MB of
    errors. libxml2's limits of depth (256) and of the expansion of entities apply.
    """
    if len(body) > MAX_BYTES:
        return None
    try:
        root = etree.fromstring(body.strip(), etree.XMLParser(resolve_entities=False, no_network=True))
    except etree.XMLSyntaxError:
        return None
    return root if root.tag == f"{{{ATOM}}}feed" else None


def plain_feed(root: Any) -> dict[str, Any]:
    """Return a feed as plain data: the feed's own values by name, and for each entry a dict of its values."""
    data = _values(each for each in root if each.tag != _ENTRY)
    return {**data, "entry": [_values(each) for each in root.iterchildren(_ENTRY)]}


def unknown_parts(root: Any) -> list[str]:
    """Return the names of the root's child elements that have children, but are neither entries nor the author."""
    return [_name(each.tag) for each in root if len(each) and each.tag not in {_ENTRY, f"{{{ATOM}}}author"}]


def _values(elements: Iterable[Any]) -> dict[str, str]:
    """Return the texts and attributes of elements and their descendants, by path: the first value for each path."""
    found: dict[str, str] = {}
    waiting = [(each, "") for each in elements]
    for element, parent in waiting:
        path = f"{parent}{_name(element.tag)}"
        attributes = element.items()
        if attributes:
            relation = element.get("rel")
            path = f"{path}:{relation}" if relation else path
            for name, value in attributes:
                found.setdefault(f"{path}@{name}", value)
        if len(element):
            waiting += [(each, f"{path}/") for each in element]
        else:
            found.setdefault(path, element.text or "")
    return found


@lru_cache(maxsize=100)
def _name(tag: object) -> str:
    """Return an element's name with the feed's usual prefix, by its tag.

    Comments and processing instructions have no name: their tags are functions.
    """
    if not isinstance(tag, str):
        return "…"
    space, _, name = tag.removeprefix("{").rpartition("}")
    return f"{_PREFIXES.get(space, '…:')}{name}"
