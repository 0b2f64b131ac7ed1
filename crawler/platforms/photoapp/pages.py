"""Photo app: page objects for a post in each format of the payload or in HTML, an account's reels and a share link."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, NoReturn
from urllib.parse import urlsplit

import attrs
from parsel import Selector
from web_poet import field

from crawler.errors import ExtractionFailed, TargetNotFound, UpstreamBlocked, quoted
from crawler.platforms.page import PlatformPage, mismatch_error, missing_error, unread_error
from crawler.platforms.photoapp import blocks
from crawler.platforms.photoapp.blocks import missing_or_private
from crawler.platforms.photoapp.payload import Answer, Embedded, Gated, Post, Reels
from crawler.platforms.photoapp.post import Identity, exact_duration, identity_of, nonzero_count, photo_post, picture
from crawler.platforms.photoapp.urls import HOSTS, link_of_path, shortcode_in
from crawler.reading.contract import Unread
from crawler.reading.documents import all_dicts, decode, dig, parsed_html
from crawler.reading.values import absolute_url, text

_BROKEN = re.compile(rb'class="[^"]{0,100}?\b(?P<name>EmbedIsBroken|EmbedBrokenMedia)\b')
_POST = b"data-media-id="
_LIKES = re.compile(r"(?<![0-9.,])(?P<count>[0-9][0-9,]{0,14}) likes?")
_COMMENTS = re.compile(r"View (?:all )?(?P<count>[0-9][0-9,]{0,14}) comments?")
_SIZE = re.compile(r"(?P<url>\S{1,4000}) (?P<width>[0-9]{1,5})w")


def raise_for_broken(body: bytes) -> None:
    """Raise an error if the embed page states that it is broken.

    Another project has recorded such a page, in 2026-09, for a shortcode that does not exist (status 200).

    Raises:
        TargetNotFound: the post does not exist, or is private.
        ExtractionFailed: as for ``parsed_html``.
    """
    found = _BROKEN.search(body)
    if found is None:
        return
    stated = parsed_html(body).css(".ebmMessage::text").get("")
    raise missing_or_private(quoted(f"{found['name'].decode()} {stated}".strip(), "class"))


def post_in_html(body: bytes) -> dict[str, Any] | None:
    """Return the post in the HTML of an embed page, under the keys of ``payload.Embedded``. None if there is none.

    Of a carousel or a video, the HTML has only the first picture. Rounded counts ("1.2M likes") are not read.

    Raises:
        ExtractionFailed: as for ``parsed_html``.
    """
    if _POST not in body:
        return None
    page = parsed_html(body)
    post = page.css(".Embed[data-media-id]")
    kind = post.xpath("@data-media-type").get()
    return {
        "__typename": kind,
        "id": post.xpath("@data-media-id").get(),
        "shortcode": shortcode_in(post.xpath("@data-permalink").get("")),
        "is_video": kind and kind == "GraphVideo",
        "display_url": _picture(page),
        "dimensions": {"height": None, "width": None},
        **_caption(page),
        "edge_media_preview_like": {"count": _count(_LIKES, page.css(".SocialProof"))},
        "edge_media_to_comment": {"count": _count(_COMMENTS, page.css(".CaptionComments"))},
        "owner": {
            "id": post.xpath("@data-owner-id").get(),
            "username": page.css(".UsernameText::text").get("").strip(),
            "is_verified": None,
            "profile_pic_url": page.css(".Avatar img::attr(src)").get(),
        },
    }


def _picture(page: Selector) -> str | None:
    image = page.css("img.EmbeddedMediaImage")
    sizes = [_SIZE.fullmatch(each.strip()) for each in re.split(",(?=http)", image.xpath("@srcset").get(""))]
    largest = max((size for size in sizes if size), key=lambda size: int(size["width"]), default=None)
    return largest["url"] if largest else image.xpath("@src").get()


def _caption(page: Selector) -> dict[str, Any]:
    """Return the caption, which stands between the owner's name and the link to the comments. {} without its box."""
    boxes = page.xpath("//*[contains(concat(' ', @class, ' '), ' Caption ')]")
    parts = boxes.xpath(
        "node()[not(contains(@class, 'CaptionUsername') or contains(@class, 'CaptionComments'))]"
        "/descendant-or-self::node()[self::text() or self::br]"
    )
    caption = "".join(part.root if isinstance(part.root, str) else "\n" for part in parts).strip()
    return {"edge_media_to_caption": {"edges": [{"node": {"text": caption}}]}} if boxes else {}


def _count(pattern: re.Pattern[str], box: Any) -> str | None:
    found = pattern.search(" ".join(box.css("*::text").getall()))
    return found["count"] if found else None


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

    def raise_for_no_data(self, keys: Sequence[str], shortcode: str | None = None) -> NoReturn:
        """Raise the error for a response without data. ``keys``: the keys under which the data was expected."""
        body: bytes = self.response.body
        results = blocks.query_results(body, self.document)
        # If another result has data, a result without data may be of another query: the post may have another key.
        is_empty = not any(blocks.holds_data(each.get("data")) for each in results)
        for each in results:
            if is_empty or not blocks.keys_of(each).isdisjoint(keys):
                blocks.raise_for_query_errors(each)
        found = [each for key in keys for each in self.objects(key)]
        if found or (is_empty and any("data" in each for each in results)):
            blocks.raise_for_null(keys[0])
        has_results = self.document is None and (bool(results) or blocks.QUERY in body)
        blocks.raise_for_shell(self.response, shortcode, keys[0], has_results=has_results)


class PostItem(dict[str, Any]):
    """The item of ``PostPage``: the keys of the post. ``post`` is the page object's only field."""

    def __init__(self, post: dict[str, Any]) -> None:
        super().__init__(post)


class Found(NamedTuple):
    """A post in the response. ``post`` is None if the platform withholds the post, or if the post could not be read."""

    post: Post | None
    path: str
    """The path of the post."""
    identity: Identity
    gated: Gated | None = None
    """The object that contains the post on the logged-out page."""


@attrs.define(slots=False)
class PostPage(PhotoPage):
    """A post's page. A JSON response with the same data, or the platform's refusal as JSON, is read, too."""

    source: ClassVar[str] = "page"
    item_cls: ClassVar[type[dict[str, Any]]] = PostItem
    keys: ClassVar[tuple[str, ...]] = ("xig_polaris_media", "xdt_api__v1__media__shortcode__web_info")
    """The keys under which the response may contain posts, in the order in which they are searched for."""

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
        if not self._found.identity.code:
            raise missing_error("The post has no id.", [self.keys[0], "pk"], reason="missing_field")
        if not picture(self._found_post):
            raise missing_error("The post has no picture.", [self.keys[0], "image_versions2"], reason="missing_field")

    @field
    def post(self) -> dict[str, Any]:
        """The contract's post."""
        found = self._found
        wrong = [f"{found.path}.{key}" for key in self._contradictions()]
        known = [each.path for each in self.unread]
        self.unread += [Unread(path, "contradiction") for path in wrong if not any(path in each for each in known)]
        return photo_post(self._found_post, found.identity, found.gated.comments if found.gated else ())

    def _contradictions(self) -> Iterator[str]:
        """Yield the keys of the post that another part of the page contradicts."""
        post = self._found_post
        if self._found.identity.contradicts:
            yield "id" if isinstance(post, Embedded) else "pk"
        if not post.caption and blocks.previews_caption(self.response.body):
            yield "caption"
        yield from post.contradictions()

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
        assert self._found.post is not None
        return self._found.post

    @cached_property
    def _requested_code(self) -> str:
        return text(self.page_params.get("shortcode"))

    @cached_property
    def _found(self) -> Found:
        """The requested post, or the first post if no shortcode was requested. ``Found.post`` is not None.

        Raises:
            ScrapeError: the response has no such post, or has it only without its data: see ``validate_input``.
        """
        requested, other, withheld = self._requested_code, "", None
        for answer in self._answers():
            for each in _posts(answer):
                code = each.identity.code
                if requested and code not in {"", requested}:  # a post without a code may be the requested one
                    other = other or code
                elif each.post is not None:
                    return each
                else:
                    withheld = withheld or each
        if other and withheld is None:
            message = f"The page is for the post {other}, not {requested}."
            raise mismatch_error(message, [self.keys[0], "code"], requested, reason="wrong_post")
        return self._raise_for_no_post(withheld)

    def _answers(self) -> Iterator[Answer]:
        """Yield the objects in the response that contain posts. ``unread`` has the unread parts of the last of them.

        Posts of the owner's timeline are under other keys.
        """
        block = blocks.post_block(self.response.body)
        if block is not None:
            with suppress(ExtractionFailed):  # the cut object is not valid JSON
                yield self.payload(Answer, block, what="post")
        for key in self.keys:
            for each in self.objects(key):
                self.unread.clear()
                yield self.plain_payload(Answer, each)

    def _raise_for_no_post(self, withheld: Found | None) -> NoReturn:
        if withheld and withheld.gated:
            blocks.raise_for_ruling(withheld.gated.ruling)
        blocks.raise_for_landing_page(self.response.body)
        if self.unread:
            reason = "blind" if any(map(blocks.is_blind, self.unread)) else "missing_field"
            message = f"The post cannot be read: {', '.join(map(str, self.unread[:5]))}"
            raise unread_error(message, self.unread, reason=reason)
        self.raise_for_no_data(self.keys, self._requested_code or None)


def _posts(answer: Answer) -> Iterator[Found]:
    """Yield the posts in an answer."""
    if (gated := answer.gated) is not None:
        yield _found(gated.post, "xig_polaris_media.if_not_gated_logged_out", gated)
    for item in answer.web_info.items if answer.web_info else []:
        yield _found(item, "xdt_api__v1__media__shortcode__web_info.items[]")
    if answer.embedded is not None:
        yield _found(answer.embedded, "shortcode_media")


def _found(post: Post | None, path: str, gated: Gated | None = None) -> Found:
    stating = [each for each in (post, gated) if each is not None]
    ids = [*(each.pk for each in stating), post.full_id if post else None]
    return Found(post, path, identity_of([each.code for each in stating], ids), gated)


CONTEXT = re.compile(rb'"contextJSON"\s*:\s*(?P<literal>null|"(?:[^"\\]++|\\.)*")', re.DOTALL)
"""Matches the embed page's data, which is JSON inside a JSON string."""


@attrs.define(slots=False)
class EmbedPage(PostPage):
    """A post's embeddable page, with some keys of a post, including a video's duration.

    The page has the post as JSON, or, as for most photos, only in its HTML.
    """

    source: ClassVar[str] = "embed"
    keys: ClassVar[tuple[str, ...]] = ("shortcode_media",)

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
        return inner if dig(inner, "gql_data") else {"shortcode_media": post_in_html(body)}

    def _raise_for_no_post(self, withheld: Found | None) -> NoReturn:
        body: bytes = self.response.body
        raise_for_broken(body)
        if self.unread or b"contextJSON" not in body:
            super()._raise_for_no_post(withheld)
        data = dig(self.document, "gql_data")
        if isinstance(data, dict) and any(isinstance(each, dict) for each in data.values()):
            raise missing_error("The page's data has unknown keys.", [self.keys[0]], reason="blind")
        raise missing_error("The embed page has no post.", ["contextJSON"], reason="no_data_block")


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
            self.raise_for_no_data([self.key])

    @field
    def plays(self) -> dict[str, int]:
        reels = [reel for each in self._lists for reel in each.reels]
        plays = {reel.pk: nonzero_count(reel.plays, hidden=reel.hides_counts) for reel in reels}
        return {pk: count for pk, count in plays.items() if count is not None}

    @cached_property
    def _lists(self) -> list[Reels]:
        return [self.plain_payload(Reels, each) for each in self.objects(self.key) if isinstance(each[self.key], dict)]


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
            blocks.raise_for_login(quoted(target.path or "/", "Location"))
        if not self._shortcode:
            message, mark = "The share link does not lead to a post.", quoted(target.path, "Location")
            raise TargetNotFound(message, reason="wrong_page_kind", details=mark)
