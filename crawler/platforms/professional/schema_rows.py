"""Professional network: the rows of a profile's lists, and the company and school of its head (specification 2.6)."""

from __future__ import annotations

from typing import Literal

from crawler.platforms.model import Model


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
