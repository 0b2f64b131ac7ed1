"""Photo app: a post in each form in which the platform gives it, an account's reels, and what a share link leads to.

The forms differ in their keys only (``photoapp_media``, ``photoapp_graph``); the gate is the same for all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar
from urllib.parse import urlsplit

import attrs
from web_poet import field

from crawler.errors import ExtractionFailed, TargetNotFound, UpstreamBlocked
from crawler.platforms.page import PlatformPage, missing, wrong_echo
from crawler.platforms.photoapp import blocks as gate
from crawler.platforms.photoapp import graph, media
from crawler.platforms.photoapp.link import HOSTS, code_of_id, link_of_path, shortcode_of
from crawler.platforms.photoapp.parts import played, post_id
from crawler.reading.json import decode, dicts, dig, find_all
from crawler.reading.values import absolute_url, text

Found = tuple[dict[str, Any] | None, dict[str, Any]]
"""A post, None where it is withheld, and what is around it."""


@dataclass(frozen=True, slots=True)
class Form:
    """A form of the payload: under which keys a post is, and how it is read."""

    keys: tuple[str, ...]
    unpack: Callable[[Any], list[Found]]
    read: Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]]
    mandatory: dict[str, str]
    """Never-empty fields of the contract, each with its path in this form."""


def _wrapped(value: Any) -> list[Found]:
    if not isinstance(value, dict):
        return []
    if "if_not_gated_logged_out" not in value and not value.get("gating_ruling"):
        return [(value, value)] if "media_type" in value else []
    inner = value.get("if_not_gated_logged_out")
    return [(inner if isinstance(inner, dict) else None, value)]


def _listed(value: Any) -> list[Found]:
    return [(item, item) for item in dicts(dig(value, "items"))]


def _plain(value: Any) -> list[Found]:
    return [(value, value)] if isinstance(value, dict) else []


WRAPPED = Form(("xig_polaris_media",), _wrapped, media.media_post, media.MANDATORY)
"""What a visitor gets since 2026-06."""
LISTED = Form(
    ("xdt_api__v1__media__shortcode__web_info",),
    _listed,
    lambda found, _: media.media_post(found),
    media.MANDATORY,
)
"""The item of the web-info query."""
GRAPH = Form(
    ("xdt_shortcode_media", "shortcode_media"),
    _plain,
    lambda found, _: graph.graph_post(found),
    graph.MANDATORY,
)
"""The older query, and the embed page."""


Chosen = tuple[Form, dict[str, Any] | None, dict[str, Any]]
"""A post with its form."""
BARE = (
    *((WRAPPED, key) for key in ("media_type", "if_not_gated_logged_out")),
    *((LISTED, "items"), (GRAPH, "taken_at_timestamp")),
)
"""By which key a post of a form is known that stands alone."""


@attrs.define(slots=False)
class PhotoPage(PlatformPage):
    """What all answers of the platform share. ``page_params``: ``shortcode`` as asked, where it is known."""

    @cached_property
    def answer(self) -> Any:
        """The answer, where all of it is JSON; None for a page.

        Raises:
            ExtractionFailed: it breaks off.
        """
        return gate.json_answer(self.response.body)

    def values(self, key: str) -> Iterator[Any]:
        """What stands under a key, wherever in the answer."""
        documents = gate.page_data(self.response.body, key) if self.answer is None else (self.answer,)
        for document in documents:
            yield from find_all(document, key)

    def raise_for_blocks(self) -> None:
        """Raises for answers that are no data by where they were found, by what they say, or by their status."""
        said = None
        with suppress(ExtractionFailed):  # what breaks off is told by its status first
            said = self.answer
        gate.raise_for_blocks(self.response, said)
        self.raise_for_failures()


class PostItem(dict[str, Any]):
    """The item of a page with one field that is the whole item: each form has one function for all of a post."""

    def __init__(self, post: dict[str, Any]) -> None:
        super().__init__(post)


@attrs.define(slots=False)
class PostPage(PhotoPage):
    """A post's page, or the query that its scripts send: the same data. Reads the other forms too."""

    source: ClassVar[str] = "page"
    item_cls: ClassVar[type[dict[str, Any]]] = PostItem
    forms: ClassVar[tuple[Form, ...]] = (WRAPPED, LISTED, GRAPH)
    keys: ClassVar[tuple[str, ...]] = tuple(key for form in (WRAPPED, LISTED, GRAPH) for key in form.keys)
    """Under which keys the data is."""

    @classmethod
    def recognise(cls, body: str) -> bool:
        start = body[:200].lstrip("\ufeff \r\n\t")
        return start.startswith(("<", "{", "[", "for (;;);")) or gate.is_refusal(body)

    def validate_input(self) -> None:
        """Decides whether this is the post that was asked for.

        Raises:
            TargetNotFound: no such post, or one that visitors do not see.
            TargetRestricted: withheld by age or region, with the platform's words.
            UpstreamBlocked: the login page or a challenge.
            UpstreamRateLimited: the page without its data.
            ExtractionFailed: no data, another post, or one of which a part that must be there is missing.
        """
        self.raise_for_blocks()
        if self._chosen is None:
            self._raise_for_nothing()
        self._raise_for_withheld()
        self._raise_for_missing()

    @field
    def post(self) -> dict[str, Any]:
        """The contract's post."""
        return self._post

    @cached_property
    def _post(self) -> dict[str, Any]:
        assert self._chosen is not None
        form, found, around = self._chosen
        assert found is not None
        return form.read(found, around)

    @property
    def has_exact_duration(self) -> bool:
        """Whether a video's duration is known better than in whole seconds."""
        assert self._chosen is not None
        form, found, _ = self._chosen
        if form is GRAPH:
            return self._post["video_duration"] is not None
        return media.exact_duration(found or {}) is not None

    @cached_property
    def _asked(self) -> str:
        return text(self.page_params.get("shortcode"))

    def _found(self) -> Iterator[Chosen]:
        """Every post of the answer: those that an account's timeline lists are of another form, and none of these."""
        found = False
        for form in self.forms:
            for key in form.keys:
                for value in self.values(key):
                    for each in form.unpack(value):
                        found = True
                        yield (form, *each)
        if not found and isinstance(self.answer, dict):  # a post that was saved without what was around it
            for form in [form for form, key in BARE if form in self.forms and key in self.answer][:1]:
                yield from ((form, *each) for each in form.unpack(self.answer))

    @cached_property
    def _chosen(self) -> Chosen | None:
        """The post that was asked for; where it is not known which, the first that is not withheld.

        Raises:
            ExtractionFailed: there are only others.
        """
        others, withheld = [], None
        for each in self._found():
            if self._asked and self._asked not in (_codes(*each[1:]) or {self._asked}):  # who names none names no other
                others.append(each)
            elif each[1] is not None:
                return each
            else:
                withheld = withheld or each
        if others and withheld is None:
            form, found, around = others[0]
            told = ", ".join(sorted(_codes(found, around)))
            message = f"The page is of another post: {told} instead of {self._asked}."
            raise wrong_echo(message, [form.keys[0], "code"], self._asked, reason="wrong_post")
        return withheld

    def _raise_for_nothing(self) -> None:
        status = self.response.status
        gate.raise_for_query_errors(self.answer, status)
        values = [value for key in self.keys for value in self.values(key)]
        if any(value and dig(value, "items") != [] for value in values):
            gate.raise_if_unrecognised(self.keys[0])
        if values:
            raise TargetNotFound(gate.MISSING_OR_PRIVATE, upstream_status=status, reason="missing_or_private")
        gate.raise_for_shell(self.response, self._asked or None, self.keys[0])

    def _raise_for_withheld(self) -> None:
        assert self._chosen is not None
        _, found, around = self._chosen
        if found is None:
            gate.raise_for_ruling(around.get("gating_ruling"), self.response.status)
            raise TargetNotFound(
                gate.MISSING_OR_PRIVATE, upstream_status=self.response.status, reason="missing_or_private"
            )

    def _raise_for_missing(self) -> None:
        assert self._chosen is not None
        form = self._chosen[0]
        empty = [path for name, path in form.mandatory.items() if dig(self._post, *name.split(".")) in ("", None)]
        if empty:
            paths = [[form.keys[0], *path.split(".")] for path in empty]
            raise missing(f"The post has no {', '.join(empty)}.", *paths, reason="missing_field")


@attrs.define(slots=False)
class QueryPage(PostPage):
    """The answer to a query of one form."""

    @classmethod
    def recognise(cls, body: str) -> bool:
        return not body.lstrip().startswith("<") and any(f'"{key}"' in body for key in cls.keys)


@attrs.define(slots=False)
class GraphPage(QueryPage):
    """The older query's answer."""

    source: ClassVar[str] = "graph"
    forms: ClassVar[tuple[Form, ...]] = (GRAPH,)
    keys: ClassVar[tuple[str, ...]] = GRAPH.keys


@attrs.define(slots=False)
class WebInfoPage(QueryPage):
    """The web-info query's answer: one item."""

    source: ClassVar[str] = "item"
    forms: ClassVar[tuple[Form, ...]] = (LISTED,)
    keys: ClassVar[tuple[str, ...]] = LISTED.keys


CONTEXT = re.compile(rb'"contextJSON"\s*:\s*(?P<literal>null|"(?:[^"\\]++|\\.)*+")', re.DOTALL)
"""The embed page's data: JSON, as text in JSON."""


@attrs.define(slots=False)
class EmbedPage(PostPage):
    """The small page that other sites embed: a subset of the older query's keys, of videos also the duration."""

    source: ClassVar[str] = "embed"
    forms: ClassVar[tuple[Form, ...]] = (GRAPH,)
    keys: ClassVar[tuple[str, ...]] = GRAPH.keys

    @classmethod
    def recognise(cls, body: str) -> bool:
        return "contextJSON" in body

    @cached_property
    def answer(self) -> Any:
        body: bytes = self.response.body
        found = CONTEXT.search(body)
        if found is None:
            if b"contextJSON" in body:
                raise ExtractionFailed(
                    "The page's contextJSON is no text.",
                    details=[{"loc": ["contextJSON"], "msg": "Invalid JSON", "type": "json_invalid"}],
                    reason="broken_data_block",
                )
            return gate.json_answer(body)
        context = decode(found["literal"], what="contextJSON")
        inner = decode(context, what="contextJSON") if isinstance(context, str) and context else None
        # Where the platform withholds the post there may be no key for it either.
        return inner if dig(inner, "gql_data", "shortcode_media") else {"shortcode_media": None}


@attrs.define(slots=False)
class ReelsPage(PhotoPage):
    """An account's newest reels: how often each was played, by the post's numeric id."""

    source: ClassVar[str] = "reels"
    key: ClassVar[str] = "polaris_clips_connection"

    @classmethod
    def recognise(cls, body: str) -> bool:
        return f'"{cls.key}"' in body and not any(f'"{key}"' in body for key in PostPage.keys)

    def validate_input(self) -> None:
        """Raises as a post's page does where there are no reels to read."""
        self.raise_for_blocks()
        if not any(isinstance(each, dict) for each in self.values(self.key)):
            gate.raise_for_query_errors(self.answer, self.response.status)
            gate.raise_for_shell(self.response, None, self.key)

    @field
    def plays(self) -> dict[str, int]:
        nodes = [edge.get("node") for each in self.values(self.key) for edge in dicts(dig(each, "edges"))]
        plays = {
            post_id(node.get("pk"), node.get("id")): played(
                node.get("play_count"), hidden=node.get("like_and_view_counts_disabled")
            )
            for node in dicts(nodes)
        }
        return {pk: count for pk, count in plays.items() if pk and count is not None}


@attrs.define(slots=False)
class SharePage(PhotoPage):
    """What a share link answers: a redirect to the post. Of its address only the shortcode is taken.

    It has no body, so nothing that was saved is ever one.
    """

    source: ClassVar[str] = "share"

    def validate_input(self) -> None:
        """Decides whether the link leads to a post.

        Raises:
            TargetNotFound: no such link, or one to something else than a post.
            UpstreamBlocked: the login page, a challenge, another host.
            UpstreamRateLimited, UpstreamError: as the status says.
            ExtractionFailed: a page that does not lead on.
        """
        if 300 <= (self.response.status or 0) < 400 and self._location is not None:
            self._raise_for_elsewhere(self._location)
            return
        self.raise_for_blocks()
        if not self._shortcode:
            gate.raise_for_shell(self.response, None, "Location")

    @field
    def shortcode(self) -> str | None:
        return self._shortcode

    @cached_property
    def _location(self) -> str | None:
        target = self.response.headers.get("Location")
        return absolute_url(str(self.response.url), target) or None

    @cached_property
    def _shortcode(self) -> str | None:
        # A browser has followed the redirect: then the page is the post's own.
        link = link_of_path(urlsplit(self._location or str(self.response.url)).path)
        if link and link.shortcode:
            return link.shortcode
        return None if self._location else gate.witnessed_shortcode(self.response.body)

    def _raise_for_elsewhere(self, location: str) -> None:
        here, there = urlsplit(str(self.response.url)), urlsplit(location)
        status = self.response.status
        if there.netloc != here.netloc and there.netloc.lower() not in HOSTS:
            raise UpstreamBlocked(
                "The platform redirected to another host.", upstream_status=status, reason="foreign_redirect"
            )
        gate.raise_for_blocked_path(there.path, status)
        if there.path in {"", "/"}:
            gate.raise_for_login(status)
        if not self._shortcode:
            raise TargetNotFound("The link leads to no post.", upstream_status=status, reason="wrong_page_kind")


def _codes(found: dict[str, Any] | None, around: dict[str, Any]) -> set[str]:
    """The shortcodes that a post names; where it names none, the one that its numeric id stands for."""
    both = (found or {}, around)
    told = {shortcode_of(text(each.get(key))) for each in both for key in ("code", "shortcode")} - {""}
    return told or {code_of_id(post_id(*(each.get(key) for key in ("pk", "id") for each in both)))} - {""}
