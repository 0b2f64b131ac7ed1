"""The records that must be extracted for the simulated members (specification 2.6), and of v4 (specification 2.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from crawler.sandbox.professional.activity import cut
from crawler.sandbox.professional.figures import figures, is_framed
from crawler.sandbox.professional.linked import is_own
from crawler.sandbox.professional.section import SHOWN_POSITIONS
from crawler.sandbox.professional.words import Institution, Row, followers_text
from crawler.sandbox.skeletons import Skeletons

if TYPE_CHECKING:
    from crawler.sandbox.professional.people import Member, Study

COUNTRIES = {"United States": "US", "United Kingdom": "GB", "Sweden": "SE", "India": "IN", "Brazil": "BR"}
COUNTRIES |= {"Netherlands": "NL", "Israel": "IL", "Spain": "ES", "United Arab Emirates": "AE"}
UNITS = {"M": 1_000_000, "K": 1_000}
NO_INSTITUTION = Institution("company", "", "", None)

fill = Skeletons(__file__)


def record(member: Member) -> dict[str, Any]:
    """Build the expected record of a member."""
    experience, education = _experience(member), _education(member)
    about, truncated = _about(member)
    activity = [_activity(member, row) for row in _in_page_order(member)]
    return fill(
        "profile",
        member=member,
        neighbours=[_neighbour(member, row) for row in member.rows["people_also_viewed"]],
        about=about,
        truncated=truncated,
        activity=activity,
        activity_count=len(activity),
        skills=list(member.skills),
        cover=member.cover or "",
        connections=member.connections if member.counted else "",
        country=_country(member),
        company=member.employer or NO_INSTITUTION,
        school=member.studies[0].at if member.studies else NO_INSTITUTION,
        education=education,
        schools=len(education),
        experience=experience,
        positions=len(experience),
        masked=len(experience) if member.masked else 0,
        titled=0 if member.masked else len(experience),
        withheld=_withheld(member, experience, education),
        note=_note(member, experience, education),
        followers=_followers(member),
        photo=member.photo or "",
    )


def _about(member: Member) -> tuple[str, bool]:
    if not member.about:
        return "", False
    return (member.cut_about, True) if member.masked else (member.about, False)


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
    """Build an activity row.

    The list shortens texts, but the linked data contains the member's own posts in full. The list does not name the
    authors of other posts.
    """
    if member.layout == "tabs":
        return row
    if not is_own(member, row):
        return {**row, "text": cut(row["text"]), "author": "", "author_url": ""}
    return row if member.linked else {**row, "text": cut(row["text"])}


# Positions and schools


def _experience(member: Member) -> list[Row]:
    if not member.masked:
        return [fill("position", position=position, at=position.at) for position in member.positions]
    at = member.positions[0].at
    is_employer = at == member.employer
    is_linked = is_employer or member.linked
    first = {
        **fill("hidden position"),
        "company_image": at.logo,
        "company_name": at.name,
        "company_name_source": "top_card" if is_employer else "page",
        "company_slug": at.slug if is_linked else "",
        "company_url": at.url if is_linked else "",
    }
    places = [each.location if member.linked else "" for each in member.positions]
    shown = places if member.linked else places[:SHOWN_POSITIONS]
    first["location"] = shown.pop(0)
    # In the masked list, a school that nothing marks as one is between the positions.
    unmarked = len(member.studies) - len(_known_schools(member))
    hidden = [{**fill("hidden position"), "location": place} for place in shown]
    listed = SHOWN_POSITIONS - 1
    return [first, *hidden[:listed], *(fill("hidden position") for _ in range(unmarked)), *hidden[listed:]]


def _education(member: Member) -> list[Row]:
    if member.masked:
        return [_masked_study(member, study) for study in _known_schools(member)]
    return [fill("study", study=study) for study in member.studies]


def _masked_study(member: Member, study: Study) -> Row:
    """Build the row of a school on a masked page. The linked data has the schools with years in clear, with months."""
    if not (member.linked and study.start):
        return fill("masked study", study=study, at=NO_INSTITUTION, description="", date_range=study.date_range)
    dates = f"{study.start}-09" + (f" - {study.end}-06" if study.end else "")
    return fill("masked study", study=study, at=study.at, description=study.description, date_range=dates)


def _known_schools(member: Member) -> tuple[Study, ...]:
    """Return the schools that can be recognised on a masked page: the first one with years, or with the logo of the
    school at the top of the page, and all schools after it. A school before it is expected as a position.
    """
    shown = (n for n, study in enumerate(member.studies) if study.start or study.at.logo == _own_logo(member))
    return member.studies[next(shown, len(member.studies)) :]


def _own_logo(member: Member) -> str:
    return member.studies[0].at.logo or "none"


# The fields that the page withholds from visitors without an account


def _withheld(member: Member, experience: list[Row], education: list[Row]) -> list[str]:
    always = ["contact_info", "experience.employment_type"]
    if not member.masked:
        return always
    names = ["about", "experience.date_range", "experience.job_title", "headline", "skills"]
    names += ["education"] if education else []
    names += ["experience.company_name"] if len(experience) > 1 else []
    return sorted(always + names)


UNREAD_NOTE = "Parts of the page could not be read, and the warnings name them: the fields with these parts lack data."


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


# The records of ``professional-profile-v4``


def content_record(member: Member) -> dict[str, Any]:
    """Build the expected record of ``professional-profile-v4`` for a member."""
    flat = record(member)
    articles = [_article(member, row) for row in flat["articles"]]
    return fill(
        "content",
        flat=flat,
        posts=articles + [_post(member, row) for row in flat["activity"]],
        links=[row["url"] for row in flat["websites"]],
        followers=_exact_followers(member),
        followers_text=followers_shown(member),
    )


def _exact_followers(member: Member) -> int | None:
    """Return the exact number of followers from the linked data, else the rounded number on the page, else None."""
    if member.linked:
        return member.followers
    number, _, _ = followers_shown(member).partition(" ")
    if not number:
        return None
    return int(number[:-1]) * UNITS[number[-1]] if number[-1] in UNITS else int(number)


def _article(member: Member, row: Row) -> Row:
    stated = figures(row)
    return fill(
        "post",
        row=row,
        caption=row["title"],
        hashtags=[],
        thumbnail=row["image"] or "",
        kind="article",
        images=[row["image"]] if row["image"] else [],
        author=member.name,
        username=member.slug,
        id=row["link"].rpartition("/")[2],
        comments=stated.comments,
        likes=stated.reactions,
        published=stated.published if member.linked else stated.day,
    )


def _post(member: Member, row: Row) -> Row:
    """Build the expected item for an activity row.

    In the layout with a list, cards show no numbers of reactions and comments, and no author except the member. Every
    author's handle is in the link of the post.
    """
    stated, tabs, own = figures(row), member.layout == "tabs", is_own(member, row)
    return fill(
        "post",
        row=row,
        caption=row["text"],
        hashtags=_hashtags(row["text"]),
        thumbnail=row["image"] or "",
        kind=_kind(row, own=own, tabs=tabs),
        images=[row["image"]] if row["image"] else [],
        author=row["author"] if tabs or own else "",
        username=unquote(row["link"].rpartition("/")[2].partition("_")[0]),
        id=row["link"].rpartition("-activity-")[2].partition("-")[0],
        comments=stated.comments if tabs else None,
        likes=stated.reactions if tabs or (member.linked and own) else None,
        published=stated.published,
    )


def _hashtags(text: str) -> list[str]:
    """Return the hashtags in a text, each once. The last word of a shortened text does not count."""
    words = text.split()[:-1] if text.endswith("…") else text.split()
    return list(dict.fromkeys(word[1:] for word in words if word.startswith("#")))


def _kind(row: Row, *, own: bool, tabs: bool) -> str:
    if not own:
        return "like"
    return "share" if tabs and is_framed(row) else "post"
