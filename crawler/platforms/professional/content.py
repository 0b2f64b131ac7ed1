"""Professional network: the page object that reads a member's page as a content envelope (specification 2.4)."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

import attrs
from web_poet import field

from crawler.platforms.model import empty
from crawler.platforms.page import PlatformPage, missing_error
from crawler.platforms.professional import posts
from crawler.platforms.professional.pages import ProfilePage
from crawler.platforms.professional.schema import MemberProfile
from crawler.reading.contract import Unread

Row = dict[str, Any]


@attrs.define(slots=False)
class ContentPage(PlatformPage):
    """A member's profile page, as a profile with content items. ``page_params`` has ``slug``: the requested name.

    ``ProfilePage`` validates the page, and reads the parts that this envelope and the flat profile have in common.
    """

    source: ClassVar[str] = ProfilePage.source

    @classmethod
    def recognise(cls, body: str) -> bool:
        return ProfilePage.recognise(body)

    def validate_input(self) -> None:
        """Raise an error unless the response is a member's profile, and a link of its articles or posts can be read.

        Unknown tabs of posts, and a shown number of followers that is shortened in another language than English, are
        added to ``unread``.

        Raises:
            ScrapeError: ``ProfilePage`` raised this error.
            ExtractionFailed: the page has articles or posts, but none of them has a link that identifies it.
        """
        _ = self._member.fullName  # reading a field validates the page
        self.unread += self._member.unread
        unidentified = sum(not post["content_id"] for post in self._posts)
        if self._posts and unidentified == len(self._posts):
            raise missing_error(
                "No link of an article or post could be read.", ["posts[].content_link"], reason="blind"
            )
        if unidentified:
            self.unread.append(Unread("posts[].content_id", "unknown", unidentified, len(self._posts), loses_rows=True))
        tabs = [card["kind"] for card in self._member.activity_cards if "kind" in card]
        unknown = sum(kind not in posts.TABS for kind in tabs)
        if unknown:
            self.unread.append(Unread("posts[].content_type", "unknown", unknown, len(tabs)))
        if self._member.shown_followers and self._member.follower_count is None:
            self.unread.append(Unread("profile.follower_count", "unknown"))

    @field
    def pagination(self) -> Row:
        return {"cursor": "", "has_more": False}  # the page already contains all content that visitors can see

    @field
    def posts(self) -> list[Row]:
        return [post for post in self._posts if post["content_id"]]

    @field
    def profile(self) -> Row:
        member = self._member
        return {
            **empty(MemberProfile),
            "banner_image": member.background_cover_image_url,
            "biography": member.about,
            "display_name": member.fullName,
            "external_links": [row["url"] for row in member.websites],
            "follower_count": member.follower_count,
            "location": member.location,
            "profile_image": member.profile_photo,
            "profile_link": member.profile_url,
            "subscriber_count_text": member.shown_followers,
            "username": member.public_identifier,
        }

    @cached_property
    def _member(self) -> ProfilePage:
        page = ProfilePage(response=self.response, page_params=self.page_params)
        page.payloads = self.payloads
        return page

    @cached_property
    def _posts(self) -> list[Row]:
        """The items of the articles and of the activity, also those whose link has no id."""
        member = self._member
        own = {"author": member.fullName, "author_username": member.public_identifier}
        articles = posts.articles(member.article_cells, member.linked.articles, own)
        activity = (
            member.activity_cards if "activity" in member.cells else posts.linked_activity(member.linked.postings)
        )
        return [posts.item(card) for card in [*articles, *activity]]
