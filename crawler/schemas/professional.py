"""Professional network: what its scraper takes, and the member profile that it gives (specification 2.6)."""

from __future__ import annotations

import re
from typing import Literal
from urllib.parse import unquote_to_bytes, urlsplit

from pydantic import Field, field_validator

from crawler.items import Model, Params
from crawler.platforms import PUBLIC_ORIGINS

DOMAIN = urlsplit(PUBLIC_ORIGINS["professional"]).netloc.removeprefix("www.")
# The site, and its editions by country: "uk.", "se.". No other host of the domain has profiles.
HOST = re.compile(rf"(?:(?:www|[a-z]{{2}})\.)?{re.escape(DOMAIN)}")
# A language may follow the name: "/de", "/en-us", "/zh_CN".
PROFILE_PATH = re.compile(r"/in/(?P<slug>[^/]+)(?:/[a-zA-Z]{2}(?:[-_][a-zA-Z]{2})?)?/?")
SLUG = re.compile(r"(?!\.{1,2}$)[^\s/\\?#%&=<>\"|*]{1,150}")
"""A member's name in URLs, decoded: letters of any script and hyphens mostly; never what could change a URL."""

_EXPECTED = f"expected a member's profile: https://www.{DOMAIN}/in/<name> (no company, school, post or directory page)"
_SCHEME = re.compile(r"https?://", re.IGNORECASE)


def slug_of_url(url: str) -> str:
    """The member's name in a profile's URL, decoded. All else of the URL is thrown away.

    >>> slug_of_url("https://uk.linkedin.com/in/jos%C3%A9-mar%C3%ADa-1a2b/es?trk=x")
    'josé-maría-1a2b'
    >>> slug_of_url("www.linkedin.com/in/jane-doe")
    'jane-doe'

    Raises:
        ValueError: any other host or kind of page.
    """
    if not url.isprintable() or " " in url:  # urlsplit drops line breaks and tabs without a word
        raise ValueError(_EXPECTED)
    try:
        parts = urlsplit(url if _SCHEME.match(url) else f"https://{url}")
    except ValueError:  # an unclosed bracket, a host that is another one once it is normalised
        raise ValueError(_EXPECTED) from None
    profile = PROFILE_PATH.fullmatch(parts.path)
    slug = _decoded(profile["slug"]) if profile else None
    if not HOST.fullmatch(parts.netloc.lower()) or slug is None:
        raise ValueError(_EXPECTED)
    return slug


def _decoded(segment: str) -> str | None:
    """A path segment without its percent signs, None for what is no member's name."""
    try:
        slug = unquote_to_bytes(segment).decode()
    except UnicodeDecodeError:
        return None
    return slug if slug.isprintable() and SLUG.fullmatch(slug) else None


class ProfileParams(Params):
    """A member, by the URL of the profile."""

    url: str = Field(max_length=2_000)
    """URL of a member's public profile, of the site or of one of its country editions; the scheme may be left out.
    Only the name after ``/in/`` counts."""

    @field_validator("url")
    @classmethod
    def _is_profile(cls, url: str) -> str:
        slug_of_url(url)
        return url

    @property
    def slug(self) -> str:
        """The member's name in URLs."""
        return slug_of_url(self.url)


class Activity(Model):
    """Something that the member posted, shared, liked or commented on, as the page lists it."""

    action: str
    """The platform's whole line: "Liked by Jane Doe", "Jane Doe shared this"."""
    author: str
    """Who wrote the post where the page says so (tabs); in the list layout the member who acted."""
    author_url: str
    """URL of that author, "" where there is no link."""
    image: str | None
    """URL of the card's image; null where it has none, or only a placeholder."""
    link: str
    """URL of the post."""
    text: str
    """The text as the page has it: whole in the tabs layout, cut with "…" in the list layout."""


class Article(Model):
    """An article that the member published."""

    image: str
    """URL of its cover, "" where it has none."""
    link: str
    """URL of the article."""
    title: str
    """Its title."""


class Award(Model):
    """An honour."""

    title: str
    """Its name."""
    issuer: str
    """Who gave it, "" where not told."""
    date: str
    """When, in the platform's words ("Jun 2019"); "" where not told."""
    description: str
    """What the member says of it, "" where nothing."""


class Certification(Model):
    """A licence or a certificate."""

    name: str
    """Its name."""
    issuer: str
    """Who issued it, "" where not told."""
    issued: str
    """When, in the platform's words ("Aug 2022"); "" where not told."""
    credential_url: str
    """Where it can be checked, "" where there is no such link."""
    url: str
    """Link of its name, "" where there is none."""


class Course(Model):
    """A course that the member took."""

    name: str
    """Its name."""
    number: str
    """Its number, "" where not told."""


class Language(Model):
    """A language that the member speaks."""

    name: str
    """The language."""
    proficiency: str
    """How well, in the platform's words; "" where not told."""


class Organization(Model):
    """A membership."""

    name: str
    """The organization's name."""
    position: str
    """The member's role in it, "" where not told."""
    date_range: str
    """From when to when, in the platform's words; "" where not told."""
    description: str
    """What the member says of it, "" where nothing."""


class Project(Model):
    """A project."""

    title: str
    """Its name."""
    url: str
    """Its own page, "" where there is none."""
    date_range: str
    """From when to when, in the platform's words; "" where not told."""
    description: str
    """What the member says of it, "" where nothing."""
    contributors: list[str]
    """Names of the others who took part."""


class Publication(Model):
    """Something published outside the platform."""

    title: str
    """Its title."""
    publisher: str
    """Who published it, "" where not told."""
    date: str
    """When, in the platform's words; "" where not told."""
    url: str
    """Where it is, "" where there is no link."""
    description: str
    """What the member says of it, "" where nothing."""
    contributors: list[str]
    """Names of the other authors."""


class Recommendation(Model):
    """What somebody says of the member. The page shows some of them only."""

    name: str
    """Who recommends."""
    url: str
    """URL of that person's profile, "" where there is none."""
    text: str
    """The recommendation, without the quotation marks around it."""


class SameName(Model):
    """Another member of the same name."""

    name: str
    """The name."""
    headline: str
    """That member's headline, "" where not shown."""
    location: str
    """Where that member is, "" where not shown."""
    link: str
    """URL of that member's profile."""
    image: str | None
    """URL of the photo, null where there is none."""


class VolunteerExperience(Model):
    """Unpaid work."""

    role: str
    """What the member did."""
    organization: str
    """For whom, "" where not told."""
    organization_url: str
    """URL of the organization's page, "" where it has none."""
    cause: str
    """Which cause, in the platform's words; "" where not told."""
    date_range: str
    """From when to when, in the platform's words; "" where not told."""
    description: str
    """What the member says of it, "" where nothing."""


class Affiliation(Model):
    """A company or a school of the profile's head."""

    logo: str | None
    """URL of its logo, null where it has none or only a placeholder."""
    name: str
    """Its name, "" where the head shows none."""
    url: str
    """URL of its page, "" where it has none."""


class DataAvailability(Model):
    """What the platform showed of the profile, and what it kept back. Computed from what was found."""

    about_truncated: bool
    """As the profile's own field."""
    authenticated: bool
    """Always false: pages are read as a visitor without an account."""
    education_found: int
    """Rows of ``education``, masked ones too."""
    fields_withheld_by_linkedin: list[str]
    """Names of the fields that the platform kept back from this page, whole or in part."""
    note: str
    """One English sentence on which variant of the page was served."""
    positions_found: int
    """Rows of ``experience``, masked ones too."""
    positions_masked_by_linkedin: int
    """How many of them have a masked title or company."""
    positions_with_job_title: int
    """How many of them have a readable title."""
    source: str
    """"public_profile_page"; "json_ld" where nothing but the page's linked data was there."""


class Education(Model):
    """A school."""

    date_range: str
    """From when to when, in the platform's words ("1973 - 1975"); "" where not told."""
    degree: str
    """The degree, "" where not told or masked."""
    description: str
    """Activities, societies and whatever else the member says; "" where nothing."""
    field_of_study: str
    """The subject, "" where not told or masked."""
    grade: str
    """The grade, "" where not told."""
    end_date: int | None
    """Last year, null where not told."""
    start_date: int | None
    """First year, null where not told."""
    masked: bool
    """Whether the platform replaced name or degree by asterisks. What it masks stays empty here."""
    school_image: str | None
    """URL of the logo; null where there is none, and where the name is masked: a logo would give it away."""
    school_name: str
    """The school's name, "" where masked."""
    school_url: str
    """URL of the school's page, "" where there is none or it is masked."""


class Experience(Model):
    """A position. Several positions at one company are a row each."""

    company_image: str | None
    """URL of the logo; null where there is none, and where the name is masked: a logo would give it away."""
    company_name: str
    """The employer's name, "" where masked."""
    company_name_source: Literal["page", "json_ld", "top_card", "masked"]
    """Where the name is from: the row itself; the page's linked data; a masked row that names the company of the
    profile's head, from which URL and logo are; or nowhere, since it is masked."""
    company_slug: str
    """The employer's name in URLs, "" where there is no page."""
    company_url: str
    """URL of the employer's page, "" where there is none or it is masked."""
    date_range: str
    """From when to when, in the platform's words ("Jul 2020 - Present"); "" where not told."""
    description: str
    """What the member says of it, "" where nothing."""
    duration: str
    """How long, in the platform's words ("6 years 1 month"); "" where not told."""
    employment_type: str
    """Always "": not shown to visitors without an account."""
    end_date: str
    """Last month or year ("Jun 2020"), "Present", or "" where not told."""
    job_title: str
    """The title, "" where masked."""
    location: str
    """Where, "" where not told."""
    start_date: str
    """First month or year ("Jul 2020"), "" where not told."""
    masked: bool
    """Whether the platform replaced title or company by asterisks. What it masks stays empty here."""


class RelatedProfile(Model):
    """A row of "people also viewed"."""

    followers: str
    """In the platform's words ("17K followers"), "" where not shown."""
    location: str
    """Where, "" where not shown."""
    name: str
    """The name."""
    summary: str
    """The line under the name, "" where there is none."""
    image: str | None
    """URL of the photo, null where there is none."""
    link: str
    """URL of the profile."""


class Website(Model):
    """A website that the member links to."""

    label: str
    """What it is, in the platform's words ("Blog", "Company Website")."""
    url: str
    """Its own URL, not the platform's redirect."""


class Profile(Model):
    """A member's profile, as a visitor without an account sees it."""

    about: str
    """What the member says of themselves, with its line breaks; "" where the page has none."""
    about_truncated: bool
    """Whether the platform cut it."""
    activity: list[Activity]
    """What the member did lately, in the page's order: in one of two layouts, which tell different things."""
    activity_count: int
    """How many rows that is. The platform shows no total."""
    articles: list[Article]
    """Articles, in the page's order."""
    awards: list[Award]
    """Honours."""
    certifications: list[Certification]
    """Licences and certificates."""
    courses: list[Course]
    """Courses taken; not those that the member teaches."""
    languages: list[Language]
    """Languages."""
    organizations: list[Organization]
    """Memberships."""
    projects: list[Project]
    """Projects."""
    publications: list[Publication]
    """Publications."""
    recommendations: list[Recommendation]
    """Recommendations that the page shows."""
    same_name: list[SameName]
    """Other members of the same name."""
    services: list[str]
    """Always empty: the public page shows none."""
    skills: list[str]
    """Skills. Empty in a masked profile, which has no such section."""
    volunteer_experience: list[VolunteerExperience]
    """Unpaid work."""
    background_cover_image_url: str
    """URL of the picture behind the head, "" where it is the platform's own."""
    connections: str
    """In the platform's words ("500+ connections"), "" where not shown."""
    contact_info: dict[str, str]
    """Always empty: shown to members only."""
    country: str
    """ISO 3166 code: of the linked data, of the profile's country edition, or of the country that the location ends
    in; "" where none of them tells."""
    current_company: Affiliation
    """The company in the profile's head."""
    current_school: Affiliation
    """The school in the profile's head."""
    data_availability: DataAvailability
    """What was shown and what was kept back."""
    education: list[Education]
    """Schools, in the page's order. A masked row counts as one only when it shows years."""
    experience: list[Experience]
    """Positions, in the page's order."""
    first_name: str = Field(alias="firstName")
    """First name."""
    last_name: str = Field(alias="lastName")
    """Last name, "" where there is only one."""
    full_name: str = Field(alias="fullName", min_length=1)
    """The name as it is shown. Never empty."""
    followers: str
    """In the platform's words ("41M followers"); the exact number with the word "followers" where only the linked data
    tells it; "" where neither does."""
    headline: str
    """The line under the name, "" where the page has none (masked)."""
    location: str
    """Where, in the platform's words; "" where not shown."""
    people_also_viewed: list[RelatedProfile]
    """Other profiles that the page links to."""
    profile_photo: str
    """URL of the photo, "" where there is none."""
    profile_url: str = Field(min_length=1)
    """URL of the profile as the page names itself: another name than asked for where the member changed it. Never
    empty."""
    public_identifier: str = Field(min_length=1)
    """The name at the end of that URL, decoded. Never empty."""
    success: bool
    """Always true: a profile that could not be read is an error."""
    total_experiences: int
    """How many rows ``experience`` has."""
    websites: list[Website]
    """Websites of the profile's head."""
