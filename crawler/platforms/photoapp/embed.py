"""Photo app: reads the HTML of a post's embed page, which has no JSON of most photos, and recognises broken embeds."""

from __future__ import annotations

import re
from typing import Any

from parsel import Selector

from crawler.errors import quoted
from crawler.platforms.photoapp.blocks import missing_or_private
from crawler.platforms.photoapp.link import shortcode_in
from crawler.reading.markup import parsed_html

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
    kind = post.attrib.get("data-media-type")
    return {
        "__typename": kind,
        "id": post.attrib.get("data-media-id"),
        "shortcode": shortcode_in(post.attrib.get("data-permalink", "")),
        "is_video": kind and kind == "GraphVideo",
        "display_url": _picture(page),
        "dimensions": {"height": None, "width": None},
        **_caption(page),
        "edge_media_preview_like": {"count": _count(_LIKES, page.css(".SocialProof"))},
        "edge_media_to_comment": {"count": _count(_COMMENTS, page.css(".CaptionComments"))},
        "owner": {
            "id": post.attrib.get("data-owner-id"),
            "username": page.css(".UsernameText::text").get("").strip(),
            "is_verified": None,
            "profile_pic_url": page.css(".Avatar img::attr(src)").get(),
        },
    }


def _picture(page: Selector) -> str | None:
    image = page.css("img.EmbeddedMediaImage")
    sizes = [_SIZE.fullmatch(each.strip()) for each in re.split(",(?=http)", image.attrib.get("srcset", ""))]
    largest = max((size for size in sizes if size), key=lambda size: int(size["width"]), default=None)
    return largest["url"] if largest else image.attrib.get("src")


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
