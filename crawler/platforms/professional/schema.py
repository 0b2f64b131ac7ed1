"""Professional network: the scrapers' params, the flat member profile with its rows (specification 2.6), and the
content envelope (2.4), which the specification names but does not define: this definition is the project's own.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, field_validator

from crawler.platforms import model
from crawler.platforms.model import LinkParams, Mark, Model, Params, Selects
from crawler.platforms.professional.urls import LINKS, slug_of_url, slug_of_username


class Activity(Model):
    """A post that the member wrote, shared, liked or commented on."""

    action: str
    """The platform's line about who did what, such as "Liked by Jane Doe" or "Jane Doe shared this"."""
    author: str
    """Name of the post's author. "" for another author's post in the layout with a list, which does not name them."""
    author_url: str
    """URL of the author's page. "" if ``author`` is ""."""
    image: str | None
    """URL of the card's image, null if absent or a placeholder."""
    link: str
    """URL of the post."""
    text: str
    """The post's text: complete in the layout with tabs; may be shortened with "…" in the layout with a list."""


class Article(Model):
    """An article that the member published."""

    image: Annotated[str, Mark.NEVER]
    """URL of the article's cover, "" if absent."""
    link: str
    """URL of the article."""
    title: str
    """The article's title."""


class Award(Model):
    """An honour."""

    title: str
    """The honour's name."""
    issuer: str
    """The organization that gave the honour, "" if not shown."""
    date: str
    """Date as text ("Jun 2019"), "" if not shown."""
    description: str
    """The member's text about this entry, "" if absent."""


class Certification(Model):
    """A licence or a certificate."""

    name: str
    """Name of the licence or certificate."""
    issuer: str
    """The issuing organization, "" if not shown."""
    issued: str
    """Date as text ("Aug 2022"), "" if not shown."""
    credential_url: str
    """URL at which the certificate can be verified, "" if absent."""
    url: str
    """URL that the name links to, "" without a link."""


class Course(Model):
    """A course that the member took."""

    name: str
    """The course's name."""
    number: str
    """The course's number, "" if not shown."""


class Language(Model):
    """A language that the member speaks."""

    name: str
    """Name of the language."""
    proficiency: str
    """Proficiency as text, "" if not shown."""


class Organization(Model):
    """A membership in an organization."""

    name: str
    """The organization's name."""
    position: str
    """The member's role in the organization, "" if not shown."""
    date_range: str
    """Dates as text, "" if not shown."""
    description: str
    """The member's text about this entry, "" if absent."""


class Project(Model):
    """A project in which the member took part."""

    title: str
    """The project's name."""
    url: str
    """URL of the project's own page, "" if absent."""
    date_range: str
    """Dates as text, "" if not shown."""
    description: str
    """The member's text about this entry, "" if absent."""
    contributors: list[str]
    """Names of the other contributors."""


class Publication(Model):
    """A publication outside the platform."""

    title: str
    """The publication's title."""
    publisher: str
    """The publisher, "" if not shown."""
    date: str
    """Date as text, "" if not shown."""
    url: str
    """URL of the publication, "" without a link."""
    description: str
    """The member's text about this entry, "" if absent."""
    contributors: list[str]
    """Names of the other authors."""


class Recommendation(Model):
    """A text by another person who recommends the member. The page shows only some of these texts."""

    name: str
    """The name of the person who wrote the recommendation."""
    url: str
    """URL of that person's profile, "" if absent."""
    text: str
    """The recommendation, without the quotation marks around it."""


class SameName(Model):
    """Another member with the same name."""

    name: str
    """That member's name."""
    headline: str
    """That member's headline, "" if not shown."""
    location: str
    """That member's location, "" if not shown."""
    link: str
    """URL of that member's profile."""
    image: str | None
    """URL of the photo, null if absent."""


class VolunteerExperience(Model):
    """Unpaid work."""

    role: str
    """The member's role."""
    organization: str
    """The organization's name, "" if not shown."""
    organization_url: str
    """URL of the organization's page, "" if absent."""
    cause: str
    """The cause that the work serves, such as "Education", as text; "" if not shown."""
    date_range: str
    """Dates as text, "" if not shown."""
    description: str
    """The member's text about this entry, "" if absent."""


class Affiliation(Model):
    """A company or a school in the section at the top of the profile."""

    logo: Annotated[str | None, Mark.NEVER]
    """URL of the logo, null if absent or a placeholder."""
    name: str
    """Name of the company or school, "" if not shown."""
    url: str
    """URL of the company's or school's page, "" if absent."""


class Education(Model):
    """A school."""

    date_range: str
    """Dates as text ("1973 - 1975"), with months in the form of the linked data if only this has them ("2024-11 -
    2027-04"), "" if not shown."""
    degree: str
    """The degree, "" if not shown or masked."""
    description: str
    """Activities, societies and the member's text about this school; "" if absent."""
    field_of_study: str
    """The subject, "" if not shown or masked."""
    grade: str
    """The grade, "" if not shown or masked."""
    end_date: int | None
    """The last year at the school, null if not shown."""
    start_date: int | None
    """The first year at the school, null if not shown."""
    masked: bool
    """Whether the platform replaced the name, degree, subject or grade by asterisks. Masked fields are empty here."""
    school_image: Annotated[str | None, Mark.NEVER]
    """URL of the logo; null if absent, or if the name is masked: a logo would reveal it."""
    school_name: str
    """The school's name, "" if masked in all sources of the page."""
    school_url: str
    """URL of the school's page on the main site, without a slash at the end; "" if absent or masked."""


class Experience(Model):
    """A position. Several positions at one company are separate rows."""

    company_image: Annotated[str | None, Mark.NEVER]
    """URL of the logo; null if absent, or if the name is masked: a logo would reveal it."""
    company_name: str
    """The employer's name, "" if masked."""
    company_name_source: Annotated[Literal["page", "json_ld", "top_card", "masked"], Mark.NEVER]
    """Where the name was read. "page": in the row itself. "json_ld": in the linked data. "top_card": the row is masked,
    but the section at the top of the profile shows its company, with URL and logo. "masked": the name is masked."""
    company_slug: str
    """The employer's name as it occurs in URLs; "" if masked, or if the employer has no page."""
    company_url: str
    """URL of the employer's page on the main site, without a slash at the end; "" if absent or masked."""
    date_range: str
    """Dates as text ("Jul 2020 - Present"), "" if not shown."""
    description: str
    """The member's text about this entry, "" if absent."""
    duration: Annotated[str, Mark.NEVER]
    """Duration as text ("6 years 1 month"), "" if not shown."""
    employment_type: str
    """Always "": not shown to visitors without an account."""
    end_date: str
    """Last month or year in the position ("Jun 2020"), "Present", or "" if not shown."""
    job_title: str
    """The job title, "" if masked."""
    location: str
    """Location as text, also of a masked position; "" if not shown."""
    start_date: str
    """First month or year in the position ("Jul 2020"), "" if not shown."""
    masked: bool
    """Whether the platform replaced the title or company by asterisks. Masked fields are empty here."""


class RelatedProfile(Model):
    """Another member from the list "people also viewed"."""

    followers: str
    """The platform's text about that member's followers ("17K followers"), "" if not shown."""
    location: str
    """That member's location as text, "" if not shown."""
    name: str
    """That member's name."""
    summary: str
    """The line under the name, "" if absent."""
    image: str | None
    """URL of that member's photo, null if absent."""
    link: str
    """URL of that member's profile."""


class Website(Model):
    """A website that the member links to."""

    label: str
    """The platform's label ("Blog", "Company Website")."""
    url: str
    """The website's own URL, not the platform's redirect."""


class ProfileParams(Params):
    """Params that name a member by the URL of the profile."""

    links: ClassVar = LINKS

    url: Annotated[str, Selects("echo")] = Field(max_length=2_000)
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

    username: Annotated[str | None, Selects("echo")] = Field(default=None, max_length=2_000)
    """The member's name: the part after ``/in/`` in the URL of the public profile. The whole URL is accepted, too."""
    url: Annotated[str | None, Selects("echo")] = Field(default=None, max_length=2_000)
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
    fields_withheld_by_linkedin: Annotated[list[str], Mark.WITHHELD]
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

    about: Annotated[str, Mark.PARTIAL]
    """The member's own text, with line breaks; "" if the page has none."""
    about_truncated: bool
    """Whether the platform shortened the text in ``about``."""
    activity: Annotated[list[Activity], Mark.NEVER]
    """Recent activity, in page order. The page has one of two layouts, which contain different data."""
    activity_count: Annotated[int, Mark.NEVER]
    """Number of rows in ``activity``, all of which are on the page. The platform does not show a total."""
    articles: list[Article]
    """Articles that the member published, in page order."""
    awards: list[Award]
    """Honours that the member received."""
    certifications: list[Certification]
    """The member's licences and certificates."""
    courses: list[Course]
    """Courses that the member attended. Courses that the member taught are not included."""
    languages: list[Language]
    """Languages that the member speaks."""
    organizations: list[Organization]
    """The member's memberships in organizations."""
    projects: list[Project]
    """Projects in which the member took part."""
    publications: list[Publication]
    """The member's publications outside the platform."""
    recommendations: Annotated[list[Recommendation], Mark.NEVER]
    """Texts by other people who recommend the member, as far as the page shows them."""
    same_name: Annotated[list[SameName], Mark.NEVER]
    """Other members with the same name."""
    services: list[str]
    """Always empty: the public page does not show services."""
    skills: list[str]
    """Names of skills. Empty if the member lists none, and in a masked profile, which lacks this section."""
    volunteer_experience: list[VolunteerExperience]
    """The member's unpaid work."""
    background_cover_image_url: Annotated[str, Mark.NEVER]
    """URL of the cover image, "" for the platform's default."""
    connections: Annotated[str, Mark.COUNT]
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
    data_availability: Annotated[DataAvailability, Mark.NEVER]
    """Which fields the platform showed and which it withheld."""
    education: list[Education]
    """The member's schools, in page order. In a masked list, the first row with years, or with the name or logo of
    ``current_school``, and all rows after it, count as schools. Then, schools that only the linked data has."""
    experience: list[Experience]
    """The member's positions, in page order. A masked list has only the first ones: the linked data has the others."""
    first_name: str = Field(alias="firstName")
    """The member's first name."""
    last_name: str = Field(alias="lastName")
    """The member's last name, "" for members with a single name."""
    full_name: str = Field(alias="fullName", min_length=1)
    """The displayed name. Never empty."""
    followers: Annotated[str, Mark.COUNT]
    """The platform's text ("41M followers"). If only the linked data contains the number, the text is the exact number
    and the word "followers". "" if unknown."""
    headline: str
    """The line under the name; "" if absent, as in the masked variant."""
    location: str
    """The member's location as text, "" if not shown."""
    people_also_viewed: Annotated[list[RelatedProfile], Mark.NEVER]
    """Other profiles that the page links to."""
    profile_photo: Annotated[str, Mark.NEVER]
    """URL of the photo, "" if absent."""
    profile_url: str = Field(min_length=1)
    """Canonical URL of the profile. The name in it differs from the requested name if the member changed it.
    Never empty."""
    public_identifier: Annotated[str, Mark.KEY] = Field(min_length=1)
    """The name at the end of ``profile_url``, decoded. Never empty."""
    success: bool
    """Always true, because a failed target has no record."""
    total_experiences: int
    """Number of rows in ``experience``."""
    websites: list[Website]
    """The member's websites, from the section at the top of the profile."""


ContentType = Literal["article", "post", "like", "share"]


# The content envelope


class MemberItem(model.ContentItem):
    """An article by the member, or a post from the member's activity.

    The following are always null or empty, because the page does not show them: the author's id, slideshows, videos and
    their lengths, numbers of views.
    """

    author_id: str | None
    """Always null: not exposed."""
    author_name: Annotated[str, Mark.NEVER]
    """Name of the author. "" for another author's post in the layout with a list, which does not name them."""
    author_username: str
    """The author's name in URLs, after ``/in/``, or after ``/company/`` for a company. In the layout with a list,
    the name in the post's link. "" if the link has no name."""
    caption: Annotated[str, Mark.NEVER]
    """The article's title, or the post's text, which may be shortened with "…" in the layout with a list."""
    comment_count: Annotated[int | None, Mark.COUNT]
    """Number of comments. Null if the page does not show it, as in the layout with a list."""
    content_code: str = Field(min_length=1)
    """The same as ``content_id``. Never empty."""
    content_id: Annotated[str, Mark.KEY] = Field(min_length=1)
    """Id of the activity, which has only digits, or the last part of the article's URL. Never empty."""
    content_link: str = Field(min_length=1)
    """URL of the article or post. Never empty."""
    content_type: ContentType
    """``article``; or what the member did: ``post``, ``like`` or ``share``. It is determined from the tab and the
    author of the post, not from the words on the card. Never empty."""
    hashtags: Annotated[list[str], Mark.NEVER]
    """Hashtags in ``caption`` without "#", in order. The word at which a text is shortened does not count."""
    images: Annotated[list[str], Mark.NEVER]
    """URL of the card's image; empty if the card has none, or only a placeholder."""
    like_count: Annotated[int | None, Mark.COUNT]
    """Number of reactions of all kinds. Null if neither the card nor the linked data contains it."""
    mentions: Annotated[list[str], Mark.NEVER]
    """Handles in ``caption`` without "@", in order. The platform's own mentions are names without "@"."""
    published_date: int | None
    """Time of publication in Unix seconds: from the linked data, or from the id of a post; midnight UTC if only the day
    of an article is known. Null if none of these times is known."""
    thumbnail_image: Annotated[str, Mark.NEVER]
    """The same URL as in ``images``, "" without one."""


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
    banner_image: Annotated[str, Mark.NEVER]
    """URL of the cover image, "" for the platform's default."""
    biography: Annotated[str, Mark.PARTIAL]
    """The member's own text, with line breaks. May be shortened in the masked variant of the page. "" if absent."""
    content_count: Annotated[int | None, Mark.COUNT]
    """Number of content items, null if unknown."""
    display_name: str = Field(min_length=1)
    """The displayed name. Never empty."""
    external_links: list[str]
    """URLs of the websites at the top of the profile, without the platform's redirect."""
    follower_count: Annotated[int | None, Mark.COUNT]
    """Number of followers: exact if the linked data contains it, else rounded as the page shows it. Null if hidden, or
    if it is shortened in another language than English."""
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
    profile_image: Annotated[str, Mark.NEVER]
    """URL of the photo, "" if absent."""
    profile_link: str = Field(min_length=1)
    """Canonical URL of the profile. Never empty."""
    subscriber_count_text: Annotated[str, Mark.NEVER]
    """The page's text with the number of followers ("41M followers"), "" if the page does not show it."""
    total_views: Annotated[int | None, Mark.COUNT]
    """Number of views of all items, null if unknown."""
    username: Annotated[str, Mark.KEY] = Field(min_length=1)
    """The name at the end of ``profile_link``, decoded. It differs from the requested name if the member changed it.
    Never empty."""
    verification_status: bool | None
    """Whether the platform has verified the profile, null if unknown."""


class MemberContent(Model):
    """A member with articles and recent activity."""

    pagination: model.Pagination
    """Always ``{"cursor": "", "has_more": false}``: the page shows one page of content."""
    posts: list[MemberItem]
    """The articles, then the activity, each in page order."""
    profile: MemberProfile
    """The member's profile."""
