"""Professional network: the scrapers' params, and the flat member profile (specification 2.6)."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field, field_validator

from crawler.platforms.model import Entity, LinkParams, Model, Params
from crawler.platforms.professional.link import LINKS, slug_of_url, slug_of_username
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


class ProfileParams(Params):
    """Params that name a member by the URL of the profile."""

    links: ClassVar = LINKS

    url: str = Field(max_length=2_000)
    """URL of a member's public profile, on the main site, the mobile site or a country edition; the scheme is optional.
    Only the name after ``/in/`` is used."""

    @field_validator("url")
    @classmethod
    def _is_profile(cls, url: str) -> str:
        slug_of_url(url)
        return url

    @property
    def slug(self) -> str:
        """The member's name as it occurs in URLs, decoded."""
        return slug_of_url(self.url)


class MemberParams(LinkParams):
    """Params that name a member by the name in the URL of the profile, or by the URL."""

    links: ClassVar = LINKS
    kinds: ClassVar = ("profile",)
    exactly_one_of: ClassVar = ("username", "url")

    username: str | None = Field(default=None, max_length=2_000)
    """The member's name: the part after ``/in/`` in the URL of the public profile. The whole URL is accepted, too."""
    url: str | None = Field(default=None, max_length=2_000)
    """URL of the member's public profile, as for ``professional-profile``."""

    @field_validator("username")
    @classmethod
    def _is_name(cls, username: str) -> str:
        slug_of_username(username)
        return username

    @property
    def slug(self) -> str:
        """The member's name as it occurs in URLs, decoded."""
        return slug_of_username(self.username or self.url or "")


class DataAvailability(Model):
    """Which fields the platform showed and which it withheld, computed from the fields that were found."""

    about_truncated: bool
    """The same as the profile's ``about_truncated``."""
    authenticated: bool
    """Always false: pages are read as a visitor without an account."""
    education_found: int
    """Number of rows in ``education``, including masked rows."""
    fields_withheld_by_linkedin: list[str]
    """Names of the fields that the platform withheld from this page, entirely or in part. Never empty: the platform
    shows two of them to members only."""
    note: str
    """An English text about the variant of the page that the platform served, or about unread parts of the page."""
    positions_found: int
    """Number of rows in ``experience``, including masked rows."""
    positions_masked_by_linkedin: int
    """Number of positions with a masked title or company."""
    positions_with_job_title: int
    """Number of positions with a readable title."""
    source: str
    """The source of the data: "public_profile_page", or "json_ld" if only the page's linked data was available."""


class Profile(Model):
    """A member's profile, as a visitor without an account sees it."""

    entity: ClassVar[Entity] = Entity("profiles", key=("public_identifier",), history=("connections", "followers"))

    about: str
    """The member's own text, with line breaks; "" if the page has none."""
    about_truncated: bool
    """Whether the platform shortened the text in ``about``."""
    activity: list[Activity]
    """Recent activity, in page order. The page has one of two layouts, which contain different data."""
    activity_count: int
    """Number of rows in ``activity``, all of which are on the page. The platform does not show a total."""
    articles: list[Article]
    """Articles, in page order."""
    awards: list[Award]
    """Honours that the member received."""
    certifications: list[Certification]
    """Licences and certificates."""
    courses: list[Course]
    """Courses that the member attended. Courses that the member taught are not included."""
    languages: list[Language]
    """Languages."""
    organizations: list[Organization]
    """Memberships in organizations."""
    projects: list[Project]
    """Projects."""
    publications: list[Publication]
    """Publications."""
    recommendations: list[Recommendation]
    """Recommendations that the page shows."""
    same_name: list[SameName]
    """Other members with the same name."""
    services: list[str]
    """Always empty: the public page does not show services."""
    skills: list[str]
    """Skills. Empty if the member lists none, and in a masked profile, which lacks this section."""
    volunteer_experience: list[VolunteerExperience]
    """Unpaid work."""
    background_cover_image_url: str
    """URL of the cover image, "" for the platform's default."""
    connections: str
    """The platform's text about the number of connections, such as "500+ connections"; "" if not shown."""
    contact_info: dict[str, str]
    """Always empty: the platform shows contact details to members only."""
    country: str
    """ISO 3166 code from the linked data, the profile's country edition, or the country at the end of the location;
    "" if unknown."""
    current_company: Affiliation
    """The company in the section at the top of the profile."""
    current_school: Affiliation
    """The school in the section at the top of the profile."""
    data_availability: DataAvailability
    """Which fields the platform showed and which it withheld."""
    education: list[Education]
    """Schools, in page order. In a masked list, the first row with years or with the logo of ``current_school``, and
    all rows after it, count as schools."""
    experience: list[Experience]
    """Positions, in page order."""
    first_name: str = Field(alias="firstName")
    """First name."""
    last_name: str = Field(alias="lastName")
    """Last name, "" for members with a single name."""
    full_name: str = Field(alias="fullName", min_length=1)
    """The displayed name. Never empty."""
    followers: str
    """The platform's text ("41M followers"). If only the linked data contains the number, it is the exact number and
    the word "followers". "" if unknown."""
    headline: str
    """The line under the name; "" if absent, as in the masked variant."""
    location: str
    """The member's location as text, "" if not shown."""
    people_also_viewed: list[RelatedProfile]
    """Other profiles that the page links to."""
    profile_photo: str
    """URL of the photo, "" if absent."""
    profile_url: str = Field(min_length=1)
    """Canonical URL of the profile. The name in it differs from the requested name if the member changed it.
    Never empty."""
    public_identifier: str = Field(min_length=1)
    """The name at the end of ``profile_url``, decoded. Never empty."""
    success: bool
    """Always true, because a failed target has no record."""
    total_experiences: int
    """Number of rows in ``experience``."""
    websites: list[Website]
    """Websites in the section at the top of the profile."""
