"""Photo app: page objects for a post in each format of the payload, an account's reels and a share link."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from typing import Any, ClassVar, NamedTuple
from urllib.parse import urlsplit

import attrs
from web_poet import field

from crawler.errors import ExtractionFailed, TargetNotFound, UpstreamBlocked
from crawler.platforms.page import PlatformPage, mismatch_error, missing_error, unread_error
from crawler.platforms.photoapp import blocks
from crawler.platforms.photoapp.link import HOSTS, link_of_path, shortcode_of
from crawler.platforms.photoapp.payload import Answer, Gated, Post, Reels
from crawler.platforms.photoapp.post import exact_duration, nonzero_count, photo_post, picture, shortcode
from crawler.reading.json import all_dicts, decode, dig, scripts_with
from crawler.reading.values import absolute_url, text


@attrs.define(slots=False)
class PhotoPage(PlatformPage):
    """The base class of the page objects. ``page_params`` has the requested post's ``shortcode`` if it is known."""

    @cached_property
    def document(self) -> Any:
        """The decoded response if it is JSON, or None for an HTML page.

        Raises:
            ExtractionFailed: the JSON is malformed.
        """
        return blocks.json_payload(self.response.body)

    def objects(self, key: str) -> Iterator[dict[str, Any]]:
        """Yield the objects in the response that have a given key, at any depth."""
        documents = blocks.page_data(self.response.body, key) if self.document is None else (self.document,)
        for document in documents:
            yield from (each for each in all_dicts(document) if key in each)

    def raise_for_blocks(self) -> None:
        """Raise an error for a blocked or failed response, by its URL, message and HTTP status."""
        document = None
        with suppress(ExtractionFailed):  # if the JSON is malformed, the HTTP status is checked first
            document = self.document
        blocks.raise_for_blocks(self.response, document)
        self.raise_for_failures()


class PostItem(dict[str, Any]):
    """The item of ``PostPage``: the keys of the post. ``post`` is the page object's only field."""

    def __init__(self, post: dict[str, Any]) -> None:
        super().__init__(post)


class Found(NamedTuple):
    """A post in the response. ``post`` is None if the platform withholds the post, or if the post could not be read."""

    post: Post | None
    gated: Gated | None = None
    """The object that contains the post on the logged-out page."""

    @property
    def code(self) -> str:
        """The shortcode, "" if it is unknown."""
        stated = shortcode(self.post) if self.post else self.gated.code if self.gated else None
        return shortcode_of(stated or "")


@attrs.define(slots=False)
class PostPage(PhotoPage):
    """A post's page, or an API response with the same data. This class reads a post in any format."""

    source: ClassVar[str] = "page"
    item_cls: ClassVar[type[dict[str, Any]]] = PostItem
    keys: ClassVar[tuple[str, ...]] = (
        "xig_polaris_media",
        "xdt_api__v1__media__shortcode__web_info",
        "xdt_shortcode_media",
        "shortcode_media",
    )
    """The keys under which the response may contain posts, in the order in which they are searched for."""

    may_lack_time: ClassVar[bool] = False
    """Whether a post without its time is valid, because its other values, such as the duration, are needed."""

    @classmethod
    def recognise(cls, body: str) -> bool:
        start = body[:200].lstrip("\ufeff \r\n\t")
        return start.startswith(("<", "{", "[", "for (;;);")) or blocks.is_refusal(body)

    def validate_input(self) -> None:
        """Raise an error unless the response contains the requested post.

        Raises:
            TargetNotFound: the post does not exist, or the platform does not show it to visitors.
            TargetRestricted: the post is withheld, for example by age or region. The error quotes the platform.
            UpstreamBlocked: the response is the login page or a challenge.
            UpstreamRateLimited: the platform's rate limit is reached, or the page lacks its data.
            UpstreamError: the HTTP status means this error.
            ExtractionFailed: the page contains no data, only another post, or a post that lacks a mandatory field.
        """
        self.raise_for_blocks()
        if self._chosen is None or self._chosen.post is None:
            self._raise_for_no_post(self._chosen)
        if not picture(self._found_post):
            raise missing_error("The post has no picture.", [self.keys[0], "image_versions2"], reason="missing_field")
        if not (self.has_time or self.may_lack_time):
            raise missing_error("The post has no time.", [self.keys[0], "taken_at_timestamp"], reason="missing_field")

    @field
    def post(self) -> dict[str, Any]:
        """The contract's post."""
        assert self._chosen is not None
        return photo_post(self._found_post, self._chosen.gated.comments if self._chosen.gated else ())

    @property
    def has_time(self) -> bool:
        """Whether the response states when the post was published."""
        return self._found_post.taken_at is not None

    @property
    def has_exact_duration(self) -> bool:
        """Whether the response states the video's duration more precisely than in whole seconds."""
        return exact_duration(self._found_post) is not None

    @property
    def _found_post(self) -> Post:
        assert self._chosen is not None
        assert self._chosen.post is not None
        return self._chosen.post

    @cached_property
    def _requested_code(self) -> str:
        return text(self.page_params.get("shortcode"))

    @cached_property
    def _chosen(self) -> Found | None:
        """The requested post, or the first post if no shortcode was requested. None if the response has no such post.

        A withheld post is chosen only if there is no other that fits.

        Raises:
            ExtractionFailed: the response contains posts, but not the requested one.
        """
        requested, other, withheld = self._requested_code, "", None
        for answer in self._answers():
            for each in _posts(answer):
                if requested and each.code not in {"", requested}:  # a post without a code may be the requested one
                    other = other or each.code
                elif each.post is not None:
                    return each
                else:
                    withheld = withheld or each
        if other and withheld is None:
            message = f"The page is for the post {other}, not {requested}."
            raise mismatch_error(message, [self.keys[0], "code"], requested, reason="wrong_post")
        return withheld

    def _answers(self) -> Iterator[Answer]:
        """Yield the objects in the response that contain posts. ``unread`` has the unread parts of the last of them.

        Posts of the owner's timeline are under other keys.
        """
        block = blocks.post_block(self.response.body)
        if block is not None:
            with suppress(ExtractionFailed):  # the cut object is not valid JSON
                yield self._checked(self.payload(Answer, block, what="post"))
        is_known = False
        for key in self.keys:
            for each in self.objects(key):
                is_known = True
                self.unread.clear()
                yield self._checked(self.plain_payload(Answer, each))
        if not is_known and (saved := _saved_alone(self.document)):
            yield self._checked(self.plain_payload(Answer, saved))

    def _checked(self, answer: Answer) -> Answer:
        """Return ``answer``. If posts in its format may lack keys, remove missing keys from ``unread`` (PH3-4)."""
        if answer.may_lack_keys:
            self.unread = [each for each in self.unread if each.cause != "missing"]
        return answer

    def _raise_for_no_post(self, withheld: Found | None) -> None:
        if withheld is not None and withheld.gated is not None:
            blocks.raise_for_ruling(withheld.gated.ruling)
        blocks.raise_for_query_errors(self.document)
        values = [each[key] for key in self.keys for each in self.objects(key)]
        is_stub = any(map(blocks.is_stub, values))
        if self.unread and not is_stub:
            reason = "blind" if any(map(blocks.is_blind, self.unread)) else "missing_field"
            message = f"The post cannot be read: {', '.join(map(str, self.unread[:5]))}"
            raise unread_error(message, self.unread, reason=reason)
        if values and not is_stub:
            raise TargetNotFound(blocks.MISSING_OR_PRIVATE, reason="missing_or_private")
        scripts = map(_decoded, scripts_with(self.response.body, b'"'))
        if blocks.has_post(scripts if self.document is None else (self.document,), self._requested_code or None):
            blocks.raise_for_unknown_keys(self.keys[0])
        blocks.raise_for_shell(self.response, self._requested_code or None, self.keys[0])


def _posts(answer: Answer) -> Iterator[Found]:
    """Yield the posts in an answer."""
    if answer.gated is not None:
        yield Found(answer.gated.post, answer.gated)
    items = answer.web_info.items if answer.web_info else []
    for each in (*items, *answer.app_items, answer.graph, answer.embedded):
        if each is not None:
            yield Found(each)


def _saved_alone(document: object) -> dict[str, Any] | None:
    """Add the keys around an object that was saved alone: a post, or the app's items. None for other documents."""
    if not isinstance(document, dict):
        return None
    if "items" in document or "media_type" in document:
        return document if "items" in document else {"items": [document]}
    around = {"if_not_gated_logged_out": "xig_polaris_media", "taken_at_timestamp": "xdt_shortcode_media"}
    return next(({key: document} for inside, key in around.items() if inside in document), None)


CONTEXT = re.compile(rb'"contextJSON"\s*:\s*(?P<literal>null|"(?:[^"\\]++|\\.)*")', re.DOTALL)
"""Matches the embed page's data, which is JSON inside a JSON string."""


@attrs.define(slots=False)
class EmbedPage(PostPage):
    """A post's embeddable page, with some keys of a post in the classic graph, including a video's duration."""

    source: ClassVar[str] = "embed"
    keys: ClassVar[tuple[str, ...]] = ("shortcode_media",)
    may_lack_time: ClassVar[bool] = True

    @classmethod
    def recognise(cls, body: str) -> bool:
        return "contextJSON" in body

    @cached_property
    def document(self) -> Any:
        body: bytes = self.response.body
        found = CONTEXT.search(body)
        if found is None:
            if b"contextJSON" in body:
                message = "The page's contextJSON is not a string."
                raise missing_error(message, ["contextJSON"], reason="broken_data_block")
            return blocks.json_payload(body)
        context = decode(found["literal"], what="contextJSON")
        inner = decode(context, what="contextJSON") if isinstance(context, str) and context else None
        # A withheld post is null, or its key is missing.
        is_post = dig(inner, "gql_data", "shortcode_media") or blocks.has_post((inner,), self._requested_code or None)
        return inner if is_post else {"shortcode_media": None}


@attrs.define(slots=False)
class ReelsPage(PhotoPage):
    """The page with an account's newest reels. Its field ``plays`` maps each reel's numeric id to the play count."""

    source: ClassVar[str] = "reels"
    key: ClassVar[str] = "polaris_clips_connection"

    @classmethod
    def recognise(cls, body: str) -> bool:
        return f'"{cls.key}"' in body and not any(f'"{key}"' in body for key in PostPage.keys)

    def validate_input(self) -> None:
        """Raise an error if the page contains no list of reels. The errors are those of ``PostPage.validate_input``."""
        self.raise_for_blocks()
        if not self._lists:
            blocks.raise_for_query_errors(self.document)
            blocks.raise_for_shell(self.response, None, self.key)

    @field
    def plays(self) -> dict[str, int]:
        reels = [reel for each in self._lists for reel in each.reels]
        plays = {reel.pk: nonzero_count(reel.plays, hidden=reel.hides_counts) for reel in reels}
        return {pk: count for pk, count in plays.items() if count is not None}

    @cached_property
    def _lists(self) -> list[Reels]:
        return [self.plain_payload(Reels, each) for each in self.objects(self.key) if isinstance(each[self.key], dict)]


def _decoded(script: bytes) -> Any:
    """Return the JSON in a script, or None if it is program code or malformed."""
    with suppress(ExtractionFailed):
        return decode(script, what="data-sjs") if script.lstrip().startswith((b"{", b"[")) else None
    return None


@attrs.define(slots=False)
class SharePage(PhotoPage):
    """The response to a share link: a redirect to a post's URL. Only the shortcode in that URL is used.

    Such a response has no body, so it is never saved, and ``recognise`` is not implemented.
    """

    source: ClassVar[str] = "share"

    def validate_input(self) -> None:
        """Raise an error unless the share link leads to a post.

        Raises:
            TargetNotFound: the share link does not exist, or leads to another kind of page.
            UpstreamBlocked: the link leads to the login page, a challenge or another host.
            UpstreamRateLimited, UpstreamError: the HTTP status means this error.
            ScrapeError: the response is a page without a redirect and without a post (see ``blocks.raise_for_shell``).
        """
        if 300 <= (self.response.status or 0) < 400 and self._location is not None:
            self._raise_for_wrong_redirect(self._location)
            return
        self.raise_for_blocks()
        if not self._shortcode:
            blocks.raise_for_shell(self.response, None, "Location")

    @field
    def shortcode(self) -> str | None:
        return self._shortcode

    @cached_property
    def _location(self) -> str | None:
        target = self.response.headers.get("Location")
        return absolute_url(str(self.response.url), target) or None

    @cached_property
    def _shortcode(self) -> str | None:
        # If the browser loaded the link, it has followed the redirect, and the response is the post's page.
        link = link_of_path(urlsplit(self._location or str(self.response.url)).path)
        if link and link.shortcode:
            return link.shortcode
        return None if self._location else blocks.preview_shortcode(self.response.body)

    def _raise_for_wrong_redirect(self, location: str) -> None:
        source, target = urlsplit(str(self.response.url)), urlsplit(location)
        if target.netloc != source.netloc and target.netloc.lower() not in HOSTS:
            message = f"The platform redirected to another host: {target.netloc[:100]}"
            raise UpstreamBlocked(message, reason="foreign_redirect")
        blocks.raise_for_blocked_path(target.path)
        if target.path in {"", "/"}:
            blocks.raise_for_login()
        if not self._shortcode:
            raise TargetNotFound("The share link does not lead to a post.", reason="wrong_page_kind")
