"""The records of ``professional-profile`` that must be extracted for the simulated members (specification 2.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crawler.sandbox.professional.activity import cut
from crawler.sandbox.professional.words import Institution, Row, followers_text

if TYPE_CHECKING:
    from crawler.sandbox.professional.people import Member, Position, Study

COUNTRIES = {"United States": "US", "United Kingdom": "GB", "Sweden": "SE", "India": "IN", "Brazil": "BR"}
COUNTRIES |= {"Netherlands": "NL", "Israel": "IL", "Spain": "ES", "United Arab Emirates": "AE"}
NO_INSTITUTION = Institution("company", "", "", None)

LISTS = (
    *(
        "articles",
        "awards",
        "certifications",
        "courses",
        "languages",
        "organizations",
        "people_also_viewed",
        "projects",
    ),
    *("publications", "recommendations", "same_name", "volunteer_experience", "websites"),
)


def record(member: Member) -> dict[str, Any]:
    """Build the expected record of a member."""
    experience, education = _experience(member), _education(member)
    about, truncated = _about(member)
    activity = [_activity(member, row) for row in _in_page_order(member)]
    return {
        **{name: member.rows[name] for name in LISTS},
        "people_also_viewed": [_neighbour(member, row) for row in member.rows["people_also_viewed"]],
        "about": about,
        "about_truncated": truncated,
        "activity": activity,
        "activity_count": len(activity),
        "services": [],
        "skills": list(member.skills),
        "background_cover_image_url": member.cover or "",
        "connections": member.connections if member.counted else "",
        "contact_info": {},
        "country": _country(member),
        "current_company": (member.employer or NO_INSTITUTION).head,
        "current_school": (member.studies[0].at if member.studies else NO_INSTITUTION).head,
        "data_availability": {
            "about_truncated": truncated,
            "authenticated": False,
            "education_found": len(education),
            "fields_withheld_by_linkedin": _withheld(member, experience, education),
            "note": _note(member, experience, education),
            "positions_found": len(experience),
            "positions_masked_by_linkedin": len(experience) if member.masked else 0,
            "positions_with_job_title": 0 if member.masked else len(experience),
            "source": "public_profile_page",
        },
        "education": education,
        "experience": experience,
        "firstName": member.first,
        "lastName": member.last,
        "fullName": member.name,
        "followers": _followers(member),
        "headline": member.headline,
        "location": member.location,
        "profile_photo": member.photo or "",
        "profile_url": member.url,
        "public_identifier": member.slug,
        "success": True,
        "total_experiences": len(experience),
    }


def _about(member: Member) -> tuple[str, bool]:
    if not member.about:
        return "", False
    if not member.masked:
        return member.about, False
    # The description in the page's head is a single line; the linked data contains the line breaks.
    return member.cut_about if member.linked else " ".join(member.cut_about.split()), True


def _country(member: Member) -> str:
    edition = {"www": "", "uk": "GB"}.get(member.edition, member.edition.upper())
    country = member.country if member.linked else edition
    return country or COUNTRIES.get(member.location.rpartition(", ")[2], "")


def followers_shown(member: Member) -> str:
    """Return the page's text with the number of followers, "" if the page does not show it."""
    return followers_text(member.followers) if member.counted else ""


def _followers(member: Member) -> str:
    return followers_shown(member) or (f"{member.followers} followers" if member.linked else "")


def _neighbour(member: Member, row: Row) -> Row:
    """Build another member's row. In the layout of 2024, numbers of followers are not shown."""
    return row | {"followers": ""} if member.rendered else row


def _in_page_order(member: Member) -> list[Row]:
    rows = member.rows["activity"]
    if member.layout == "list":
        return rows
    shared = [row for row in rows if row["action"].endswith("shared this")]
    return shared + [row for row in rows if not row["action"].endswith("shared this")]


def _activity(member: Member, row: Row) -> Row:
    """Build an activity row. The list shortens texts, but the linked data contains the member's own posts in full."""
    whole = member.layout == "tabs" or (member.linked and row["action"].startswith("Posted"))
    return row if whole else {**row, "text": cut(row["text"])}


# Positions and schools


def _experience(member: Member) -> list[Row]:
    if not member.masked:
        return [_position(position) for position in member.positions]
    at = member.positions[0].at
    first = {
        **_hidden(),
        "company_image": at.logo,
        "company_name": at.name,
        "company_name_source": "top_card" if at == member.employer else "page",
        "company_slug": at.slug if at == member.employer else "",
        "company_url": at.url if at == member.employer else "",
    }
    others = len(member.positions) - 1 + len(member.studies) - len(_known_schools(member))
    return [first] + [_hidden() for _ in range(others)]


def _position(position: Position) -> Row:
    return {
        "company_image": position.at.logo,
        "company_name": position.at.name,
        "company_name_source": "page",
        "company_slug": position.at.slug,
        "company_url": position.at.url,
        "date_range": position.date_range,
        "description": position.description,
        "duration": position.duration,
        "employment_type": "",
        "end_date": position.end,
        "job_title": position.title,
        "location": position.location,
        "start_date": position.start,
        "masked": False,
    }


def _hidden() -> Row:
    texts = (
        *("company_name", "company_slug", "company_url", "date_range", "description", "duration", "employment_type"),
        *("end_date", "job_title", "location", "start_date"),
    )
    return {**dict.fromkeys(texts, ""), "company_image": None, "company_name_source": "masked", "masked": True}


def _education(member: Member) -> list[Row]:
    if member.masked:
        return [_masked_study(study) for study in _known_schools(member)]
    return [_study(study) for study in member.studies]


def _known_schools(member: Member) -> tuple[Study, ...]:
    """Return the schools that can be recognised on a masked page: the first one with years, or with the logo of the
    school at the top of the page, and all schools after it. A school before it is expected as a position.
    """
    shown = (n for n, study in enumerate(member.studies) if study.start or study.at.logo == _own_logo(member))
    return member.studies[next(shown, len(member.studies)) :]


def _own_logo(member: Member) -> str:
    return member.studies[0].at.logo or "none"


def _study(study: Study) -> Row:
    return {
        "date_range": study.date_range,
        "degree": study.degree,
        "description": study.description,
        "field_of_study": study.field,
        "grade": study.grade,
        "end_date": study.end,
        "start_date": study.start,
        "masked": False,
        "school_image": study.at.logo,
        "school_name": study.at.name,
        "school_url": study.at.url,
    }


def _masked_study(study: Study) -> Row:
    texts = ("degree", "description", "field_of_study", "grade", "school_name", "school_url")
    shown = {"date_range": study.date_range, "start_date": study.start, "end_date": study.end}
    return {**dict.fromkeys(texts, ""), **shown, "masked": True, "school_image": None}


# The fields that the page withholds from visitors without an account


def _withheld(member: Member, experience: list[Row], education: list[Row]) -> list[str]:
    always = ["contact_info", "experience.employment_type"]
    if not member.masked:
        return always
    names = ["about", "experience.date_range", "experience.job_title", "headline", "skills"]
    names += ["education"] if education else []
    names += ["experience.company_name"] if len(experience) > 1 else []
    return sorted(always + names)


def _note(member: Member, experience: list[Row], education: list[Row]) -> str:
    if member.masked:
        number = len(experience)
        return (
            "The platform served the masked variant of this profile: "
            f"{number} of {number} positions have no readable title or company."
        )
    if not experience and not education and not member.about:
        return "The public page of this profile shows neither positions nor schools nor a text about the member."
    return "The platform served this profile in full, as far as it is shown to visitors without an account."
