"""Microblog: the contracts of the newest web client's payloads: its API responses, and the data in its pages.

The recorded pages are an excerpt of a page (capture 15e277c749c3), and two pages with real structure but other values
(captures 968d30337932, 591342db3cda). These pages do not show which values are in every post, so all values of posts
except the identities are ``sometimes``. Links, media, notes and articles have the same keys as in the API's responses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from crawler.platforms.microblog.payload import (
    Advert,
    AnyWithheld,
    Holder,
    Link,
    Media,
    Number,
    Post,
    UnavailableUser,
    User,
    Withheld,
    lacking,
)
from crawler.reading.contract import Contract, always, identity, sometimes

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


class LimitedWebTweet(Contract, tag=("__typename", "TweetWithVisibilityResults")):
    """A post with limits on replies, or with a notice."""

    post: WebPost = identity("tweet")


AnyWebPost = WebTweet | LimitedWebTweet | AnyWithheld


class WebResult(Holder, one_of=True):
    """The object that contains a quoted or reposted post. Its ``result`` is null if the post was deleted."""

    result: AnyWebPost | None = sometimes("result")

    @property
    def post(self) -> Post | Withheld | None:
        return self.result.post if isinstance(self.result, LimitedWebTweet) else self.result


class WebPostItem(Contract, tag=("__typename", "TimelineTweet")):
    """A post in a timeline."""

    result: AnyWebPost = identity("tweet_results.result")
    advert: Advert | None = sometimes("promoted_metadata")

    @property
    def post(self) -> Post | Withheld:
        """The post, or its placeholder."""
        return self.result.post if isinstance(self.result, LimitedWebTweet) else self.result


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
