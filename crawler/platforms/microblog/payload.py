"""Microblog: the contracts of the API's payloads, and the common attributes of posts and users in all payloads.

The kinds of the values (``always``, ``sometimes`` ...) were determined from all recorded payloads: 2,400 posts, in
timelines, threads and searches from 2023-06 to 2026-08.

The classes whose names contain ``Web`` are the contracts of the newest web client: its API responses, and the data in
its pages. The recorded pages are an excerpt of a page (capture 15e277c749c3), and two pages with real structure but
other values (captures 968d30337932, 591342db3cda). These pages do not show which values are in every post, so all
values of posts except the identities are ``sometimes``. Links, media, notes and articles have the same keys as in the
API's responses.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, ClassVar

from crawler.reading.contract import Contract, always, filled, identity, often, sometimes

Number = int | float | str
"""A count. The API sends counts of views as texts."""

# Users


class User(Contract):
    """A user in any format. The attributes have the names of the data model's fields.

    The declared paths are those of the newest web client. The contracts of other formats override the paths that
    differ.
    """

    id: str | None = sometimes("rest_id")
    screen_name: str | None = sometimes("core.screen_name")
    name: str | None = sometimes("core.name")
    profile_image_url_https: str | None = sometimes("avatar.image_url")
    created_at: str | int | None = sometimes("core.created_at_ms", "core.created_at")
    """The platform's date format, or Unix milliseconds."""
    description: str | None = sometimes("profile_bio.description")
    location: str | None = sometimes("location.location")
    profile_banner_url: str | None = sometimes("banner.image_url")
    url: str | None = sometimes("website.url")
    listed_urls: list[str] = sometimes("profile_bio.entities.url.urls[].url")
    """The links in the user's profile. In some payloads, the user's website is only in this list."""
    verified_type: str | None = sometimes("verification.verified_type")
    shape: str | None = sometimes("profile_image_shape")
    """The shape of the user's picture, such as "Square"."""
    verified: bool | None = sometimes("verification.verified")
    is_blue_verified: bool | None = sometimes("verification.is_blue_verified", "is_blue_verified")
    protected: bool | None = sometimes("privacy.protected")
    favourites_count: Number | None = sometimes("action_counts.favorites_count")
    followers_count: Number | None = sometimes("relationship_counts.followers")
    friends_count: Number | None = sometimes("relationship_counts.following")
    listed_count: Number | None = None
    media_count: Number | None = sometimes("tweet_counts.media_tweets")
    statuses_count: Number | None = sometimes("tweet_counts.tweets")

    @property
    def omits_empty(self) -> bool:
        """Whether the format omits empty texts."""
        return False

    @property
    def contradictions(self) -> Sequence[str]:
        """The names of values that the object lacks, although all objects in its format have them.

        All 408 recorded users with a square picture, and no other users, have the ``verified_type`` "Business"
        (captures 8bf3576c7485, e992000b9ff4).
        """
        return ["verified_type"] if self.shape == "Square" and not self.verified_type else []


def lacking(row: object, names: Sequence[str], at_least: int) -> list[str]:
    """Return the values in a group that an object lacks, if it has at least a number of them. Otherwise return []."""
    missing = [name for name in names if getattr(row, name) is None]
    return missing if len(names) - len(missing) >= at_least else []


class ApiUser(User, tag=("__typename", "User"), nulls=False):
    """A user in the API's responses.

    The values are in two formats. Until 2026-07, the counts, the banner and the website are in ``legacy``. Since
    2026-08, there is no ``legacy``. No other key shows the format, so a value that has moved has both paths.
    """

    id: str | None = filled("rest_id")
    screen_name: str = identity("core.screen_name")
    name: str | None = always("core.name")
    profile_image_url_https: str | None = always("avatar.image_url")
    created_at: str | None = always("core.created_at")
    description: str | None = always("profile_bio.description", "legacy.description")
    location: str | None = always("location.location")
    profile_banner_url: str | None = sometimes("banner.image_url", "legacy.profile_banner_url")
    url: str | None = sometimes("website.url", "legacy.url")
    listed_urls: list[str] = sometimes("profile_bio.entities.url.urls[].url", "legacy.entities.url.urls[].url")
    verified: bool | None = always("verification.verified")
    is_blue_verified: bool | None = filled("is_blue_verified")
    protected: bool | None = always("privacy.protected")
    favourites_count: Number | None = filled("action_counts.favorites_count", "legacy.favourites_count")
    followers_count: Number | None = filled("relationship_counts.followers", "legacy.followers_count")
    friends_count: Number | None = filled("relationship_counts.following", "legacy.friends_count")
    listed_count: Number | None = sometimes("legacy.listed_count")
    media_count: Number | None = filled("tweet_counts.media_tweets", "legacy.media_count")
    statuses_count: Number | None = filled("tweet_counts.tweets", "legacy.statuses_count")

    old_followers: Number | None = sometimes("legacy.followers_count")
    withheld_in: list[Any] | None = sometimes("legacy.withheld_in_countries")
    """Only users in responses until 2026-03 have this key. Without a banner or website, they lack its key, too."""

    @property
    def omits_empty(self) -> bool:
        return self.withheld_in is not None

    @property
    def contradictions(self) -> Sequence[str]:
        """Find missing values that all users in the object's format have.

        All 1,400 recorded users with counts in ``legacy`` have ``listed_count`` there. All 1,864 recorded users without
        ``withheld_in`` have a banner and a website, which may be "" (captures d3ee9f8bd024, e992000b9ff4). 29 users of
        2025-12 and 2026-03 have ``withheld_in``, of whom some lack a banner or a website (capture 791f9ce4911c).
        """
        expected = [] if self.old_followers is None else ["listed_count"]
        expected += [] if self.omits_empty else ["profile_banner_url", "url"]
        return [*super().contradictions, *(name for name in expected if getattr(self, name) is None)]


class UnavailableUser(Contract, tag=("__typename", "UserUnavailable")):
    """The placeholder for a suspended, deleted or protected user."""

    reason: str | None = sometimes("reason", "unavailable_reason")


_ARTICLE_PAGE = re.compile(r"http://(?:x|twitter)\.com/i/article/\d+", re.ASCII)
"""Matches the destination of the link that is the text of an article's post."""
_SHORT_LINK = re.compile(r"https?://t\.co/[A-Za-z0-9]+")

# Parts of a post


class Link(Contract, nulls=False):
    """A link in a post's text."""

    short: str | None = filled("url")
    destination: str | None = often("expanded_url")
    start: int | None = filled("indices[0]")
    """The link's position in the text, in code points."""

    @property
    def contradictions(self) -> Sequence[str]:
        """Find the missing destination of a shortened link.

        Of 672 recorded links, 665 have a destination. The others are in the cut texts of reposts, and end at the "/"
        (captures d3ee9f8bd024, 6f67dc621834).
        """
        if self.destination or self.short is None:
            return ()
        return ["destination"] if _SHORT_LINK.fullmatch(self.short) else ()


class VideoFile(Contract, nulls=False):
    """One of a video's files: the video itself, or a playlist of its segments, which has no bitrate."""

    url: str | None = filled("url")
    mime_type: str | None = filled("content_type")
    bitrate: int | None = sometimes("bitrate", nulls=True)

    @property
    def is_video(self) -> bool:
        """Whether the file is the video itself."""
        return self.mime_type == "video/mp4"


class Media(Contract, nulls=False):
    """A photo, a video or an animation."""

    short: str | None = sometimes("url")
    """The shortened link to the media, at the end of the post's text. None in the web client's payloads."""
    image: str | None = filled("media_url_https")
    """The URL of the photo, or of the video's cover."""
    kind: str | None = filled("type")
    status: str | None = sometimes("ext_media_availability.status")
    files: list[VideoFile] = sometimes("video_info.variants[]", nulls=True)

    @property
    def contradictions(self) -> Sequence[str]:
        """Find missing files of a video or animation: without a file that has a bitrate, ``files`` is missing.

        All 86 recorded videos and animations have such files (capture 8bf3576c7485), and the status "Available".
        According to other projects, videos with another status are withheld.
        """
        if self.kind not in {"video", "animated_gif"} or self.status not in {None, "Available"}:
            return []
        return [] if any(each.is_video and each.bitrate is not None for each in self.files) else ["files"]


class MediaList(Contract, nulls=False):
    """The media of a post. All 710 recorded objects of this kind have media (captures 8bf3576c7485, a19ca69f7529)."""

    media: list[Media] = filled("media[]")


class Note(Contract, nulls=False):
    """The whole text of a long post. The text is not HTML-escaped."""

    text: str = identity("text")
    links: list[Link] = always("entity_set.urls[]")
    hashtags: list[str] = always("entity_set.hashtags[].text")


class Cover(Contract, nulls=False):
    """The picture of an article."""

    url: str | None = filled("media_info.original_img_url")


class Article(Contract, nulls=False):
    """The article that a post consists of."""

    title: str | None = filled("title")
    text: str | None = filled("plain_text", "preview_text")
    cover: Cover | None = sometimes("cover_media")


# Posts


class Withheld(Contract):
    """The placeholder for a post that the platform deleted, hides or restricts."""

    reason: str | None = sometimes("reason")

    @property
    def post(self) -> Withheld:
        return self


class Tombstone(Withheld, tag=("__typename", "TweetTombstone")):
    """A deleted or hidden post."""


class Unavailable(Withheld, tag=("__typename", "TweetUnavailable")):
    """A post that is not shown to visitors without an account."""


class Preview(Withheld, tag=("__typename", "TweetPreviewDisplay")):
    """A post that only subscribers can see."""


class BlurredMedia(Withheld, tag=("__typename", "BlurredMediaTombstone")):
    """A post with media for adults."""


AnyWithheld = Tombstone | Unavailable | Preview | BlurredMedia


class Holder(Contract):
    """An object that contains a post, the placeholder for a withheld post, or another holder."""

    result: Post | Withheld | Holder | None

    @property
    def post(self) -> Post | Withheld | None:
        """The post, or the placeholder. None for a deleted post."""
        return self.result.post if self.result else None


class Post(Contract):
    """A post in any format.

    The values that this class declares with a path have the same path in the API's responses and in the newest web
    client's payloads.
    """

    id: str
    author: User | UnavailableUser
    text: str
    """The text as the platform shows it, HTML-escaped. For a long post, only its beginning."""
    shown_end: int | None
    """The position, in code points, at which the displayed text ends."""
    created_at: str | int | None
    """The platform's date format, or Unix milliseconds."""
    likes: Number | None
    replies: Number | None
    reposts: Number | None
    bookmarks: Number | None
    views: Number | None = sometimes("views.count")
    links: Sequence[Link]
    hashtags: Sequence[str]
    note: Note | None = sometimes("note_tweet.note_tweet_results.result")
    is_expandable: bool | None = sometimes("note_tweet.is_expandable")
    """Whether the platform shows only the beginning of the note. None for a post without a note."""
    article: Article | None = sometimes("article.article_results.result")
    reply_id: str | None
    reply_handle: str | None
    quoted_id: str | None
    """The id of the quoted post, which may be deleted."""
    quoted_result: Holder | Post | None
    """The quoted post, or the object that contains it. The object is empty if the post was deleted."""
    reposted_result: Holder | Post | None
    """The reposted post, or the object that contains it."""

    @property
    def post(self) -> Post:
        return self

    @property
    def media(self) -> Sequence[Media]:
        """The photos, videos and animations of the post."""
        raise NotImplementedError

    @property
    def contradictions(self) -> Sequence[str]:
        """The names of values that are missing although other values of the object show that they exist.

        All 95 recorded posts with a value for ``is_expandable`` have a note. All 16 recorded posts whose text is only a
        link to an article contain the article (captures 8bf3576c7485, d8fcad0db39f). A response contains articles only
        if the query has the flag for them, which is in the data file: a response of 2024-04, when clients did not send
        the flag, lacks the article of such a post (capture 1b79172838f5).
        """
        lacks_note = self.is_expandable is not None and self.note is None
        return [*(["note"] if lacks_note else []), *(["article"] if self._lacks_article else [])]

    @property
    def _lacks_article(self) -> bool:
        link = self.links[0] if len(self.links) == 1 else None
        if link is None or self.article is not None or link.short != self.text.strip():
            return False
        return _ARTICLE_PAGE.fullmatch(link.destination or "") is not None


class ApiPost(Post):
    """A post in the API's responses."""

    id: str = identity("rest_id")
    author: ApiUser | UnavailableUser = identity("core.user_results.result")
    text: str = identity("legacy.full_text")
    shown_end: int | None = filled("legacy.display_text_range[1]")
    created_at: str | None = filled("legacy.created_at")
    likes: Number | None = filled("legacy.favorite_count")
    replies: Number | None = filled("legacy.reply_count")
    reposts: Number | None = filled("legacy.retweet_count")
    bookmarks: Number | None = sometimes("legacy.bookmark_count", nulls=False)
    is_bookmarked: bool | None = sometimes("legacy.bookmarked", nulls=False)
    views_state: str | None = filled("views.state")
    links: list[Link] = sometimes("legacy.entities.urls[]")
    hashtags: list[str] = sometimes("legacy.entities.hashtags[].text")
    media_list: MediaList | None = sometimes("legacy.extended_entities")
    first_media: str | None = sometimes("legacy.entities.media[0].id_str")
    note: Note | None = sometimes("note_tweet.note_tweet_results.result", nulls=False)
    article: Article | None = sometimes("article.article_results.result", nulls=False)
    conversation_id: str | None = filled("legacy.conversation_id_str")
    reply_id: str | None = sometimes("legacy.in_reply_to_status_id_str")
    reply_handle: str | None = sometimes("legacy.in_reply_to_screen_name")
    reply_user_id: str | None = sometimes("legacy.in_reply_to_user_id_str")
    quoted_id: str | None = sometimes("legacy.quoted_status_id_str")
    marked_as_quote: bool | None = filled("legacy.is_quote_status")
    quoted_result: PostResult | None = sometimes("quoted_status_result", "quotedPostResults")
    inner_quoted_id: str | None = sometimes("quotedRefResult.result.rest_id", nulls=False)
    """The id of the post that a quoted or reposted post quotes. Such a post has this id in place of the post."""
    reposted_result: PostResult | None = sometimes(
        "legacy.retweeted_status_result", "legacy.repostedStatusResults", "repostedStatusResults"
    )

    @property
    def media(self) -> Sequence[Media]:
        return self.media_list.media if self.media_list else ()

    @property
    def contradictions(self) -> Sequence[str]:
        """Find values that are missing although other values show that they exist. The 2,400 recorded posts lack none.

        ``views.state`` is "EnabledWithCount" in the 2,140 posts with a count, and "Enabled" in the other posts. The
        posts since 2023-07 have both ``bookmarked`` and the number of bookmarks, the earlier posts neither. In the 352
        replies, the conversation's id is that of another post. All posts have either both or neither of the handle and
        the id of the user that they reply to. The posts that are marked as quotes and are not reposts have the quoted
        post's id. The 427 posts with such an id that are not reposts have the quoted post's object (369), or are quoted
        or reposted themselves and have its id once more (58). 710 posts have both lists of media (``media_list`` and
        the list that ``first_media`` is from), and no post has only one of them.
        """
        names = list(super().contradictions)
        if self.views is None and self.views_state == "EnabledWithCount":
            names.append("views")
        if self.bookmarks is None and self.is_bookmarked is not None:
            names.append("bookmarks")
        if self.reply_id is None and self.conversation_id not in {self.id, None}:
            names.append("reply_id")
        if self.reply_handle is None and self.reply_user_id is not None:
            names.append("reply_handle")
        if self.quoted_id is None and self.marked_as_quote is True and self.reposted_result is None:
            names.append("quoted_id")
        has_quoted = self.quoted_result is not None or self.inner_quoted_id is not None
        if self.quoted_id is not None and self.reposted_result is None and not has_quoted:
            names.append("quoted_result")
        if self.first_media is not None and self.media_list is None:
            names.append("media_list")
        return names


class Tweet(ApiPost, tag=("__typename", "Tweet")):
    """A post in the API's responses whose object states the type ``Tweet``."""


class LimitedTweet(Holder, tag=("__typename", "TweetWithVisibilityResults")):
    """A post whose replies are limited, or that is shown with a notice."""

    result: ApiPost = identity("tweet")


AnyPost = Tweet | LimitedTweet | AnyWithheld


class PostResult(Holder, one_of=True):
    """The object that contains a quoted or reposted post. The object is empty if the post was deleted."""

    result: AnyPost | None = sometimes("result")


# Timelines


class Advert(Contract):
    """Marks an advertisement."""


class PostItem(Holder, tag=("itemType", "TimelineTweet")):
    """A post in a timeline. All 1,516 recorded items of this kind have a result."""

    result: AnyPost = identity("tweet_results.result")
    advert: Advert | None = sometimes("promotedMetadata")


class TombstoneItem(Contract, tag=("itemType", "TimelineTombstone")):
    """The placeholder for a post that is hidden, as other projects describe it."""


class CursorItem(Contract, tag=("itemType", "TimelineTimelineCursor")):
    """A link to more posts of a conversation."""


class UserItem(Contract, tag=("itemType", "TimelineUser")):
    """A recommended user."""


class ListItem(Contract, tag=("itemType", "TimelineTwitterList")):
    """A recommended list."""


class CommunityItem(Contract, tag=("itemType", "TimelineCommunity")):
    """A recommended community."""


class PromptItem(Contract, tag=("itemType", "TimelinePrompt")):
    """A question to the visitor."""


class MessageItem(Contract, tag=("itemType", "TimelineMessagePrompt")):
    """A message to the visitor."""


AnyItem = PostItem | TombstoneItem | CursorItem | UserItem | ListItem | CommunityItem | PromptItem | MessageItem


class ModuleItem(Contract):
    """An item in a module."""

    content: AnyItem = identity("item.itemContent")


class Item(Contract, tag=("entryType", "TimelineTimelineItem")):
    """An entry with one item."""

    content: AnyItem = identity("itemContent")


class Module(Contract, tag=("entryType", "TimelineTimelineModule"), nulls=False):
    """An entry with several items, such as a conversation."""

    items: list[ModuleItem] = filled("items[]")


class Cursor(Contract, tag=("entryType", "TimelineTimelineCursor"), nulls=False):
    """An entry with a cursor."""

    kind: str | None = filled("cursorType")
    value: str | None = filled("value")


class Entry(Contract):
    """An entry of a timeline."""

    id: str = identity("entryId")
    content: Item | Module | Cursor = identity("content")


class Instruction(Contract, nulls=False):
    """A change to a timeline, such as new entries."""

    kind: str = identity("type")
    entries: list[Entry] = sometimes("entries[]")
    entry: Entry | None = sometimes("entry")
    module_items: list[ModuleItem] = sometimes("moduleItems[]", nulls=True)
    module_id: str | None = sometimes("moduleEntryId", nulls=True)
    direction: str | None = sometimes("direction")


# Responses


class UserResponse(Contract, nulls=False):
    """The response to the query for a user."""

    user: ApiUser | UnavailableUser | None = sometimes("data.user.result")


class TimelineResponse(Contract, nulls=False):
    """The response to the query for a user's posts."""

    kind: str | None = sometimes("data.user.result.__typename")
    reason: str | None = sometimes("data.user.result.reason", "data.user.result.unavailable_reason", nulls=True)
    instructions: list[Instruction] = sometimes("data.user.result.timeline.timeline.instructions[]")


VIEWS_SINCE = 1_672_531_200_000
"""The time, in Unix milliseconds, from which on posts have a number of views: the start of 2023. The platform counts
views since 2022-12-15."""
LIKED = 10
"""The number of likes from which on a post has a number of views, too."""
COUNTS = ("likes", "replies", "reposts")


class WebUser(User):
    """A user. The user object of a post's author has fewer values than that of the profile's owner."""

    groups: ClassVar[tuple[tuple[Sequence[str], int], ...]] = (
        (("id", "screen_name", "name", "profile_image_url_https"), 2),
        (("followers_count", "friends_count", "statuses_count", "is_blue_verified"), 2),
        (("created_at", "description"), 1),
        (("created_at", "verified", "protected", "is_blue_verified"), 3),
    )
    """Groups of values: a user with at least this number of the values of a group has all of them.

    All 22 recorded users have the first group, 9 the second, 2 each the third and the last (captures 8fb2f652431b,
    923018083c6f, 15e277c749c3, 968d30337932, 591342db3cda).
    """

    @property
    def contradictions(self) -> Sequence[str]:
        """Find values that the object lacks although it has other values of the same group."""
        missing = (name for names, at_least in self.groups for name in lacking(self, names, at_least))
        return list(dict.fromkeys([*super().contradictions, *missing]))


class WebAuthor(WebUser, tag=("__typename", "User")):
    """The author of a post."""

    id: str | None = always("rest_id")
    screen_name: str = identity("core.screen_name")
    name: str | None = always("core.name")
    profile_image_url_https: str | None = always("avatar.image_url")


class WebPost(Post):
    """A post in the web client's payloads."""

    id: str = identity("rest_id")
    author: WebAuthor | UnavailableUser = identity("core.user_results.result")
    text: str = identity("details.full_text")
    shown_end: int | None = sometimes("details.display_text_range[1]")
    created_at: int | str | None = sometimes("details.created_at_ms")
    likes: Number | None = sometimes("counts.favorite_count")
    replies: Number | None = sometimes("counts.reply_count")
    reposts: Number | None = sometimes("counts.retweet_count")
    bookmarks: Number | None = sometimes("counts.bookmark_count")
    links: list[Link] = sometimes("url_entities[]")
    hashtags: list[str] = sometimes("details.hashtag_entities[].text")
    media: list[Media] = sometimes("media_entities2[]")
    reply_id: str | None = sometimes("reply_to_results.rest_id", "reply_to_results.result.rest_id")
    reply_handle: str | None = sometimes("reply_to_user_results.result.core.screen_name")
    quoted_result: WebResult | None = sometimes("quoted_tweet_results")
    reposted_result: WebResult | None = sometimes("legacy.retweeted_status_results")

    quoted_id = None

    @property
    def contradictions(self) -> Sequence[str]:
        """Find counts that the post lacks, although it is not a repost.

        All recorded posts of the web client have these counts (captures 15e277c749c3, 968d30337932). No repost is among
        these posts. In the API's responses, the 14 posts without a number of views that are not older than
        ``VIEWS_SINCE``, and that are not reposts, are less than a minute old and have one like at most (captures
        48ec5e95298c, 668a075bde88). 1,773 such posts have the number.
        """
        if self.reposted_result is not None:
            return super().contradictions
        missing = [name for name in COUNTS if getattr(self, name) is None]
        is_new = isinstance(self.created_at, int) and self.created_at >= VIEWS_SINCE
        is_liked = isinstance(self.likes, int) and self.likes >= LIKED
        return [*super().contradictions, *missing, *(["views"] if is_new and is_liked and self.views is None else [])]


class WebTweet(WebPost, tag=("__typename", "Tweet")):
    """A post in the web client's payloads whose object states the type ``Tweet``."""


class LimitedWebTweet(Holder, tag=("__typename", "TweetWithVisibilityResults")):
    """A post with limits on replies, or with a notice."""

    result: WebPost = identity("tweet")


AnyWebPost = WebTweet | LimitedWebTweet | AnyWithheld


class WebResult(Holder, one_of=True):
    """The object that contains a quoted or reposted post. Its ``result`` is null if the post was deleted."""

    result: AnyWebPost | None = sometimes("result")


class WebPostItem(Holder, tag=("__typename", "TimelineTweet")):
    """A post in a timeline."""

    result: AnyWebPost = identity("tweet_results.result")
    advert: Advert | None = sometimes("promoted_metadata")


class WebTombstoneItem(Contract, tag=("__typename", "TimelineTombstone")):
    """The placeholder for a post that is hidden."""


class WebUserItem(Contract, tag=("__typename", "TimelineUser")):
    """A recommended user."""


class WebItem(Contract, tag=("__typename", "TimelineTimelineItem")):
    """An entry with one item."""

    content: WebPostItem | WebTombstoneItem | WebUserItem = identity("content")


class WebCursor(Contract, tag=("__typename", "TimelineTimelineCursor")):
    """An entry with a cursor."""

    kind: str | None = sometimes("cursor_type")
    value: str | None = sometimes("value")


class WebEntry(Contract):
    """An entry of a timeline."""

    id: str = identity("entry_id")
    content: WebItem | WebCursor = identity("content")


class WebInstruction(Contract):
    """A change to a timeline, such as new entries."""

    kind: str = identity("__typename")
    entries: list[WebEntry] = sometimes("entries[]")
    entry: WebEntry | None = sometimes("entry")
    direction: str | None = sometimes("direction")


class WebProfile(WebUser, tag=("__typename", "User")):
    """A user with a timeline. In some responses, this object contains only the timeline."""

    groups: ClassVar = (
        *WebUser.groups,
        (("created_at", "description", "location"), 2),
        (("favourites_count", "media_count"), 1),
    )
    """The response to an older client's query for a user has these groups, too (capture 8fb2f652431b), and so have all
    users in the API's responses, where an empty text is a value."""

    instructions: list[WebInstruction] = sometimes(
        "profile_timeline_v2.timeline.instructions[]",
        "profile_user_originals_timeline.timeline.instructions[]",
    )


class WebResponse(Contract):
    """The response to the web client's query for a user, with or without posts.

    The response to an older client's query for a user has the same values (capture 8fb2f652431b).
    """

    profile: WebProfile | UnavailableUser | None = sometimes(
        "data.user_result_by_screen_name.result", "data.user_results.result"
    )


# The data in a page


class WebTimeline(Contract):
    """A profile's timeline in a page."""

    instructions: list[WebInstruction] = always("instructions[]")


class WebUsers(Contract):
    """The users in a page."""

    users: list[WebUser] = always("users[]")
