"""Professional network: models for the rows in a profile's lists, and for its top section (specification 2.6)."""

from __future__ import annotations

from typing import Annotated, Literal

from crawler.platforms.model import Mark, Model


class Activity(Model):
    """A post that the member wrote, shared, liked or commented on."""

    action: str
    """The platform's line about who did what, such as "Liked by Jane Doe" or "Jane Doe shared this"."""
    author: str
    """Name of the post's author. "" for another author's post in the layout with a list, which does not name them."""
    author_url: str
    """URL of the author's page, "" if ``author`` is."""
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
