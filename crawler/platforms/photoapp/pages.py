"""Photo app: page objects for a post in each form of the payload, and for an account's reels.

The forms differ only in their keys, which the modules ``media`` and ``graph`` read. Validation is the same for all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import attrs
from web_poet import field

from crawler.errors import ExtractionFailed, TargetNotFound
from crawler.platforms.page import PlatformPage, mismatch_error, missing_error
from crawler.platforms.photoapp import blocks, graph, media
from crawler.platforms.photoapp.link import code_of_id, shortcode_of
from crawler.platforms.photoapp.parts import nonzero_count, post_id
from crawler.reading.json import absent_parts, decode, dicts, dig, find_all, scripts_with
from crawler.reading.values import text

Candidate = tuple[dict[str, Any] | None, dict[str, Any]]
"""A post (None if it is withheld), and the object around it."""


@dataclass(frozen=True, slots=True)
class Form:
    """A form of the payload: the keys under which it has posts, and the functions that read them."""

    keys: tuple[str, ...]
    unpack: Callable[[Any], list[Candidate]]
    read: Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]]
    mandatory: dict[str, str]
    """The contract's fields that are never empty, with the paths under which this form has them."""
    parts: tuple[tuple[str, ...], ...]
    """Paths that every post in this form has, even if the values are null. See ``absent_parts``."""
    parts_around: tuple[tuple[str, ...], ...] = ()
    """Paths that the object around every post has."""


def _wrapped(value: Any) -> list[Candidate]:
    if not isinstance(value, dict):
        return []
    if "if_not_gated_logged_out" not in value and not value.get("gating_ruling"):
        return [(value, value)] if "media_type" in value else []
    inner = value.get("if_not_gated_logged_out")
    return [(inner if isinstance(inner, dict) else None, value)]


def _listed(value: Any) -> list[Candidate]:
    return [(item, item) for item in dicts(dig(value, "items"))]


def _plain(value: Any) -> list[Candidate]:
    return [(value, value)] if isinstance(value, dict) else []


WRAPPED = Form(
    ("xig_polaris_media",), _wrapped, media.media_post, media.MANDATORY, media.PARTS + media.PAGE_PARTS, media.AROUND
)
"""The form of the page that visitors without an account have received since 2026-06."""
LISTED = Form(
    ("xdt_api__v1__media__shortcode__web_info",),
    _listed,
    lambda found, _: media.media_post(found),
    media.MANDATORY,
    media.PARTS,
)
"""The form of the web-info query's response, which lists items."""
GRAPH = Form(
    ("xdt_shortcode_media", "shortcode_media"),
    _plain,
    lambda found, _: graph.graph_post(found),
    graph.MANDATORY,
    graph.PARTS,
)
"""The form of the older GraphQL query's response."""
EMBEDDED = replace(GRAPH, parts=graph.EMBEDDED_PARTS)
"""The form of the embed page, which has only some keys of the older query's post."""


FormedCandidate = tuple[Form, dict[str, Any] | None, dict[str, Any]]
"""The form of a candidate, its post (None if it is withheld), and the object around it."""
STANDALONE_KEYS = (
    *((WRAPPED, key) for key in ("media_type", "if_not_gated_logged_out")),
    *((LISTED, "items"), (GRAPH, "taken_at_timestamp")),
)
"""For a post that was saved alone: each form, and a key that only posts in this form have."""


@attrs.define(slots=False)
class PhotoPage(PlatformPage):
    """Base class of the page objects. ``page_params`` has ``shortcode``, the requested post's, if it is known."""

    @cached_property
    def payload(self) -> Any:
        """The decoded response if it is JSON, or None for an HTML page.

        Raises:
            ExtractionFailed: the JSON is malformed.
        """
        return blocks.json_payload(self.response.body)

    def values(self, key: str) -> Iterator[Any]:
        """Yield the values that the response has under a key, at any depth."""
        documents = blocks.page_data(self.response.body, key) if self.payload is None else (self.payload,)
        for document in documents:
            yield from find_all(document, key)

    def has_post(self, shortcode: str | None) -> bool:
        """Whether the response contains a post under unknown keys. See ``blocks.has_post``."""
        if self.payload is not None:
            return blocks.has_post((self.payload,), shortcode)
        scripts = scripts_with(self.response.body, b'"')
        return blocks.has_post(filter(None, map(_decoded, scripts)), shortcode)

    def raise_for_blocks(self) -> None:
        """Raise an error for a blocked or failed response, by its URL, message and HTTP status."""
        payload = None
        with suppress(ExtractionFailed):  # if the JSON is malformed, the HTTP status is checked first
            payload = self.payload
        blocks.raise_for_blocks(self.response, payload)
        self.raise_for_failures()


class PostItem(dict[str, Any]):
    """The item of ``PostPage``: the post. ``PostPage`` has no other field: one function reads the whole post."""

    def __init__(self, post: dict[str, Any]) -> None:
        super().__init__(post)


@attrs.define(slots=False)
class PostPage(PhotoPage):
    """A post's page, or the response to the query with the same data. This class reads a post in any form."""

    source: ClassVar[str] = "page"
    item_cls: ClassVar[type[dict[str, Any]]] = PostItem
    forms: ClassVar[tuple[Form, ...]] = (WRAPPED, LISTED, GRAPH)
    keys: ClassVar[tuple[str, ...]] = tuple(key for form in (WRAPPED, LISTED, GRAPH) for key in form.keys)
    """The keys under which the response may have posts."""

    @classmethod
    def recognise(cls, body: str) -> bool:
        start = body[:200].lstrip("\ufeff \r\n\t")
        return start.startswith(("<", "{", "[", "for (;;);")) or blocks.is_refusal(body)

    def validate_input(self) -> None:
        """Raise an error unless the response has the requested post.

        Raises:
            TargetNotFound: the post does not exist, or the platform does not show it to visitors.
            TargetRestricted: the post is withheld, for example by age or region. The error has the platform's message.
            UpstreamBlocked: the response is the login page or a challenge.
            UpstreamRateLimited: the platform's rate limit is reached, or the page lacks its data.
            ExtractionFailed: the page has no data, only another post, or a post that lacks a mandatory field.
        """
        self.raise_for_blocks()
        if self._chosen is None:
            self._raise_for_no_post()
        self._raise_for_withheld()
        self._raise_for_missing()
        self._skip_absent_parts()

    @field
    def post(self) -> dict[str, Any]:
        """The contract's post."""
        return self._post

    @cached_property
    def _post(self) -> dict[str, Any]:
        assert self._chosen is not None
        form, found, outer = self._chosen
        assert found is not None
        return form.read(found, outer)

    @property
    def has_exact_duration(self) -> bool:
        """Whether the response states the video's duration more exactly than in whole seconds."""
        assert self._chosen is not None
        form, found, _ = self._chosen
        if form in (GRAPH, EMBEDDED):
            return self._post["video_duration"] is not None
        return media.exact_duration(found or {}) is not None

    @cached_property
    def _requested_code(self) -> str:
        return text(self.page_params.get("shortcode"))

    def _found(self) -> Iterator[FormedCandidate]:
        """Yield every post in the response, except the posts in the owner's timeline, which have another form."""
        found = False
        for form in self.forms:
            for key in form.keys:
                for value in self.values(key):
                    for each in form.unpack(value):
                        found = True
                        yield (form, *each)
        if not found and isinstance(self.payload, dict):  # a post that was saved without the keys around it
            for form in [form for form, key in STANDALONE_KEYS if form in self.forms and key in self.payload][:1]:
                yield from ((form, *each) for each in form.unpack(self.payload))

    @cached_property
    def _chosen(self) -> FormedCandidate | None:
        """The requested post. If no shortcode was requested, return the first post that is not withheld.

        Raises:
            ExtractionFailed: the response has posts, but not the requested one.
        """
        requested, others, withheld = self._requested_code, [], None
        for each in self._found():
            if requested and requested not in (_codes(*each[1:]) or {requested}):  # without a code, it may be the post
                others.append(each)
            elif each[1] is not None:
                return each
            else:
                withheld = withheld or each
        if others and withheld is None:
            form, found, outer = others[0]
            codes = ", ".join(sorted(_codes(found, outer)))
            message = f"The page is for the post {codes}, not {requested}."
            raise mismatch_error(message, [form.keys[0], "code"], requested, reason="wrong_post")
        return withheld

    def _raise_for_no_post(self) -> None:
        status = self.response.status
        blocks.raise_for_query_errors(self.payload, status)
        values = [value for key in self.keys for value in self.values(key)]
        if any(value and dig(value, "items") != [] for value in values):
            blocks.raise_if_unrecognised(self.keys[0])
        if values:
            raise TargetNotFound(blocks.MISSING_OR_PRIVATE, upstream_status=status, reason="missing_or_private")
        if self.has_post(self._requested_code or None):
            blocks.raise_if_unrecognised(self.keys[0])
        blocks.raise_for_shell(self.response, self._requested_code or None, self.keys[0])

    def _raise_for_withheld(self) -> None:
        assert self._chosen is not None
        _, found, outer = self._chosen
        if found is None:
            blocks.raise_for_ruling(outer.get("gating_ruling"), self.response.status)
            raise TargetNotFound(
                blocks.MISSING_OR_PRIVATE, upstream_status=self.response.status, reason="missing_or_private"
            )

    def _raise_for_missing(self) -> None:
        assert self._chosen is not None
        form = self._chosen[0]
        empty = [path for name, path in form.mandatory.items() if dig(self._post, *name.split(".")) in ("", None)]
        if empty:
            paths = [[form.keys[0], *path.split(".")] for path in empty]
            raise missing_error(f"The post lacks mandatory fields: {', '.join(empty)}.", *paths, reason="missing_field")

    def _skip_absent_parts(self) -> None:
        """Add an error to ``skipped`` if the post lacks parts that every post has: their keys may have been renamed."""
        assert self._chosen is not None
        form, found, outer = self._chosen
        absent = [part for path in form.parts for part in absent_parts(found, *path)]
        if outer is not found:
            absent += [part for path in form.parts_around for part in absent_parts(outer, *path)]
        if absent:
            paths = [(form.keys[0], *part) for part in absent[:10]]
            self.skip(missing_error("The post lacks parts that every post has.", *paths, reason="missing_part"))


@attrs.define(slots=False)
class QueryPage(PostPage):
    """Base class for a query's response, which has a post in only one form."""

    @classmethod
    def recognise(cls, body: str) -> bool:
        return not body.lstrip().startswith("<") and any(f'"{key}"' in body for key in cls.keys)


@attrs.define(slots=False)
class GraphPage(QueryPage):
    """The response to the older GraphQL query."""

    source: ClassVar[str] = "graph"
    forms: ClassVar[tuple[Form, ...]] = (GRAPH,)
    keys: ClassVar[tuple[str, ...]] = GRAPH.keys


@attrs.define(slots=False)
class WebInfoPage(QueryPage):
    """The response to the web-info query, with one item."""

    source: ClassVar[str] = "item"
    forms: ClassVar[tuple[Form, ...]] = (LISTED,)
    keys: ClassVar[tuple[str, ...]] = LISTED.keys


CONTEXT = re.compile(rb'"contextJSON"\s*:\s*(?P<literal>null|"(?:[^"\\]++|\\.)*")', re.DOTALL)
"""Matches the embed page's data, which is JSON inside a JSON string."""


@attrs.define(slots=False)
class EmbedPage(PostPage):
    """A post's embeddable page. It has only some keys of the older query's post, among them the duration."""

    source: ClassVar[str] = "embed"
    forms: ClassVar[tuple[Form, ...]] = (EMBEDDED,)
    keys: ClassVar[tuple[str, ...]] = EMBEDDED.keys

    @classmethod
    def recognise(cls, body: str) -> bool:
        return "contextJSON" in body

    @cached_property
    def payload(self) -> Any:
        body: bytes = self.response.body
        found = CONTEXT.search(body)
        if found is None:
            if b"contextJSON" in body:
                raise ExtractionFailed(
                    "The page's contextJSON is not a string.",
                    details=[{"loc": ["contextJSON"], "msg": "Invalid JSON", "type": "json_invalid"}],
                    reason="broken_data_block",
                )
            return blocks.json_payload(body)
        context = decode(found["literal"], what="contextJSON")
        inner = decode(context, what="contextJSON") if isinstance(context, str) and context else None
        # The key is missing for some withheld posts as well.
        is_post = dig(inner, "gql_data", "shortcode_media") or blocks.has_post((inner,), self._requested_code or None)
        return inner if is_post else {"shortcode_media": None}


REEL_PATH, REEL_KEYS = ("edges", "*", "node"), ("pk", "play_count")


@attrs.define(slots=False)
class ReelsPage(PhotoPage):
    """The page with an account's newest reels. The item maps each reel's numeric id to its play count."""

    source: ClassVar[str] = "reels"
    key: ClassVar[str] = "polaris_clips_connection"

    @classmethod
    def recognise(cls, body: str) -> bool:
        return f'"{cls.key}"' in body and not any(f'"{key}"' in body for key in PostPage.keys)

    def validate_input(self) -> None:
        """Raise an error if the page has no list of reels. The errors are those of ``PostPage.validate_input``."""
        self.raise_for_blocks()
        if not any(isinstance(each, dict) for each in self.values(self.key)):
            blocks.raise_for_query_errors(self.payload, self.response.status)
            blocks.raise_for_shell(self.response, None, self.key)
        self._skip_absent_parts()

    @field
    def plays(self) -> dict[str, int]:
        nodes = [edge.get("node") for each in self.values(self.key) for edge in dicts(dig(each, "edges"))]
        plays = {
            post_id(node.get("pk"), node.get("id")): nonzero_count(
                node.get("play_count"), hidden=node.get("like_and_view_counts_disabled")
            )
            for node in dicts(nodes)
        }
        return {pk: count for pk, count in plays.items() if pk and count is not None}

    def _skip_absent_parts(self) -> None:
        """Add an error to ``skipped`` if reels lack an id or a play count: their keys may have been renamed."""
        connections = list(self.values(self.key))
        absent = [part for each in connections for key in REEL_KEYS for part in absent_parts(each, *REEL_PATH, key)]
        if absent:
            paths = [(self.key, *part) for part in absent[:10]]
            self.skip(missing_error("Reels lack parts that every reel has.", *paths, reason="missing_part"))


def _decoded(script: bytes) -> Any:
    """Return the JSON in a script, or None if it is program code or malformed."""
    with suppress(ExtractionFailed):
        return decode(script, what="data-sjs") if script.lstrip().startswith((b"{", b"[")) else None
    return None


def _codes(found: dict[str, Any] | None, outer: dict[str, Any]) -> set[str]:
    """Return the shortcodes in a post. If it has none, return the shortcode that is computed from its numeric id."""
    both = (found or {}, outer)
    codes = {shortcode_of(text(each.get(key))) for each in both for key in ("code", "shortcode")} - {""}
    return codes or {code_of_id(post_id(*(each.get(key) for key in ("pk", "id") for each in both)))} - {""}
