"""Professional network: the page object for a member's profile, complete or masked."""

from __future__ import annotations

import re
import unicodedata
from functools import cached_property
from typing import Any, ClassVar
from urllib.parse import urlsplit

import attrs
from web_poet import field

from crawler.errors import ExtractionFailed
from crawler.platforms.page import PlatformPage, mismatch_error, missing_error
from crawler.platforms.professional import blocks, history, lists, sections
from crawler.platforms.professional.availability import availability
from crawler.platforms.professional.country import country_of_host, country_of_location
from crawler.platforms.professional.head import HEAD, Head
from crawler.platforms.professional.language import is_english, is_followers
from crawler.platforms.professional.markup import (
    clean_url,
    collapsed,
    last_segment,
    line,
    lines,
    picture,
    plain,
)
from crawler.reading.json import dicts, dig, linked_data
from crawler.reading.markup import Node, indexed, indexed_text
from crawler.reading.values import count, stated_count, text

NAME = f"h1.{blocks.HEADING}"
CANONICAL = 'link[rel="canonical"]'
WHOLE_PAGE = 'meta[name="pageKey"]'
"""Selects an element that the platform's pages have, but not saved parts of pages."""
_CONTAINER = "section.core-section-container"

_ELLIPSIS = ("…", "...")

Row = dict[str, Any]


@attrs.define(slots=False)
class ProfilePage(PlatformPage):
    """A member's profile page. ``page_params`` has ``slug``: the requested name.

    Most data is read from the page's sections. The country, and lists that have no section, are read from linked data.
    """

    source: ClassVar[str] = "profile"

    @classmethod
    def recognise(cls, body: str) -> bool:
        return any(mark in body for mark in (*blocks.PROFILE_MARKS, *blocks.NOT_FOUND_MARKS)) or blocks.is_block(body)

    def validate_input(self) -> None:
        """Raise an error unless the response is a member's profile.

        Raises:
            UpstreamBlocked: the response has status 999, or is a login wall, a challenge or the home page for guests.
            TargetNotFound: the profile does not exist or is private, or the page is not a profile.
            ExtractionFailed: the page has no profile, has two members' data, or has a list in which no row can be read.
        """
        blocks.raise_for_blocks(self.response)
        self.raise_for_failures()
        blocks.raise_for_not_found(self.response)
        self._raise_for_pages_without_profile()
        self._raise_for_other_members()
        self._raise_if_unrecognised()

    # Fields: specification 2.6

    @field
    def about(self) -> str:
        return self._about[0]

    @field
    def about_truncated(self) -> bool:
        return self._about[1]

    @field
    def activity(self) -> list[Row]:
        return self._lists["activity"]

    @field
    def activity_count(self) -> int:
        return len(self._lists["activity"])

    @field
    def articles(self) -> list[Row]:
        return self._lists["articles"]

    @field
    def awards(self) -> list[Row]:
        return self._lists["awards"]

    @field
    def certifications(self) -> list[Row]:
        return self._lists["certifications"]

    @field
    def courses(self) -> list[Row]:
        return self._lists["courses"]

    @field
    def languages(self) -> list[Row]:
        return self._lists["languages"]

    @field
    def organizations(self) -> list[Row]:
        return self._lists["organizations"]

    @field
    def projects(self) -> list[Row]:
        return self._lists["projects"]

    @field
    def publications(self) -> list[Row]:
        return self._lists["publications"]

    @field
    def recommendations(self) -> list[Row]:
        return self._lists["recommendations"]

    @field
    def same_name(self) -> list[Row]:
        return sections.same_name(self._page)

    @field
    def services(self) -> list[str]:
        return []  # no public page has such a section

    @field
    def skills(self) -> list[str]:
        return self._lists["skills"]

    @field
    def volunteer_experience(self) -> list[Row]:
        return self._lists["volunteer_experience"]

    @field
    def background_cover_image_url(self) -> str:
        return self._head.cover

    @field
    def connections(self) -> str:
        return self._head.connections

    @field
    def contact_info(self) -> dict[str, str]:
        return {}  # the button for it opens the sign-in window

    @field
    def country(self) -> str:
        country = plain(dig(self._person, "address", "addressCountry"))
        if re.fullmatch(r"[A-Z]{2}", country):
            return country
        host = urlsplit(self._profile_url).netloc
        return country_of_location(country) or country_of_host(host) or country_of_location(self._location)

    @field
    def current_company(self) -> Row:
        return self._head.affiliation("currentPositionsDetails")

    @field
    def current_school(self) -> Row:
        return self._head.affiliation("educationsDetails")

    @field
    def data_availability(self) -> Row:
        about, truncated = self._about
        return availability(
            {**self._lists, "about": about, "about_truncated": truncated, "headline": self._head.headline},
            masked=self._masked,
            source="public_profile_page" if self._page.has(NAME) else "json_ld",
            locale=self._locale,
        )

    @field
    def education(self) -> list[Row]:
        return self._lists["education"]

    @field
    def experience(self) -> list[Row]:
        return self._lists["experience"]

    @field
    def firstName(self) -> str:  # noqa: N802  # the contract's name
        return self._meta("profile:first_name") or self._name.partition(" ")[0]

    @field
    def lastName(self) -> str:  # noqa: N802  # the contract's name
        return self._meta("profile:last_name") or self._name.removeprefix(text(self.firstName)).strip()

    @field
    def fullName(self) -> str:  # noqa: N802  # the contract's name
        return self._name

    @field
    def followers(self) -> str:
        exact = self._linked_followers
        return self.shown_followers or (f"{exact} followers" if exact else "")

    @field
    def headline(self) -> str:
        return self._head.headline

    @field
    def location(self) -> str:
        return self._location

    @field
    def people_also_viewed(self) -> list[Row]:
        return self._lists["people_also_viewed"]

    @field
    def profile_photo(self) -> str:
        linked = picture(dig(self._person, "image", "contentUrl"))
        return self._head.photo or picture(self._meta("og:image")) or linked or ""

    @field
    def profile_url(self) -> str:
        return self._profile_url

    @field
    def public_identifier(self) -> str:
        return last_segment(self._profile_url, "in")

    @field
    def success(self) -> bool:
        return True

    @field
    def total_experiences(self) -> int:
        return len(self._lists["experience"])

    @field
    def websites(self) -> list[Row]:
        return sections.websites(self._page)

    # The parts that other page objects of this page read, too

    @property
    def parsed(self) -> tuple[Node, list[Row]]:
        """The page, and the nodes in its linked data."""
        return self._page, self._nodes

    @property
    def shown_followers(self) -> str:
        """The number of followers in the page's words, "" if the page does not show it."""
        above_posts = line(self._page, 'section[data-section="posts"] > h3')
        return self._head.followers or (above_posts if is_followers(above_posts) else "")

    @property
    def follower_count(self) -> int | None:
        """The exact number of followers in the linked data, else the rounded number that the page shows."""
        exact = self._linked_followers
        return stated_count(self.shown_followers, "followers?") if exact is None else exact

    # The two sources

    @property
    def _is_linked_data_only(self) -> bool:
        """Whether the response is linked data that was saved without its page."""
        is_markup = self.response.body[:100].lstrip().startswith(b"<")  # without decoding the page
        return not is_markup and bool(self.response.text.lstrip().startswith(("{", "[")))

    @cached_property
    def _page(self) -> Node:
        return indexed_text("") if self._is_linked_data_only else indexed(self.response)

    @cached_property
    def _head(self) -> Head:
        return Head(self._page)

    @cached_property
    def _nodes(self) -> list[Row]:
        """The nodes in the page's linked data, or [] if it is missing or broken."""
        if self._is_linked_data_only:
            return linked_data([self.response.text])
        return linked_data(script.text for script in self._page.css('script[type="application/ld+json"]'))

    @cached_property
    def _person(self) -> Row:
        """The member's node in the linked data, or {} if there is none."""
        return next((node for node in self._nodes if node.get("@type") == "Person" and text(node.get("name"))), {})

    def _typed(self, kind: str) -> list[Row]:
        return [node for node in self._nodes if node.get("@type") == kind]

    # Parts that several fields use

    @cached_property
    def _shown(self) -> dict[str, list[Any]]:
        """The lists from the page's sections, by field name."""
        top_card = self._head.affiliation("currentPositionsDetails")
        return lists.shown_lists(self._page, self._typed("DiscussionForumPosting"), top_card)

    @cached_property
    def _lists(self) -> dict[str, list[Any]]:
        """All lists in the profile, by field name. Linked data replaces only lists that the page does not have."""
        return self._shown | {name: self._linked[name] for name in self._absent}

    @cached_property
    def _linked(self) -> dict[str, list[Any]]:
        """The lists from the page's linked data, by field name."""
        return lists.linked_lists(self._person, self._typed("Article"))

    @property
    def _absent(self) -> set[str]:
        """Names of the lists that no section of the page has. They are taken from the linked data."""
        return {name for name in self._linked if not self._shown[name] and not lists.has_rows(self._page, name)}

    @property
    def _linked_followers(self) -> int | None:
        """The exact number of followers in the linked data, which has one statistic or a list of statistics."""
        statistics = self._person.get("interactionStatistic")
        several = (each for each in dicts(statistics) if "FollowAction" in str(each.get("interactionType")))
        return count(dig(next(several, statistics), "userInteractionCount"))

    @cached_property
    def _name(self) -> str:
        # The heading is inside a button, and ``line`` skips the text in buttons.
        heading = self._page.first(NAME)
        return (collapsed(heading.text) if heading else "") or plain(self._person.get("name"))

    @cached_property
    def _location(self) -> str:
        return self._head.location or plain(dig(self._person, "address", "addressLocality"))

    @cached_property
    def _profile_url(self) -> str:
        return next((url for url in map(clean_url, self._stated_urls) if last_segment(url, "in")), "")

    @property
    def _stated_urls(self) -> tuple[object, ...]:
        """The profile's URL in the three places where the page and the linked data have it."""
        canonical = self._page.first(CANONICAL)
        return canonical.get("href") if canonical else None, self._meta("og:url"), self._person.get("url")

    @cached_property
    def _about(self) -> tuple[str, bool]:
        """The text about the member, and whether it is cut. A text from the page's meta description counts as cut."""
        found = self._page.css('section[data-section="summary"] .core-section-container__content p')
        about = "\n".join(filter(None, map(lines, found)))
        if about:
            return about, self._masked and about.endswith(_ELLIPSIS)
        about = plain(self._person.get("description"))
        if about:
            return about, about.endswith(_ELLIPSIS)
        # A description begins with the headline. If the headline was not found, it would be taken for the text.
        is_readable = bool(self._page.has(NAME) and (self._head.headline or self._masked)) and is_english(self._locale)
        about = sections.described(self._meta("og:description"), self._head.headline) if is_readable else ""
        return about, bool(about)

    @property
    def _locale(self) -> str:
        """The page's language and country, such as "en_US"."""
        return self._meta("locale")

    @cached_property
    def _masked(self) -> bool:
        """Whether the platform served the masked variant of the page."""
        rows = self._lists["experience"] + self._lists["education"]
        return self._page.has(history.MASKED_BLOCK) or any(row["masked"] for row in rows)

    def _meta(self, name: str) -> str:
        found = self._page.first(f'meta[property="{name}"], meta[name="{name}"]')
        return collapsed(text(found.get("content"))) if found else ""

    # Validation

    def _raise_for_pages_without_profile(self) -> None:
        if self._name and self._profile_url:
            return
        blocks.raise_for_other_pages(self.response)
        raise missing_error("The page has no profile.", [CANONICAL if self._name else NAME], reason="no_profile")

    def _raise_for_other_members(self) -> None:
        """Raise an error if the page is another member's, or names several members.

        Another name than the requested one is accepted only after a redirect to it: the member has changed the name.
        """
        names = {_comparable(last_segment(clean_url(url), "in")) for url in self._stated_urls} - {""}
        if len(names) > 1:
            raise ExtractionFailed(
                f"The page names several members: {', '.join(sorted(names))}.",
                details=[{"loc": [CANONICAL], "msg": "Input should name a single member", "type": "value_error"}],
                reason="wrong_echo",
            )
        requested = _comparable(text(self.page_params.get("slug")))
        expected = {requested, _comparable(last_segment(str(self.response.url), "in"))} - {""}
        if requested and not names & expected:
            message = f"The page is the profile of {', '.join(names)}, not of {requested}."
            raise mismatch_error(message, [CANONICAL], requested)

    def _raise_if_unrecognised(self) -> None:
        """Raise an error if the structure of the top section, of all positions or of all schools is unknown.

        If the structure of single rows or of another part is unknown, add an error to ``skipped``.
        """
        unknown = []
        if self._page.has(WHOLE_PAGE):
            unknown += [css for css in (NAME, HEAD) if not self._page.has(css)]
        containers = [each for each in self._page.css(_CONTAINER) if "bottom-cta-banner" not in each.classes]
        if containers and not self._page.has(f"{_CONTAINER}[data-section], {history.MASKED_BLOCK}"):
            unknown.append(f"{_CONTAINER}[data-section]")
        if self._page.has(".experience-education__list, .blurred-list") and not self._page.has(history.MASKED_BLOCK):
            unknown.append(history.MASKED_BLOCK)
        linked = lists.unread_linked_rows(self._person, self._linked, self._absent)
        for unread in [*lists.unread_rows(self._page, self._shown), *linked]:
            if unread.is_whole and unread.list_name in lists.HISTORY:
                unknown.append(unread.section)
            else:
                message = f"{unread.number} rows of {unread.list_name} could not be read."
                self.skip(missing_error(message, [unread.section], reason="blind"))
        if unknown:
            selectors = [[css] for css in unknown]
            raise missing_error("These parts could not be read: the layout changed.", *selectors, reason="blind")
        if self._head.unknown_counts:
            message = "The page's language is unknown: followers and connections cannot be told apart."
            self.skip(missing_error(message, ["followers"], ["connections"], reason="unknown_language"))


def _comparable(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()
