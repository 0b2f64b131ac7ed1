"""The sections in simulated profile pages: positions, schools, the masked list, and the lists of cards."""

from __future__ import annotations

import re
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING

from crawler.sandbox.professional.markup import (
    Markup,
    date_range,
    heading,
    lines,
    more_text,
    redirected,
    section,
    show_more,
    tracked,
)
from crawler.sandbox.professional.words import Row
from crawler.sandbox.skeletons import Fragments

if TYPE_CHECKING:
    from crawler.sandbox.professional.people import Member, Position, Study

fill = Fragments(__file__)

SHOWN_POSITIONS = 3
"""The number of positions in the masked list. The linked data has the others, too."""


def masked(text: str) -> str:
    """Replace every letter and digit in a text with an asterisk, as the platform does. Words keep their lengths."""
    return re.sub(r"\w", "*", text)


def summary(member: Member) -> str:
    """Build the "About" section. A masked page, in which asterisks replace letters, shows the beginning of the text."""
    about = (
        fill("cut about", text=lines(member.cut_about))
        if member.masked
        else fill("paragraph", text=lines(member.about))
    )
    shown = about if member.about else ""
    return section("summary", "About", shown, kind="pp-section summary")


def history(markup: Markup, member: Member) -> str:
    """Build the positions and schools: as one list on a masked page, else as two sections."""
    if member.masked:
        return _masked_block(markup, member)
    groups = [list(rows) for _, rows in groupby(member.positions, key=lambda position: position.at)]
    positions = "".join(_group(markup, rows) if len(rows) > 1 else _position(markup, rows[0]) for rows in groups)
    schools = "".join(_study(markup, study) for study in member.studies)
    return section("experience", "Experience", _list("experience", positions), kind="pp-section") + section(
        "educationsDetails", "Education", _list("education", schools)
    )


def _list(name: str, rows: str) -> str:
    return rows and fill("list", name=name, rows=rows)


def _group(markup: Markup, positions: list[Position]) -> str:
    at = positions[0].at
    header = fill("group header", at=at, picture=markup.picture(at.logo))
    rows = "".join(_position(markup, position, kind="experience-group-position") for position in positions)
    linked = fill("group link", href=tracked(at.shown_url), header=header) if at.url else header
    return fill("group", header=linked, rows=rows)


def _position(markup: Markup, position: Position, kind: str = "experience-item") -> str:
    at = position.at
    employer = fill("employer", at=at)
    subtitle = fill("employer link", href=tracked(at.shown_url), employer=employer) if at.url else employer
    details = (date_range(position.date_range, position.duration), escape(position.location))
    meta = "".join(fill("position detail", detail=each) for each in details if each)
    title, body = fill("position title", position=position), meta + more_text(position.description)
    card = markup.card(title, subtitle, body, markup.logo(at.logo, at.shown_url), kind)
    return card.replace("<li ", '<li data-section="currentPositionsDetails" ', 1)


def _study(markup: Markup, study: Study) -> str:
    details = [("", study.degree), *((' data-section="educations"', each) for each in (study.field, study.grade))]
    shown = [fill("study detail", mark=mark, text=each) if each else "<!---->" for mark, each in details]
    dates = fill("study dates", dates=date_range(study.date_range)) if study.date_range else ""
    description = fill("study description", text=lines(study.description)) if study.description else ""
    at = study.at
    return markup.card(
        heading(at.name, tracked(at.shown_url) if at.url else ""),
        " ".join(shown) if any(each for _, each in details) else "-",
        dates + description,
        markup.logo(at.logo, at.shown_url),
        "education__list-item",
    )


# The masked list: first the positions, then the schools, with nothing to separate them.


def _masked_block(markup: Markup, member: Member) -> str:
    first, *others = member.positions[:SHOWN_POSITIONS]
    title = fill("masked title", title=masked(first.title))
    visible = markup.card(heading(first.at.name), title, "", markup.logo(first.at.logo))
    rows = [(each.at, masked(each.title), "") for each in others]
    rows += [
        (each.at, f"{masked(f'{each.degree} {each.field}')} undefined", date_range(each.date_range))
        for each in member.studies
    ]
    hidden = "".join(
        markup.card(
            heading(masked(at.name)),
            fill("paragraph", text=second),
            dates and fill("paragraph", text=dates),
            markup.logo(at.logo),
        )
        for at, second, dates in rows
    )
    return fill("masked", visible=visible, blurred=hidden and fill("blurred", rows=hidden))


# Lists of cards


def cards(markup: Markup, member: Member) -> str:
    """Build the sections below the schools, without empty ones."""
    made = []
    for name, field, title, write in _SECTIONS:
        content = "".join(write(markup, row) for row in member.rows[field])
        made.append(section(name, title, _list(name, content)))
    return "".join(made) + _recommendations(markup, member) + _skills(member)


def _volunteering(markup: Markup, row: Row) -> str:
    organization = escape(row["organization"])
    if row["organization_url"]:
        organization = fill("link", href=tracked(row["organization_url"]), text=row["organization"])
    details = (date_range(row["date_range"], "3 years"), escape(row["cause"]))
    shown = "".join(fill("detail", detail=each) for each in details if each)
    return markup.card(heading(row["role"]), organization, shown + more_text(row["description"]))


def _project(markup: Markup, row: Row) -> str:
    body = more_text(row["description"]) + _faces(markup, row["contributors"], "Other creators")
    title = heading(row["title"], redirected(row["url"]))
    return markup.card(title, date_range(row["date_range"]), body, classes="personal-project")


def _publication(markup: Markup, row: Row) -> str:
    publisher = f"<span>{escape(row['publisher'])}</span>" if row["publisher"] else ""
    body = more_text(row["description"]) + _faces(markup, row["contributors"], "Other authors")
    return markup.card(heading(row["title"], redirected(row["url"])), publisher + _time(row["date"]), body)


def _award(markup: Markup, row: Row) -> str:
    body = fill("award", date=_time(row["date"]), description=more_text(row["description"]))
    return markup.card(heading(row["title"]), escape(row["issuer"]) or "-", body)


def _certification(markup: Markup, row: Row) -> str:
    issued = f"<span>Issued {_time(row['issued'])}</span>" if row["issued"] else ""
    see = fill("credential", href=redirected(row["credential_url"])) if row["credential_url"] else ""
    issuer = fill("link", href="https://www.linkedin.com/company/issuer?trk=x", text=row["issuer"])
    body = fill("certification", issued=issued, see=see)
    return markup.card(heading(row["name"], redirected(row["url"])), issuer, body)


def _plain(title: str, subtitle: str, more: str = "") -> str:
    # No saved page has these sections. It is only known that each of their rows has a heading and a line below it.
    return fill("plain", title=title, subtitle=escape(subtitle) or "-", more=more)


def _organization(_markup: Markup, row: Row) -> str:
    details = (date_range(row["date_range"]), lines(row["description"]))
    more = "".join(fill("paragraph", text=each) for each in details if each)
    return _plain(row["name"], row["position"], more)


def _recommendations(markup: Markup, member: Member) -> str:
    rows = "".join(
        fill("recommendation", row=row, href=tracked(row["url"]), picture=markup.picture(None))
        for row in member.rows["recommendations"]
    )
    return section("recommendations", "Recommendations received", rows and fill("recommendations", rows=rows))


def _skills(member: Member) -> str:
    rows = "".join(fill("skill", skill=skill) for skill in member.skills)
    hidden = len(member.skills) - 12
    label = f"Show {hidden} more skills" if hidden > 0 else "Show more"
    return section("skills", "Skills", rows and show_more(rows, 12, label))


def _time(text: str) -> str:
    return text and fill("time", text=text)


def _faces(markup: Markup, names: list[str], title: str) -> str:
    faces = "".join(fill("face", name=name, picture=markup.picture(None)) for name in names)
    return faces and fill("faces", title=title, faces=faces)


_SECTIONS = (
    ("volunteering", "volunteer_experience", "Volunteer Experience", _volunteering),
    ("certifications", "certifications", "Licenses & Certifications", _certification),
    ("publications", "publications", "Publications", _publication),
    ("courses", "courses", "Courses", lambda _, row: _plain(row["name"], row["number"])),
    ("projects", "projects", "Projects", _project),
    ("honors-and-awards", "awards", "Honors & Awards", _award),
    ("languages", "languages", "Languages", lambda _, row: _plain(row["name"], row["proficiency"])),
    ("organizations", "organizations", "Organizations", _organization),
)
