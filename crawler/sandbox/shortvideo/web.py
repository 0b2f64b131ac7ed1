"""The simulated short-video site's posts in the format of the website's API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crawler.sandbox.shortvideo.world import Person, Post, Sound

CDN = "https://p16-sign.tiktokcdn.example"
MIRROR = "https://p19-sign.tiktokcdn.example"
FIGURES = ("collect", "comment", "digg", "play", "share", "repost")


def urls(key: str) -> list[str]:
    """Return the URLs of a picture, one for each mirror server."""
    return [f"{host}/tos-photomode/{key}~tplv.jpeg?x-expires=1795500000" for host in (CDN, MIRROR)]


def avatar(person: Person, size: int) -> str:
    """Return the URL of an account's picture."""
    return f"{CDN}/tos-avt/{person.id}~c5_{size}x{size}.jpeg?x-expires=1795500000"


def sound_url(sound: Sound) -> str:
    """Return the URL of a sound."""
    return f"https://v16-webapp.tiktokcdn.example/music/{sound.id}.mp3"


def sound_cover(sound: Sound, size: str) -> str:
    """Return the URL of the picture that belongs to a sound."""
    return f"{CDN}/tos-music/{sound.id}_{size}.jpeg"


def show_url(post: Post) -> str:
    """Return the URL of the video that the platform rendered from a post's pictures."""
    return f"https://v16-webapp.tiktokcdn.example/show/{post.id}.mp4"


def rounded(number: int) -> int:
    """Round a number to three significant digits, as the platform does."""
    digits = len(str(number)) - 3
    return number if digits <= 1 else round(number, -digits)


def item(post: Post) -> dict[str, Any]:
    """Build a row of results in the format of the website's search API."""
    found = {
        "id": post.id,
        "desc": post.caption,
        "createTime": post.created,
        "video": _video(post),
        "author": _author(post.person),
        "challenges": [
            {"id": "42164", "title": "fyp", "desc": "", "profileThumb": "", "profileMedium": "", "profileLarger": ""}
            | {"coverThumb": "", "coverMedium": "", "coverLarger": ""}
        ],
        "stats": {
            f"{name}Count": rounded(figure)
            for name, figure in zip(FIGURES, post.figures, strict=False)
            if name != "repost"
        },
        "originalItem": False,
        "officalItem": False,
        "textExtra": _tags(post),
        "secret": False,
        "forFriend": False,
        "digged": False,
        "effectStickers": [{"name": "Glow", "ID": "3149762289", "stickerStats": {"useCount": 0}}],
        "authorStats": _author_figures(int),
        "privateItem": post.hidden and not post.person.private,
        "duetEnabled": True,
        "stitchEnabled": True,
        "stickersOnItem": [{"stickerType": 4, "stickerText": ["💋"]}],
        "shareEnabled": True,
        "isAd": post.ad,
        "duetDisplay": 0,
        "stitchDisplay": 0,
        "contents": [{"desc": post.caption, "textExtra": _tags(post)}],
        "diversificationId": 10071,
        "collected": False,
        "item_control": dict.fromkeys(("can_repost", "can_comment", "can_share", "can_music_redirect"), True)
        | {"can_creator_redirect": False},
        "statsV2": {f"{name}Count": str(figure) for name, figure in zip(FIGURES, post.figures, strict=False)},
        "videoSuggestWordsList": {
            "video_suggest_words_struct": [
                {
                    "words": [{"word": "sea", "word_id": "4289071465908963848"}],
                    "scene": "feed_bar",
                    "hint_text": "Search · ",
                }
            ]
        },
        "AIGCDescription": "",
        "backendSourceEventTracking": "",
        "CategoryType": 110,
        "textTranslatable": True,
        "authorStatsV2": _author_figures(str),
    }
    if post.sound:
        found["music"] = _music(post.sound)
    if post.language:
        found["textLanguage"] = post.language
    if post.comments is not None:
        found["itemCommentStatus"] = post.comments
    if post.paid is not None:
        found["adAuthorization"] = post.paid
    if post.anchored:
        found["anchors"] = anchors()
        found |= {"poi": _place(), "BAInfo": "", "adLabelVersion": 2}
    if post.kind == "live":
        found["liveRoomInfo"] = {"status": 2, "title": "live"}
    if post.kind in {"photo", "empty"}:
        found["imagePost"] = _pictures(post)
    return found


def anchors() -> list[dict[str, Any]]:
    """Build the links to effects and products that some posts contain."""
    return [
        {
            "id": "3149762289",
            "type": 28,
            "keyword": "Glow",
            "icon": {"urlList": [f"{CDN}/logo.png"]},
            "schema": "https://effects.example",
            "description": "Effects",
            "thumbnail": {"urlList": [f"{CDN}/anchor.png"], "width": 64, "height": 64},
            "extraInfo": {"subtype": ""},
            "logExtra": "{}",
        }
    ]


def _place() -> dict[str, Any]:
    names = ("address", "category", "city", "cityCode", "country", "countryCode", "fatherPoiId", "fatherPoiName", "id")
    kinds = ("name", "province", "ttTypeCode", "ttTypeNameMedium", "ttTypeNameSuper", "ttTypeNameTiny", "typeCode")
    return dict.fromkeys((*names, *kinds), "Isle") | {"type": 0}


def _pictures(post: Post) -> dict[str, Any]:
    images = [
        {"imageURL": {"urlList": urls(key)}, "imageWidth": width, "imageHeight": height}
        for key, width, height in post.pictures
    ]
    found: dict[str, Any] = {"images": [] if post.kind == "empty" else images, "title": "A title of its own"}
    key, width, height = post.pictures[-1]
    cover_urls = urls(f"{key}-cover") if post.covered else []
    cover = {"imageURL": {"urlList": cover_urls}, "imageWidth": width, "imageHeight": height}
    found |= {"cover": cover, "shareCover": cover}
    return found


def _author(person: Person) -> dict[str, Any]:
    return {
        "id": person.id,
        "uniqueId": person.handle,
        "nickname": person.name,
        "avatarThumb": avatar(person, 100),
        "avatarMedium": avatar(person, 720),
        "avatarLarger": avatar(person, 1080),
        "signature": person.about,
        "verified": False,
        "secUid": f"MS4wLjABAAAA{person.id}",
        "privateAccount": person.private,
        **dict.fromkeys(("secret", "ftc", "openFavorite", "isADVirtual", "isEmbedBanned"), False),
        **dict.fromkeys(("relation", "commentSetting", "duetSetting", "stitchSetting", "downloadSetting"), 0),
    }


def _author_figures(kind: type[int | str]) -> dict[str, Any]:
    names = ("followingCount", "followerCount", "heartCount", "videoCount", "diggCount", "heart", "friendCount")
    return {name: kind(1000) for name in names}


def _music(sound: Sound) -> dict[str, Any]:
    songs = [
        {
            "platform": 1,
            "song_id": "1",
            "token": {"apple_music_token": {"developer_token": ""}},
            "meta_song_id": sound.id,
        }
    ]
    found = {
        "id": sound.id,
        "title": sound.title,
        "playUrl": sound_url(sound),
        "coverThumb": sound_cover(sound, "thumb"),
        "coverMedium": sound_cover(sound, "medium"),
        "coverLarge": sound_cover(sound, "large"),
        "authorName": sound.author,
        "original": sound.original,
        "private": False,
        "duration": sound.seconds,
        "isCopyrighted": not sound.original,
        "tt2dsp": {} if sound.original else {"tt_to_dsp_song_infos": songs},
    }
    return found if sound.original else found | {"album": sound.album}


def _tags(post: Post) -> list[dict[str, Any]]:
    tag = {"awemeId": "", "start": 14, "end": 21, "hashtagName": "fyp", "hashtagId": "42164", "type": 1}
    someone = {"userId": post.person.id, "userUniqueId": post.person.handle, "secUid": ""}
    return [tag | {"isCommerce": False, "subType": 0} | (someone if post.anchored else {})]


def _video(post: Post) -> dict[str, Any]:
    """Build the video object of a post. For a photo post, it has only a few fields."""
    moving = post.kind == "video"
    stub: dict[str, Any] = {
        "id": post.id,
        "height": 1024 if moving else 0,
        "width": 576 if moving else 0,
        "duration": 15 if moving else 0,
        "ratio": "540p",
        "cover": f"{CDN}/cover/{post.id}.jpeg" if moving or post.covered else "",
        "originCover": f"{CDN}/origin/{post.id}.jpeg" if moving or post.covered else "",
        "dynamicCover": f"{CDN}/dynamic/{post.id}.webp" if moving else "",
        "playAddr": show_url(post) if moving or post.rendered else "",
        "downloadAddr": show_url(post) if moving else "",
    }
    return stub | (_moving(post) if moving else {"volumeInfo": {}, "size": 0, "claInfo": {}})


def _moving(post: Post) -> dict[str, Any]:
    stream = {"Uri": post.id, "UrlList": [show_url(post)], "DataSize": 2_762_276, "Width": 720, "Height": 1280}
    stream |= {"UrlKey": f"{post.id}_720p", "FileHash": post.id, "FileCs": "c:0-14121-11f3"}
    grade = {"GearName": "lower_720_1", "Bitrate": 1_473_213, "QualityType": 14, "CodecType": "h265_hvc1"}
    spoken = {"language": "eng-US", "languageID": "2", "languageCode": "en"}
    return {
        "bitrate": 1_256_144,
        "bitrateInfo": [grade | {"PlayAddr": stream, "MVMAF": "{}"}],
        "claInfo": {
            "hasOriginalAudio": True,
            "enableAutoCaption": True,
            "captionsType": 1,
            "noCaptionReason": 3,
            "originalLanguageInfo": spoken | {"canTranslateRealTimeNoCheck": True},
            "captionInfos": [
                spoken
                | dict.fromkeys(("claSubtitleID", "expire", "subID", "subtitleType", "translationType", "variant"), "1")
                | {"captionFormat": "webvtt", "isAutoGen": True, "isOriginalCaption": True}
                | {"url": f"{CDN}/captions.vtt", "urlList": [f"{CDN}/captions.vtt"]}
            ],
        },
        "codecType": "h264",
        "definition": "540p",
        "encodeUserTag": "",
        "encodedType": "normal",
        "format": "mp4",
        "size": 2_355_271,
        "subtitleInfos": [
            {"Format": "webvtt", "LanguageCodeName": "eng-US", "LanguageID": "2", "Size": 300, "Source": "ASR"}
            | {"Url": f"{CDN}/captions.vtt", "UrlExpire": 1_795_500_000, "Version": "1"}
        ],
        "videoID": post.id,
        "videoQuality": "lower",
        "volumeInfo": {"Loudness": -17.9, "Peak": 0.63826},
        "VQScore": "63.38",
        "zoomCover": {size: f"{CDN}/cover/{post.id}_{size}.jpeg" for size in ("240", "480", "720", "960")},
    }
