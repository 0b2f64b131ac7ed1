"""Professional network: a member's profile page, in full or masked, and what is served in its place."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any, ClassVar
from urllib.parse import urlsplit

import attrs
from parsel import Selector
from web_poet import field

from crawler.errors import ExtractionFailed
from crawler.platforms.page import PlatformPage, missing
from crawler.platforms.professional import blocks as gate
from crawler.platforms.professional import history, sections
from crawler.platforms.professional.availability import availability
from crawler.platforms.professional.country import country_of_host, country_of_location
from crawler.platforms.professional.markup import (
    clean_url,
    collapsed,
    image,
    last_segment,
    line,
    lines,
    link,
    picture,
    plain,
)
from crawler.reading.json import dicts, dig, linked_data
from crawler.reading.values import count, text

NAME = f"h1.{gate.HEADING}"
CANONICAL = 'link[rel="canonical"]'

NO_PLACE = ":not(.not-first-middot):not(:has(a))"
"""Neither the counts, in whatever language, nor the link to what only members see."""
COUNTED = ("follower", "connection")
"""What is beside the place in the head, which may be missing."""

_ELLIPSIS = ("…", "...")

Row = dict[str, Any]


@attrs.define(slots=False)
class ProfilePage(PlatformPage):
    """A member's profile. ``page_params``: ``slug``, the name asked for.

    The page's own sections are the first witness. Its linked data, which is not on every page, is the second: it tells
    the country, and speaks where a saved page has nothing else.
    """

    source: ClassVar[str] = "profile"

    @classmethod
    def recognise(cls, body: str) -> bool:
        return any(mark in body for mark in (*gate.MARKS, *gate.NOT_FOUND_MARKS)) or gate.is_wall(body)

    def validate_input(self) -> None:
        """Decides whether this is a member's profile.

        Raises:
            UpstreamBlocked: status 999, a login wall, a challenge, the guest home page.
            TargetNotFound: no such public profile, or a page of another kind.
            ExtractionFailed: no profile, the data of two members, or lists of which no row is understood.
        """
        gate.raise_for_blocks(self.response)
        self.raise_for_failures()
        gate.raise_for_not_found(self.response)
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
        return image(self._head, "img.cover-img__image") or ""

    @field
    def connections(self) -> str:
        return self._count_text("connection")

    @field
    def contact_info(self) -> dict[str, str]:
        return {}  # its button opens a window that asks to sign in

    @field
    def country(self) -> str:
        told = plain(dig(self._person, "address", "addressCountry"))
        if re.fullmatch(r"[A-Z]{2}", told):
            return told
        host = urlsplit(self._profile_url).netloc
        return country_of_location(told) or country_of_host(host) or country_of_location(self._location)

    @field
    def current_company(self) -> Row:
        return self._affiliation("currentPositionsDetails")

    @field
    def current_school(self) -> Row:
        return self._affiliation("educationsDetails")

    @field
    def data_availability(self) -> Row:
        about, truncated = self._about
        return availability(
            {**self._lists, "about": about, "about_truncated": truncated, "headline": self._headline},
            masked=self._masked,
            source="public_profile_page" if self._page.css(NAME) else "json_ld",
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
        told = self._count_text("follower") or line(self._page, 'section[data-section="posts"] > h3')
        exact = self._linked_followers
        return told if "follower" in told else f"{exact} followers" if exact else ""

    @field
    def headline(self) -> str:
        return self._headline

    @field
    def location(self) -> str:
        return self._location

    @field
    def people_also_viewed(self) -> list[Row]:
        return self._lists["people_also_viewed"]

    @field
    def profile_photo(self) -> str:
        found = image(
            self._head, '[data-section="picture"] img.top-card-layout__entity-image, [data-section="picture"] img'
        )
        linked = picture(dig(self._person, "image", "contentUrl"))
        return found or picture(self._meta("og:image")) or linked or ""

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

    # The two witnesses

    @property
    def _is_data_alone(self) -> bool:
        """Whether the linked data was saved without its page."""
        return bool(self.response.text.lstrip().startswith(("{", "[")))

    @cached_property
    def _page(self) -> Selector:
        return Selector("" if self._is_data_alone else self.response.text, type="html")

    @cached_property
    def _head(self) -> Selector:
        """The profile's head: name, place, company and school."""
        found = self._page.css("section.top-card-layout")
        return found[0] if found else Selector("", type="html")

    @cached_property
    def _nodes(self) -> list[Row]:
        """The page's linked data, [] where it has none or it is broken."""
        if self._is_data_alone:
            return linked_data([self.response.text])
        return linked_data(self._page.css('script[type="application/ld+json"]::text').getall())

    @cached_property
    def _person(self) -> Row:
        """The member in the linked data, {} where it has none."""
        return next((node for node in self._nodes if node.get("@type") == "Person" and text(node.get("name"))), {})

    def _typed(self, kind: str) -> list[Row]:
        return [node for node in self._nodes if node.get("@type") == kind]

    # Parts that several fields need

    @cached_property
    def _lists(self) -> dict[str, list[Any]]:
        """Every list of the profile, by its field."""
        page, person = self._page, self._person
        linked: dict[str, list[Any]] = {
            "articles": sections.linked_articles(self._typed("Article")),
            "awards": sections.linked_awards(person),
            "education": history.linked_education(person),
            "experience": history.linked_experience(person),
            "languages": sections.linked_languages(person),
        }
        shown: dict[str, list[Any]] = {
            "activity": sections.activity(page, self._typed("DiscussionForumPosting")),
            "articles": sections.articles(page),
            "awards": sections.awards(page),
            "certifications": sections.certifications(page),
            "courses": sections.courses(page),
            "education": history.education(page),
            "experience": history.experience(page, self._affiliation("currentPositionsDetails")),
            "languages": sections.languages(page),
            "organizations": sections.organizations(page),
            "people_also_viewed": sections.people_also_viewed(page),
            "projects": sections.projects(page),
            "publications": sections.publications(page),
            "recommendations": sections.recommendations(page),
            "skills": sections.skills(page),
            "volunteer_experience": sections.volunteer_experience(page),
        }
        # The second witness is heard where the first has no such list, not where its list is not understood.
        heard = {name for name in linked if not shown[name] and not page.css(sections.SEEN[name])}
        return shown | {name: linked[name] for name in heard}

    @property
    def _linked_followers(self) -> int | None:
        """The exact number, of one statistic or of the one among several that counts followers."""
        told = self._person.get("interactionStatistic")
        several = (each for each in dicts(told) if "FollowAction" in str(each.get("interactionType")))
        return count(dig(next(several, told), "userInteractionCount"))

    @cached_property
    def _name(self) -> str:
        # The heading is in a button, which other texts are taken without.
        return collapsed("".join(self._page.css(NAME)[:1].xpath(".//text()").getall())) or plain(
            self._person.get("name")
        )

    @cached_property
    def _headline(self) -> str:
        told = line(self._head, "h2.top-card-layout__headline")
        return "" if history.is_masked(told) else told

    @cached_property
    def _location(self) -> str:
        told = (line(each) for each in self._head.css(f".profile-info-subheader > span{NO_PLACE}"))
        places = (each for each in told if each and not any(word in each for word in COUNTED))
        return next(places, "") or plain(dig(self._person, "address", "addressLocality"))

    @cached_property
    def _profile_url(self) -> str:
        candidates = (self._page.css(CANONICAL).attrib.get("href"), self._meta("og:url"), self._person.get("url"))
        return next((url for url in map(clean_url, candidates) if last_segment(url, "in")), "")

    @cached_property
    def _about(self) -> tuple[str, bool]:
        """The text, and whether it is cut: by the masked variant, in the linked data, and always in the description."""
        found = self._page.css('section[data-section="summary"] .core-section-container__content p')
        told = "\n".join(filter(None, map(lines, found)))
        if told:
            return told, self._masked and told.endswith(_ELLIPSIS)
        told = plain(self._person.get("description"))
        if told:
            return told, told.endswith(_ELLIPSIS)
        told = sections.described(self._meta("og:description"), self._headline) if self._page.css(NAME) else ""
        return told, bool(told)

    @cached_property
    def _masked(self) -> bool:
        """Whether this is the masked variant of the page."""
        rows = self._lists["experience"] + self._lists["education"]
        return bool(self._page.css(history.MASKED_BLOCK)) or any(row["masked"] for row in rows)

    def _affiliation(self, kind: str) -> Row:
        found = self._head.css(f'[data-section="{kind}"]')[:1]
        return {"logo": image(found), "name": line(found, ".top-card-link__description"), "url": link(found, "a")}

    def _count_text(self, word: str) -> str:
        return next((told for told in map(line, self._head.css(".profile-info-subheader span")) if word in told), "")

    def _meta(self, name: str) -> str:
        found = self._page.css(f'meta[property="{name}"], meta[name="{name}"]').attrib.get("content")
        return collapsed(text(found))

    # The gate

    def _raise_for_pages_without_profile(self) -> None:
        if self._name and self._profile_url:
            return
        gate.raise_for_other_pages(self.response)
        raise missing("The page has no profile.", [CANONICAL if self._name else NAME], reason="no_profile")

    def _raise_for_other_members(self) -> None:
        """The page must name one member only. It may be another name than asked for: members change theirs."""
        told = (self._page.css(CANONICAL).attrib.get("href"), self._meta("og:url"), self._person.get("url"))
        names = {last_segment(clean_url(url), "in").casefold() for url in told} - {""}
        if len(names) > 1:
            raise ExtractionFailed(
                f"The page is of several members: {', '.join(sorted(names))}.",
                details=[{"loc": [CANONICAL], "msg": "Input should name the page's one member", "type": "value_error"}],
                reason="wrong_echo",
            )

    def _raise_if_unrecognised(self) -> None:
        """Rows that are seen and of which none is understood are a failure, and so is a page of unknown sections."""
        unread = [css for name, css in sections.SEEN.items() if not self._lists[name] and self._page.css(css)]
        if self._page.css("section.core-section-container:not(.bottom-cta-banner)") and not self._page.css(
            f"section.core-section-container[data-section], {history.MASKED_BLOCK}"
        ):
            unread.append("section.core-section-container[data-section]")
        if unread:
            raise missing("Lists of the profile are not understood.", *([css] for css in unread), reason="blind")
