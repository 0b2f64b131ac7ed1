"""The simulated short-video site's posts in the format of the app's API, whose keys differ from the website's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crawler.sandbox.shortvideo import record as shortvideo_record
from crawler.sandbox.shortvideo.record import NOTHING, PUBLIC, picture
from crawler.sandbox.shortvideo.web import CDN, avatar, show_url, sound_cover, sound_url, urls

if TYPE_CHECKING:
    from crawler.sandbox.shortvideo.world import Person, Post, Sound

PHOTO_POST, VIDEO_POST = 150, 0
LOG_EXTRA = '{"req_id":"20261121080000AB"}'
FIGURES = ("collect", "comment", "digg", "play", "share", "repost", "download", "whatsapp_share")


def _address(key: str, addresses: list[str], width: int, height: int) -> dict[str, Any]:
    """Build a picture object in the app's format. In this format, ``uri`` is a storage key and not a URL."""
    found = {"data_size": 0, "uri": f"tos-photomode/{key}", "url_list": addresses}
    return found | {"url_prefix": None, "width": width, "height": height}


def _marked(key: str) -> list[str]:
    return [f"{CDN}/tos-photomode/{key}~owner.heic", f"{CDN}/tos-photomode/{key}~owner.jpeg"]


def entry(post: Post) -> dict[str, Any]:
    """Build a result row as the app's search API returns it."""
    found: dict[str, Any] = {
        "aweme_id": post.id,
        "aweme_type": PHOTO_POST if post.kind in {"photo", "empty"} else VIDEO_POST,
        "anchors": None,
        "author": _author(post.person),
        "author_user_id": int(post.person.id) // 1000 * 1000,  # rounded, as JavaScript does with large numbers
        "commerce_info": {
            "adv_promotable": True,
            "auction_ad_invited": False,
            "branded_content_type": 0,
            "organic_log_extra": LOG_EXTRA,
            "with_comment_filter_words": False,
            "ad_source": int(post.ad),
        },
        "create_time": post.created,
        "desc": post.caption,
        "desc_language": post.language,
        "is_ads": False,
        "is_nff_or_nr": False,
        "is_top": 0,
        "item_comment_settings": post.comments,
        "region": "DE",
        "share_url": f"{PUBLIC}/@{post.person.handle}/photo/{post.id}?_r=1&u_code=1",
        "statistics": {"aweme_id": post.id, "forward_count": 0, "lose_count": 0, "lose_comment_count": 0}
        | {f"{name}_count": figure for name, figure in zip(FIGURES, post.figures, strict=True)},
        "video": _video(post),
        "privateItem": post.hidden,
    }
    if post.sound:
        found["music"] = _music(post.sound)
    if post.kind in {"photo", "empty"}:
        found["image_post_info"] = {"images": [] if post.kind == "empty" else _pictures(post), "title": "Its title"}
        if post.covered:
            found["image_post_info"]["image_post_cover"] = _slide(*post.pictures[-1])
    return {"aweme_info": found, "search_aweme_info": {"doc_type": 1}}


def _pictures(post: Post) -> list[dict[str, Any]]:
    return [_slide(*each) for each in post.pictures]


def _slide(key: str, width: int, height: int) -> dict[str, Any]:
    return {
        "bitrate_images": [],
        "display_image": _address(key, urls(key), width, height),
        "owner_watermark_image": _address(key, _marked(key), width, height),
        "thumbnail": _address(key, urls(key), width, height),
        "ocr_language": "en",
    }


def _author(person: Person) -> dict[str, Any]:
    return {
        "uid": person.id,
        "unique_id": person.handle,
        "nickname": person.name,
        "sec_uid": f"MS4wLjABAAAA{person.id}",
        "short_id": "0",
        "signature": person.about,
        "language": "en",
        "region": "FR",
        "events": None,
        "privateAccount": person.private,
        "avatar_larger": _address("a", [avatar(person, 1080)], 720, 720),
        "avatar_medium": _address("a", [avatar(person, 720)], 720, 720),
        "avatar_thumb": _address("a", [avatar(person, 100)], 720, 720),
    }


def _music(sound: Sound) -> dict[str, Any]:
    return {
        "id": int(sound.id) // 1000 * 1000,
        "id_str": sound.id,
        "mid": sound.id,
        "album": sound.album,
        "author": sound.author,
        "title": sound.title,
        "duration": sound.seconds,
        "is_original": False,
        "is_original_sound": sound.original,
        "owner_nickname": sound.author if sound.original else "",
        "user_count": 807_750,
        "cover_large": _address("m", [sound_cover(sound, "large")], 720, 720),
        "cover_medium": _address("m", [sound_cover(sound, "medium")], 720, 720),
        "cover_thumb": _address("m", [sound_cover(sound, "thumb")], 720, 720),
        "play_url": {"uri": sound_url(sound), "url_list": [sound_url(sound)], "url_prefix": None}
        | {"width": 720, "height": 720},
    }


def _video(post: Post) -> dict[str, Any]:
    moving = post.kind == "video"
    plays = [show_url(post)] if moving or not post.sound else [sound_url(post.sound)]
    covers = {"cover": "cover", "origin_cover": "origin", "dynamic_cover": "dynamic"}
    return {
        "duration": 89_131 if moving else 0,
        "height": 1024 if moving else 0,
        "width": 576 if moving else 0,
        "play_addr": {"uri": plays[0], "url_list": plays, "url_prefix": None, "width": 720, "height": 720},
        "download_addr": {"uri": "", "url_list": [], "url_prefix": None, "width": 720, "height": 720},
        **{name: _address("c", [f"{CDN}/{path}/{post.id}.heic"], 640, 853) for name, path in covers.items()},
    }


def record(post: Post) -> dict[str, Any]:
    """Build the expected record of a post that is served in the app's format."""
    web = shortvideo_record.record(post)
    figures = dict(zip(FIGURES, post.figures, strict=True))
    slides = [_slide_record(*each) for each in post.pictures]
    bare = {"display_image": slides[0]["display_image"], "owner_watermark_image": NOTHING}
    cover = _slide_record(*post.pictures[-1]) if post.covered else bare
    plays = [sound_url(post.sound)] if post.sound else [show_url(post)]
    return web | {
        "anchors": None,
        "author": web["author"]
        | {"language": "en", "region": "FR", "short_id": "0"}
        | {f"avatar_{name}": web["author"][f"avatar_{name}"] | SQUARE for name in ("larger", "medium", "thumb")},
        "commerce_info": {
            "adv_promotable": True,
            "auction_ad_invited": False,
            "branded_content_type": 0,
            "is_diversion_ad": None,
            "organic_log_extra": LOG_EXTRA,
            "with_comment_filter_words": False,
        },
        "image_post_info": {"image_post_cover": cover, "images": slides},
        "is_nff_or_nr": False,
        "is_paid_partnership": None,
        "is_top": 0,
        "music": _music_record(web["music"], post.sound),
        "region": "DE",
        "statistics": {
            "aweme_id": post.id,
            "forward_count": 0,
            "lose_comment_count": 0,
            "lose_count": 0,
            **{f"{name}_count": figure for name, figure in figures.items() if name != "whatsapp_share"},
            "chatapp_share_count": figures["whatsapp_share"],
        },
        "video": web["video"]
        | {
            "cover": picture([f"{CDN}/cover/{post.id}.heic"], 640, 853),
            "origin_cover": picture([f"{CDN}/origin/{post.id}.heic"], 640, 853),
            "dynamic_cover": picture([f"{CDN}/dynamic/{post.id}.heic"], 640, 853),
            "play_addr": picture(plays, 720, 720),
            "download_addr": NOTHING | SQUARE,
        },
    }


SQUARE = {"width": 720, "height": 720}


def _slide_record(key: str, width: int, height: int) -> dict[str, Any]:
    return {
        "display_image": picture(urls(key), width, height),
        "owner_watermark_image": picture(_marked(key), width, height),
    }


def _music_record(web: dict[str, Any], sound: Sound | None) -> dict[str, Any]:
    if sound is None:
        return web
    pictures = {name: web[name] | SQUARE for name in ("cover_large", "cover_medium", "cover_thumb", "play_url")}
    owner = sound.author if sound.original else ""
    return web | pictures | {"is_original": False, "owner_nickname": owner, "user_count": 807_750}
