"""Professional network: the models of a member's content envelope (specification 2.4).

The specification names the scraper, but does not define its record. This definition is the project's own.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from crawler.platforms import content
from crawler.platforms.model import Model

ContentType = Literal["article", "post", "like", "share"]


class MemberItem(content.ContentItem):
    """An article by the member, or a post from the member's activity.

    The following are always null or empty, because the page does not show them: the author's id, hashtags, mentions,
    slideshows, videos and their lengths, preview images, numbers of views.
    """

    author_id: str | None
    """Always null: not exposed."""
    author_name: str
    """Name of the author. "" for another person's post in the layout with a list, which does not name its author."""
    author_username: str
    """The author's name in URLs, after ``/in/``, or after ``/company/`` for a company. In the layout with a list, it is
    the name in the post's link. "" if the link has none."""
    caption: str
    """The article's title, or the post's text, which may be shortened with "…" in the layout with a list."""
    comment_count: int | None
    """Number of comments. Null if the page does not show it, as in the layout with a list."""
    content_code: str = Field(min_length=1)
    """The same as ``content_id``. Never empty."""
    content_id: str = Field(min_length=1)
    """Id of the activity, or the last part of the article's URL. Never empty."""
    content_link: str = Field(min_length=1)
    """URL of the article or post. Never empty."""
    content_type: ContentType
    """``article``; or what the member did: ``post``, ``like`` or ``share``. It is determined from the tab and the
    author of the post, not from the words on the card. Never empty."""
    images: list[str]
    """URL of the card's image; empty if the card has none, or only a placeholder."""
    like_count: int | None
    """Number of reactions of all kinds. Null if neither the card nor the linked data contains it."""
    published_date: int | None
    """Time of publication in Unix seconds: from the linked data, or from the id of a post; midnight UTC if only the day
    of an article is known. Null if none of these times is known."""


class MemberProfile(Model):
    """The member.

    The following are always null or empty, because the page does not show them: the date of the account's creation, the
    countries in which the profile is available, the number of items, keywords, the number of views, family safety,
    privacy and verification.
    """

    account_creation_date: int | None
    """Time of the account's creation in Unix seconds, null if unknown."""
    account_creation_date_text: str
    """The day of ``account_creation_date`` as YYYY-MM-DD, "" if unknown."""
    available_country_codes: list[str]
    """ISO 3166 codes of the countries in which the profile is available; empty if unknown."""
    banner_image: str
    """URL of the cover image, "" for the platform's default."""
    biography: str
    """The member's own text, with line breaks. May be shortened in the masked variant of the page. "" if absent."""
    content_count: int | None
    """Number of content items, null if unknown."""
    display_name: str = Field(min_length=1)
    """The displayed name. Never empty."""
    external_links: list[str]
    """URLs of the websites at the top of the profile, without the platform's redirect."""
    follower_count: int | None
    """Number of followers: exact if the linked data contains it, else rounded as the page shows it. Null if hidden."""
    is_family_safe: bool | None
    """Whether the platform marks the profile as safe for families, null if unknown."""
    keywords: str
    """The profile's keywords, "" if unknown."""
    location: str
    """The member's location as text, "" if not shown."""
    privacy_status: str
    """Who can see the profile, "" if unknown."""
    profile_id: str
    """Always "": not exposed."""
    profile_image: str
    """URL of the photo, "" if absent."""
    profile_link: str = Field(min_length=1)
    """Canonical URL of the profile. Never empty."""
    subscriber_count_text: str
    """The page's text with the number of followers ("41M followers"), "" if the page does not show it."""
    total_views: int | None
    """Number of views of all items, null if unknown."""
    username: str = Field(min_length=1)
    """The name at the end of ``profile_link``, decoded. It differs from the requested name if the member changed it.
    Never empty."""
    verification_status: bool | None
    """Whether the platform has verified the profile, null if unknown."""


class MemberContent(Model):
    """A member with articles and recent activity."""

    pagination: content.Pagination
    """Always ``{"cursor": "", "has_more": false}``: the page shows one page of content."""
    posts: list[MemberItem]
    """The articles, then the activity, each in page order."""
    profile: MemberProfile
    """The member."""
