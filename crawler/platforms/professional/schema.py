"""Professional network: what its scraper takes, and the member profile that it gives (specification 2.6)."""

from __future__ import annotations

import re
from typing import ClassVar
from urllib.parse import unquote_to_bytes

from pydantic import Field, field_validator

from crawler.platforms.links import split_link
from crawler.platforms.model import Entity, Model, Params
from crawler.platforms.professional import PLATFORM
from crawler.platforms.professional.schema_rows import (
    Activity,
    Affiliation,
    Article,
    Award,
    Certification,
    Course,
    Education,
    Experience,
    Language,
    Organization,
    Project,
    Publication,
    Recommendation,
    RelatedProfile,
    SameName,
    VolunteerExperience,
    Website,
)

DOMAIN = PLATFORM.domain
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
    host, path = split_link(url if _SCHEME.match(url) else f"https://{url}", _EXPECTED)
    profile = PROFILE_PATH.fullmatch(path)
    slug = _decoded(profile["slug"]) if profile else None
    if not HOST.fullmatch(host) or slug is None:
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


class Profile(Model):
    """A member's profile, as a visitor without an account sees it."""

    entity: ClassVar[Entity] = Entity("profiles", key=("public_identifier",), history=("connections", "followers"))

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
