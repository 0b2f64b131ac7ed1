"""Professional network: the page objects for a member's profile, complete or masked, and for the same page as a content
envelope (specification 2.4); the countries of locations; and the errors for responses that say why they are not the
profile.

Each of these statements has a mark: a text, an address or a status that recorded responses of its kind have, and that
the error's details quote. A response without a mark is no statement about the member.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cached_property
from typing import Any, ClassVar
from urllib.parse import urlsplit

import attrs
from web_poet import HttpResponse, field

from crawler.errors import Detail, ExtractionFailed, TargetNotFound, UpstreamBlocked, quoted
from crawler.platforms.model import empty
from crawler.platforms.page import PlatformPage, mismatch_error, missing_error
from crawler.platforms.professional import document, masked, record
from crawler.platforms.professional.markup import clean_url, is_cut, last_segment, picture, plain, uncut
from crawler.platforms.professional.payload import FOLLOW, LinkedData, Person
from crawler.platforms.professional.schema import MemberProfile
from crawler.reading.contract import MAX_NAMES, Unread, invalid_error
from crawler.reading.documents import encode
from crawler.reading.values import text

_NAMES = """
AD Andorra;AE United Arab Emirates;AF Afghanistan;AG Antigua and Barbuda;AL Albania;AM Armenia;AO Angola;AR Argentina
AT Austria;AU Australia;AZ Azerbaijan;BA Bosnia and Herzegovina;BB Barbados;BD Bangladesh;BE Belgium;BF Burkina Faso
BG Bulgaria;BH Bahrain;BI Burundi;BJ Benin;BM Bermuda;BN Brunei;BO Bolivia;BR Brazil;BS Bahamas;BS The Bahamas
BT Bhutan;BW Botswana;BY Belarus;BZ Belize;CA Canada;CD Democratic Republic of the Congo;CD Congo (DRC)
CF Central African Republic;CG Congo;CH Switzerland;CI Ivory Coast;CI Côte d’Ivoire;CL Chile;CM Cameroon;CN China
CO Colombia;CR Costa Rica;CU Cuba;CV Cape Verde;CV Cabo Verde;CY Cyprus;CZ Czechia;CZ Czech Republic;DE Germany
DJ Djibouti;DK Denmark;DM Dominica;DO Dominican Republic;DZ Algeria;EC Ecuador;EE Estonia;EG Egypt;ER Eritrea;ES Spain
ET Ethiopia;FI Finland;FJ Fiji;FR France;GA Gabon;GB United Kingdom;GD Grenada;GE Georgia;GH Ghana;GI Gibraltar
GL Greenland;GM Gambia;GM The Gambia;GN Guinea;GQ Equatorial Guinea;GR Greece;GT Guatemala;GW Guinea-Bissau;GY Guyana
HK Hong Kong;HK Hong Kong SAR;HN Honduras;HR Croatia;HT Haiti;HU Hungary;ID Indonesia;IE Ireland;IL Israel
IM Isle of Man;IN India;IQ Iraq;IR Iran;IS Iceland;IT Italy;JE Jersey;JM Jamaica;JO Jordan;JP Japan;KE Kenya
KG Kyrgyzstan;KH Cambodia;KM Comoros;KN Saint Kitts and Nevis;KR South Korea;KR Korea;KW Kuwait;KY Cayman Islands
KZ Kazakhstan;LA Laos;LB Lebanon;LC Saint Lucia;LI Liechtenstein;LK Sri Lanka;LR Liberia;LS Lesotho;LT Lithuania
LU Luxembourg;LV Latvia;LY Libya;MA Morocco;MC Monaco;MD Moldova;ME Montenegro;MG Madagascar;MK North Macedonia
MK Macedonia;ML Mali;MM Myanmar;MN Mongolia;MO Macau;MO Macao SAR;MR Mauritania;MT Malta;MU Mauritius;MV Maldives
MW Malawi;MX Mexico;MY Malaysia;MZ Mozambique;NA Namibia;NE Niger;NG Nigeria;NI Nicaragua;NL Netherlands
NL The Netherlands;NO Norway;NP Nepal;NZ New Zealand;OM Oman;PA Panama;PE Peru;PG Papua New Guinea;PH Philippines
PK Pakistan;PL Poland;PR Puerto Rico;PS Palestinian Territory;PS Palestine;PT Portugal;PY Paraguay;QA Qatar;RO Romania
RS Serbia;RU Russia;RU Russian Federation;RW Rwanda;SA Saudi Arabia;SB Solomon Islands;SC Seychelles;SD Sudan;SE Sweden
SG Singapore;SI Slovenia;SK Slovakia;SL Sierra Leone;SM San Marino;SN Senegal;SO Somalia;SR Suriname;SS South Sudan
ST São Tomé and Príncipe;SV El Salvador;SY Syria;SZ Eswatini;TD Chad;TG Togo;TH Thailand;TJ Tajikistan;TL Timor-Leste
TM Turkmenistan;TN Tunisia;TO Tonga;TR Turkey;TR Türkiye;TT Trinidad and Tobago;TW Taiwan;TZ Tanzania;UA Ukraine
UG Uganda;US United States;UY Uruguay;UZ Uzbekistan;VC Saint Vincent and the Grenadines;VE Venezuela;VN Vietnam
VU Vanuatu;WS Samoa;XK Kosovo;YE Yemen;ZA South Africa;ZM Zambia;ZW Zimbabwe
"""
_CODES = {
    name.casefold(): code for code, _, name in (entry.partition(" ") for entry in _NAMES.replace("\n", ";").split(";"))
}

EDITIONS = {"uk": "GB"}
"""Country codes by the subdomain of the country's edition of the site, if they differ."""


def country_of_location(location: str) -> str:
    """Return the ISO code of the country at the end of a location, or "" if the location does not end in a country.

    >>> country_of_location("Redmond, Washington, United States"), country_of_location("San Francisco Bay Area")
    ('US', '')
    """
    return _CODES.get(location.rpartition(",")[2].strip().casefold(), "") if location else ""


def country_of_host(host: str) -> str:
    """Return the ISO code of the country whose edition of the site a host serves, or "" for the main site.

    >>> country_of_host("uk.linkedin.com"), country_of_host("se.linkedin.com"), country_of_host("www.linkedin.com")
    ('GB', 'SE', '')
    """
    edition = host.partition(".")[0]
    return EDITIONS.get(edition, edition.upper() if len(edition) == 2 else "")


Row = dict[str, Any]


def _listed(name: str) -> Any:
    """Declare a field whose value is a list."""
    return field(lambda self: self._lists[name])


@attrs.define(slots=False)
class ProfilePage(PlatformPage):
    """A member's profile page. ``page_params`` has ``slug``: the requested name.

    Most data is read from the page's sections. The linked data provides the country, exact counts, and values and lists
    that the sections lack.
    """

    source: ClassVar[str] = "profile"

    @classmethod
    def recognise(cls, body: str) -> bool:
        return any(mark in body for mark in PROFILE_MARKS) or has_mark(body)

    def validate_input(self) -> None:
        """Raise an error unless the response is a member's profile.

        For the errors by HTTP status, such as ``UpstreamRateLimited``, see ``raise_for_failures``.

        Raises:
            UpstreamBlocked: the response has status 999, or is a login wall, a challenge or the home page for visitors.
            TargetNotFound: the profile does not exist or is private, or the page is not a profile.
            ExtractionFailed: the page contains no profile or that of another member, names several members, or has an
                unknown layout (``_raise_if_unrecognised``).
        """
        raise_for_refusals(self.response)
        self.raise_for_failures()
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

    activity = _listed("activity")

    @field
    def activity_count(self) -> int:
        return len(self._lists["activity"])

    articles = _listed("articles")
    awards = _listed("awards")
    certifications = _listed("certifications")
    courses = _listed("courses")
    languages = _listed("languages")
    organizations = _listed("organizations")
    projects = _listed("projects")
    publications = _listed("publications")
    recommendations = _listed("recommendations")
    same_name = _listed("same_name")

    @field
    def services(self) -> list[str]:
        return []  # public pages have no section with services

    skills = _listed("skills")
    volunteer_experience = _listed("volunteer_experience")

    @field
    def background_cover_image_url(self) -> str:
        return self._head.cover

    @field
    def connections(self) -> str:
        return self._counts[1]

    @field
    def contact_info(self) -> dict[str, str]:
        return {}  # on public pages, the button for contact data opens the sign-in window

    @field
    def country(self) -> str:
        country = plain(self._person.country) if self._person else ""
        if re.fullmatch(r"[A-Z]{2}", country):
            return country
        host = urlsplit(self._profile_url).netloc
        return country_of_location(country) or country_of_host(host) or country_of_location(self._location)

    @field
    def current_company(self) -> Row:
        return self._head.company

    @field
    def current_school(self) -> Row:
        return self._head.school

    @field
    def data_availability(self) -> Row:
        about, truncated = self._about
        return masked.availability(
            {**self._lists, "about": about, "about_truncated": truncated, "headline": self._head.headline},
            masked=self._masked,
            source="public_profile_page" if self._head.name else "json_ld",
            locale=self._locale,
            is_unread=bool(self.unread),
        )

    education = _listed("education")
    experience = _listed("experience")

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

    people_also_viewed = _listed("people_also_viewed")

    @field
    def profile_photo(self) -> str:
        linked = picture(self._person.image) if self._person else None
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
        return self._head.websites

    # The parts that ``ContentPage`` reads

    @property
    def cells(self) -> dict[str, list[Row]]:
        """The cells of the rows of all sections, by field name. The dict has a field if the page has its section."""
        return self._document.sections.rows

    @cached_property
    def activity_cards(self) -> list[Row]:
        """The cards of the section with the activity, with what the linked data has of the posts."""
        return record.activity(self.cells.get("activity", []), self.linked.postings, self.public_identifier)

    @property
    def article_cells(self) -> list[Row]:
        """The cells of the articles: from the page's section, or else from the linked data."""
        return record.article_cells(self._document, self.linked)

    @cached_property
    def linked(self) -> LinkedData:
        """The page's linked data. It is empty if the page has no linked data or broken linked data."""
        return self.payload(LinkedData, encode(self._document.nodes, what="linked data"), what="linked data")

    @property
    def shown_followers(self) -> str:
        """The page's text with the number of followers, "" if the page does not show it."""
        return self._counts[0] or self._document.above_posts

    @property
    def follower_count(self) -> int | None:
        """The exact number of followers from the linked data, else the number on the page, which may be rounded."""
        shown = document.shown_count(self.shown_followers)
        return shown.value if shown and self._linked_followers is None else self._linked_followers

    # Parts that several fields use

    @cached_property
    def _document(self) -> document.Document:
        return document.read_document(self.response)

    @property
    def _head(self) -> document.Head:
        return self._document.head

    @cached_property
    def _person(self) -> Person | None:
        """The member in the linked data, or None."""
        return self.linked.person

    @cached_property
    def _lists(self) -> dict[str, list[Any]]:
        """All lists in the profile, by field name."""
        return record.record_lists(self._document, self.linked, self.activity_cards, self.unread)

    @cached_property
    def _linked_followers(self) -> int | None:
        return record.statistic(self._person.statistics, FOLLOW) if self._person else None

    @cached_property
    def _counts(self) -> tuple[str, str]:
        """The texts about followers and connections. If they cannot be distinguished, both are ""."""
        above, number = self._document.above_posts, self._linked_followers
        found = document.sorted_counts(self._head.counts, known_followers=above, number=number)
        if found is None:
            self.unread += [Unread("followers", "unknown"), Unread("connections", "unknown")]
        return found or ("", "")

    @cached_property
    def _name(self) -> str:
        return self._head.name or (plain(self._person.name) if self._person else "")

    @cached_property
    def _location(self) -> str:
        return self._head.location or (plain(self._person.locality) if self._person else "")

    @cached_property
    def _profile_url(self) -> str:
        return next((url for url in map(clean_url, self._stated_urls) if last_segment(url, "in")), "")

    @property
    def _stated_urls(self) -> tuple[object, ...]:
        """The profile's URL as stated in three places of the page and its linked data."""
        return self._document.canonical, self._meta("og:url"), self._person.url if self._person else None

    @cached_property
    def _about(self) -> tuple[str, bool]:
        """The text about the member, and whether the platform has cut it."""
        linked = plain(self._person.description) if self._person else ""
        shown = "\n".join(row["text"] for row in self.cells.get("about", []))
        about = uncut(shown, linked) if shown else linked
        return about, is_cut(about) and self._masked

    @property
    def _locale(self) -> str:
        """The page's language and country, such as "en_US"."""
        return self._meta("locale")

    @cached_property
    def _masked(self) -> bool:
        """Whether the platform served the masked variant of the page."""
        rows = self._lists["experience"] + self._lists["education"]
        return masked.MASKED in self.cells or any(row["masked"] for row in rows)

    def _meta(self, name: str) -> str:
        return self._document.meta.get(name, "")

    # Validation

    def _raise_for_pages_without_profile(self) -> None:
        if self._name and self._profile_url:
            return
        raise_for_other_pages(self.response, clean_url(self._document.canonical))
        if not (self._name or self._head.exists or self._meta("og:type") == "profile"):
            message = "The response has no mark of a profile page."
            raise missing_error(message, [document.HEAD], reason="unknown_form")
        place = document.CANONICAL if self._name else document.HEAD_NAME
        raise missing_error("The page does not name its member.", [place], reason="no_profile")

    def _raise_for_other_members(self) -> None:
        """Raise an error if the page belongs to another member, or to several members.

        A name other than the requested one is accepted only after a redirect to it, because a member can change the
        name.
        """
        names = {_comparable(last_segment(clean_url(url), "in")) for url in self._stated_urls} - {""}
        if len(names) > 1:
            message = f"The page names several members: {', '.join(sorted(names))}."
            problem = "Input should name a single member"
            raise invalid_error(message, [document.CANONICAL], problem, "value_error", reason="wrong_echo")
        requested = _comparable(text(self.page_params.get("slug")))
        expected = {requested, _comparable(last_segment(str(self.response.url), "in"))} - {""}
        if requested and not names & expected:
            message = f"The page is the profile of {', '.join(names)}, not of {requested}."
            raise mismatch_error(message, [document.CANONICAL], requested)

    def _raise_if_unrecognised(self) -> None:
        """Raise an error if the top section, all positions or all schools could not be read, or no section is known.

        Other unread parts are added to ``unread``. All seven whole recorded pages (2024 to 2026-07) have the top
        section. Any other section may be absent. For example, a member can turn off the list of other members.
        """
        sections = self._document.sections
        marks = {
            name: "the page has this section, but no known row in it"
            for name in (*record.HISTORY, masked.MASKED)
            if sections.lost(name)
        }
        if self._document.is_whole and not (self._head.exists and self._head.name):
            marks[document.HEAD if self._head.name else document.HEAD_NAME] = "the page names its member elsewhere"
        if sections.unknown and not sections.known:
            marks["sections"] = f"the page has only unknown sections: {', '.join(sections.unknown[:MAX_NAMES])}"
        if marks:
            details = [detail for path, mark in marks.items() for detail in quoted(mark, path)]
            raise ExtractionFailed(
                "These parts could not be read: the layout changed.", details=details, reason="blind"
            )
        parts = [*self._head.unread, *sections.unread] if self._document.is_whole else sections.unread
        self.unread += [each for each in parts if not self._is_filled(each.path)]
        if self._document.is_whole and not self._meta("profile:first_name"):
            self.unread.append(Unread("firstName", "missing"))  # each recorded page has it; the name is split instead
        if self._document.is_whole and b"</html" not in bytes(self.response.body):
            # All 24 recorded HTML documents have this tag. Without it, the page was cut, and its further sections look
            # absent.
            self.unread.append(Unread("html", "missing", loses_rows=True))
        if self._head.exists and not self._head.links and (self._lists["experience"] or self._lists["education"]):
            # The top section of each recorded page with positions or schools shows one of them.
            self.unread.append(Unread("top_card[]", "missing", loses_rows=True))
        self.unread += self._document.unread_nodes
        wrong = sum(card["is_contradiction"] and not card["author"] for card in self.activity_cards)
        if wrong:
            self.unread.append(Unread("activity[].author", "contradiction", wrong, len(self.activity_cards)))

    def _is_filled(self, path: str) -> bool:
        """Whether the record has the value that is unread at a path, from another source."""
        name, _, cell = path.partition("[].")
        if cell:
            rows = self._lists.get(name, [])
            return bool(rows) and all(isinstance(row, dict) and row.get(cell) for row in rows)
        value = getattr(self, name.removesuffix("[]"), None)
        return isinstance(value, str) and bool(value)


def _comparable(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


HEADING = "top-card-layout__title"
"""The CSS class of a heading that every profile page has. Pages of companies and jobs have it, too (captures
64c005d46817 and 682e9ace68dc)."""
PROFILE_MARKS = (HEADING, '"Person"', "public_profile_v3", 'content="profile"')
"""Texts of which a profile page, or a saved part of one, contains at least one."""

NOT_FOUND, HOME = "not_found", "guest_home"
# Each pattern matches the mark of a page that is not a profile, whatever the HTTP status.
_MARKS = {
    "login_wall": re.compile(r"[\"']auth_wall_[a-z]|<title>\s*(?:Sign Up|LinkedIn Login, Sign in) \| "),
    "refused_with_script": re.compile(r"\"/authwall\?trk=\"\s*\+"),
    "challenge": re.compile(r"\bccookie="),
    HOME: re.compile(r"d_homepage-guest-home|<title>\s*LinkedIn: Log In or Sign Up"),
    NOT_FOUND: re.compile(r"page-not-found__headline|<title>\s*Profile Not Found"),
}
_PATHS = {
    "authwall": "login_wall",
    "uas": "login_wall",
    "login": "login_wall",
    "signup": "login_wall",
    "checkpoint": "challenge",
}
_OTHER_PAGES = frozenset({"company", "school", "showcase", "pub", "posts", "pulse", "jobs", "learning", "404"})
"""First path segments of pages other than profiles, to which a profile's URL may redirect."""

BLOCKED_STATUS = 999
"""The platform's own HTTP status for blocked visitors, whichever member they request."""
BLOCK_SECONDS = 3_600
"""Minimum duration of a block with status 999, in seconds, according to published measurements. Each request prolongs
it."""
_LASTING_BLOCKS = frozenset({"status_999", "refused_with_script"})


def has_mark(body: str) -> bool:
    """Whether a response body is a block or the not-found page."""
    return any(pattern.search(body) for pattern in _MARKS.values())


def raise_for_refusals(response: HttpResponse) -> None:
    """Raise an error for a login wall, a challenge or another block, and for the not-found page, with any HTTP status.

    Raises:
        UpstreamBlocked: the visitor is blocked. For a block that lasts, such as HTTP status 999, ``retry_after`` is
            ``BLOCK_SECONDS``.
        TargetNotFound: the profile is missing or private: the platform shows the same page for both.
    """
    found = _refusal(response)
    if found is None:
        return
    reason, mark = found
    if reason == NOT_FOUND:
        raise TargetNotFound("The platform has no such public profile.", reason=reason, details=mark)
    message = "The platform blocked this visitor before it served the profile. The member may exist."
    seconds = BLOCK_SECONDS if reason in _LASTING_BLOCKS else None
    raise UpstreamBlocked(message, reason=reason, retry_after=seconds, details=mark)


def _refusal(response: HttpResponse) -> tuple[str, list[Detail]] | None:
    """Return the reason and the mark of a refusal, or None if the response has no mark."""
    if response.status == BLOCKED_STATUS:
        return "status_999", quoted(str(response.status), "status")
    path = urlsplit(str(response.url)).path
    if _first_segment(path) in _PATHS:
        return _PATHS[_first_segment(path)], quoted(path, "url")
    has_heading = response.body.find(HEADING.encode()) >= 0 or HEADING in response.text  # decoding is slow
    if not has_heading:  # the texts of a profile may contain any of the marks
        searches = ((reason, pattern.search(response.text)) for reason, pattern in _MARKS.items())
        return next(((reason, quoted(found[0], "body")) for reason, found in searches if found), None)
    return None


def raise_for_other_pages(response: HttpResponse, canonical: str) -> None:
    """Raise an error if a response without a profile is another kind of page, by its URL or its canonical URL.

    Raises:
        UpstreamBlocked: the page is the platform's home page.
        TargetNotFound: the page is, for example, a company's or a school's.
    """
    for place, url in (("url", str(response.url)), ("canonical", canonical)):
        path = urlsplit(url).path
        if path == "/":
            message = "The platform returned its home page instead of the profile."
            raise UpstreamBlocked(message, reason=HOME, details=quoted(path, place))
        if _first_segment(path) in _OTHER_PAGES:
            message = "The page is not a member's profile."
            raise TargetNotFound(message, reason="wrong_page_kind", details=quoted(path, place))


def _first_segment(path: str) -> str:
    return path.lstrip("/").partition("/")[0]


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
        unknown = sum(kind not in record.TABS for kind in tabs)
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
        articles = record.articles(member.article_cells, member.linked.articles, own)
        activity = (
            member.activity_cards if "activity" in member.cells else record.linked_activity(member.linked.postings)
        )
        return [record.item(card) for card in [*articles, *activity]]
