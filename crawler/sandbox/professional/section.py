"""The sections in simulated profile pages: positions, schools, the masked list, and the lists of cards."""

from __future__ import annotations

import re
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING

from crawler.sandbox.professional.markup import (
    MAIN_TITLE,
    Markup,
    date_range,
    heading,
    lines,
    redirected,
    show_more,
    tracked,
)
from crawler.sandbox.professional.words import Row

if TYPE_CHECKING:
    from crawler.sandbox.professional.people import Member, Position, Study


def masked(text: str) -> str:
    """Replace every letter and digit in a text with an asterisk, as the platform does. Words keep their lengths."""
    return re.sub(r"\w", "*", text)


def summary(markup: Markup, member: Member) -> str:
    """Build the "About" section; "" on a masked page (with asterisks in place of letters), which does not show it."""
    shown = "" if member.masked or not member.about else f"<p>{lines(member.about)}</p>"
    return markup.section("summary", "About", shown, kind="pp-section summary")


def history(markup: Markup, member: Member) -> str:
    """Build the positions and schools: as one list on a masked page, else as two sections."""
    if member.masked:
        return _masked_block(markup, member)
    groups = [list(rows) for _, rows in groupby(member.positions, key=lambda position: position.at)]
    positions = "".join(_group(markup, rows) if len(rows) > 1 else _position(markup, rows[0]) for rows in groups)
    schools = "".join(_study(markup, study) for study in member.studies)
    return markup.section(
        "experience", "Experience", positions and f'<ul class="experience__list">{positions}</ul>', kind="pp-section"
    ) + markup.section("educationsDetails", "Education", schools and f'<ul class="education__list">{schools}</ul>')


def _group(markup: Markup, positions: list[Position]) -> str:
    at = positions[0].at
    header = (
        f'<div class="experience-group-header flex pb-1.5">{markup.picture(at.logo)}<div class="pl-1">'
        f'<h4 class="experience-group-header__company text-[18px] font-bold">{escape(at.name)}!</h4>'
        '<p class="experience-group-header__meta-item mt-0.5"><span class="date-range"><span>17 years 11 months</span>'
        "</span></p></div></div>"
    )
    if at.url:
        header = f'<a class="experience-group-header__url no-underline" href="{tracked(at.url)}">{header}</a>'
    rows = "".join(_position(markup, position, kind="experience-group-position") for position in positions)
    return f'<li class="experience-group">{header}<ul class="experience-group__positions">{rows}</ul></li>'


def _position(markup: Markup, position: Position, kind: str = "experience-item") -> str:
    at = position.at
    subtitle = f'<span class="experience-item__subtitle">\n  {escape(at.name)} \n</span>'
    if at.url:
        subtitle = f'<a class="relative hover:underline" href="{tracked(at.url)}">{subtitle}</a>'
    dates = date_range(position.date_range, position.duration)
    meta = "".join(
        f'<p class="experience-item__meta-item">\n  {each}\n</p>' for each in (dates, escape(position.location)) if each
    )
    title = f'<span class="experience-item__title">\n  {escape(position.title)}\n</span>'
    body = meta + markup.more_text(position.description)
    card = markup.card(title, subtitle, body, markup.logo(at.logo, at.url), kind)
    return card.replace("<li ", '<li data-section="currentPositionsDetails" ', 1)


def _study(markup: Markup, study: Study) -> str:
    places = [("", study.degree), *((' data-section="educations"', each) for each in (study.field, study.grade))]
    shown = " ".join(
        f'<span class="control-transition"{mark}>{escape(each)}</span>' if each else "<!---->" for mark, each in places
    )
    dates = f'<p class="my-0.5 mx-0 inline-block">{date_range(study.date_range)}</p>' if study.date_range else ""
    description = (
        f'<div class="control-transition"><p>{lines(study.description)}</p></div>' if study.description else ""
    )
    at = study.at
    title = heading(at.name, tracked(at.url) if at.url else "")
    return markup.card(
        title,
        shown if any(each for _, each in places) else "-",
        dates + description,
        markup.logo(at.logo, at.url),
        "education__list-item",
    )


# The masked list: first the positions, then the schools, with nothing to separate them.


def _masked_block(markup: Markup, member: Member) -> str:
    first, *others = member.positions
    title = f'<p class="blur" aria-hidden="true">\n  {masked(first.title)}\n</p>'
    visible = markup.card(heading(first.at.name), title, "", markup.logo(first.at.logo))
    rows = [(each.at, f"<p>{masked(each.title)}</p>", "") for each in others] + [
        (each.at, f"<p>{masked(f'{each.degree} {each.field}')} undefined</p>", date_range(each.date_range))
        for each in member.studies
    ]
    hidden = "".join(
        markup.card(heading(masked(at.name)), second, dates and f"<p>{dates}</p>", markup.logo(at.logo))
        for at, second, dates in rows
    )
    blurred = hidden and (
        '<div class="blurred-content blur" tabindex="-1" aria-hidden="true">'
        f'<ul class="blurred-list" aria-hidden="true">{hidden}</ul></div>'
    )
    return (
        '<section class="core-section-container core-section-container--with-border py-4 pp-section '
        'experience-education" data-nosnippet="true"><h2 class="core-section-container__title section-title">'
        'Experience & Education</h2><div class="core-section-container__content break-words">'
        '<div class="blurred-overlay w-screen h-screen relative experience-education__list">'
        f'<ul class="visible-list">{visible}</ul>{blurred}'
        '<a class="blurred-overlay__sign-in-cta" href="/uas/login">View the full profile</a></div></div></section>'
    )


# Lists of cards


def cards(markup: Markup, member: Member) -> str:
    """Build the sections below the schools, without empty ones."""
    rows, made = member.rows, []
    for name, field, title, write in _SECTIONS:
        content = "".join(write(markup, row) for row in rows[field])
        made.append(markup.section(name, title, content and f'<ul class="{name}__list">{content}</ul>'))
    return "".join(made) + _recommendations(markup, member) + _skills(markup, member)


def _volunteering(markup: Markup, row: Row) -> str:
    organization = escape(row["organization"])
    if row["organization_url"]:
        organization = f'<a href="{tracked(row["organization_url"])}">{organization}</a>'
    dates = f'<p class="my-1">{date_range(row["date_range"], "3 years")}</p>' if row["date_range"] else ""
    cause = f'<p class="my-1">{escape(row["cause"])}</p>' if row["cause"] else ""
    return markup.card(heading(row["role"]), organization, dates + cause + markup.more_text(row["description"]))


def _project(markup: Markup, row: Row) -> str:
    body = markup.more_text(row["description"]) + _faces(markup, row["contributors"], "Other creators")
    title = heading(row["title"], redirected(row["url"]))
    return markup.card(title, date_range(row["date_range"]), body, classes="personal-project")


def _publication(markup: Markup, row: Row) -> str:
    publisher = f"<span>{escape(row['publisher'])}</span>" if row["publisher"] else ""
    body = markup.more_text(row["description"]) + _faces(markup, row["contributors"], "Other authors")
    return markup.card(heading(row["title"], redirected(row["url"])), publisher + _time(row["date"]), body)


def _award(markup: Markup, row: Row) -> str:
    body = f'<div class="not-first-middot">{_time(row["date"])}</div>{markup.more_text(row["description"])}'
    return markup.card(heading(row["title"]), escape(row["issuer"]) or "-", body)


def _certification(markup: Markup, row: Row) -> str:
    issued = f"<span>Issued {_time(row['issued'])}</span>" if row["issued"] else ""
    see = (
        f'<div><a class="btn-md" data-tracking-control-name="public_profile_see-credential" rel="nofollow" '
        f'href="{redirected(row["credential_url"])}">See credential</a></div>'
        if row["credential_url"]
        else ""
    )
    issuer = f'<a href="https://www.linkedin.com/company/issuer?trk=x">{escape(row["issuer"])}</a>'
    body = f'<div class="not-first-middot">{issued}</div>{see}'
    return markup.card(heading(row["name"], redirected(row["url"])), issuer, body)


def _plain(title: str, subtitle: str) -> str:
    # These sections are on no saved page. It is only known that an entry has a heading and a line below it.
    second = escape(subtitle) or "-"
    return f'<li class="profile-section-card"><div><h3>\n{escape(title)}\n</h3><h4>{second}</h4></div></li>'


def _organization(_markup: Markup, row: Row) -> str:
    dates = f"<p>{date_range(row['date_range'])}</p>" if row["date_range"] else ""
    text = f"<p>{lines(row['description'])}</p>" if row["description"] else ""
    return _plain(row["name"], row["position"]).replace("</div></li>", f"{dates}{text}</div></li>")


def _recommendations(markup: Markup, member: Member) -> str:
    rows = "".join(
        '<li><div class="endorsement-card flex flex-col">'
        f'<a class="endorsement-card__entity" href="{tracked(row["url"])}">{markup.picture(None)}'
        f'<div class="base-main-card__info"><h3 class="{MAIN_TITLE}">{escape(row["name"])}</h3>'
        '<div class="base-main-card__metadata"><p class="endorsement-card__content body-text">'
        f"“{escape(row['text'])}”</p></div></div></a></div></li>"
        for row in member.rows["recommendations"]
    )
    more = (
        '<p class="my-2" data-test-id="recommendations__recommenders">47 people have recommended them</p>'
        '<a href="https://www.linkedin.com/signup" data-test-id="recommendations-cta">Join now to view</a>'
    )
    return markup.section("recommendations", "Recommendations received", rows and f"<ul>{rows}</ul><div>{more}</div>")


def _skills(markup: Markup, member: Member) -> str:
    rows = "".join(
        '<li class="skills__item skills__item--link"><a href="https://www.linkedin.com/learning/search?keywords=x&amp;'
        f'trk=public_profile_skill">\n  {escape(skill)}\n</a></li>'
        for skill in member.skills
    )
    return markup.section("skills", "Skills", rows and show_more(rows, 12))


def _time(text: str) -> str:
    return f"<time>{text}</time>" if text else ""


def _faces(markup: Markup, names: list[str], title: str) -> str:
    if not names:
        return ""
    faces = "".join(
        '<li class="align-top inline-block mr-1"><a class="face-pile__url" href="https://www.linkedin.com/in/x?trk=x" '
        f'title="{escape(name)}">{markup.picture(None)}</a></li>'
        for name in names
    )
    return f'<div class="mt-2">{title}</div><ul class="list-none mt-1">{faces}</ul>'


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
