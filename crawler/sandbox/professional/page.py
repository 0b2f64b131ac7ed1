"""The simulated network's complete profile pages, with the structure and size of real ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from crawler.sandbox.professional import activity, section
from crawler.sandbox.professional.linked import linked_data
from crawler.sandbox.professional.markup import DEFAULT_PHOTO, STATIC, Markup, full_link, redirected, show_more, tracked
from crawler.sandbox.professional.markup import section as titled_section
from crawler.sandbox.professional.words import PUBLIC, followers_text
from crawler.sandbox.skeletons import Fragments

if TYPE_CHECKING:
    from crawler.sandbox.professional.people import Member
    from crawler.sandbox.professional.words import Institution, Row

MODALS = ("follow", "nav", "browse", "activity", "experience", "bottom", "base", "upsell", "report")
DEFAULT_COVER = f"{STATIC}/5q92mjc5c51bjlwaj3rs9aa82"
LANGUAGES = 27
FOOTER = ("about", "accessibility", "user agreement", "privacy policy", "cookie policy", "brand policy")

fill = Fragments(__file__)


def profile(member: Member, *, light: bool) -> bytes:
    """Render the profile page of a member."""
    markup = Markup(rendered=member.rendered, light=light)
    parts = (
        _top_card(markup, member),
        section.summary(member),
        _instructor_courses(markup, member),
        activity.articles(markup, member),
        activity.first(markup, member),
        section.history(markup, member),
        section.cards(markup, member),
        activity.more(markup, member),
        fill("bottom", member=member),
    )
    windows = "".join(markup.sign_in(member.first, member.slug, trk, member.photo) for trk in MODALS)
    footer = "" if light else _footer()
    body = fill("profile", profile="".join(parts), rail=_rail(markup, member), footer=footer, windows=windows)
    return document(_head(member), body)


def document(head: str, body: str) -> bytes:
    """Render a page of the network around its content."""
    return fill("document", head=head, body=body).encode()


def page_key(key: str, title: str) -> str:
    """Build the beginning of the HTML head, which contains the page key and the title."""
    return fill("head", key=key, title=title)


def _head(member: Member) -> str:
    employer = member.employer
    title = f"{member.name} - {member.headline or (employer.name if employer else '')}"
    properties = {
        "og:title": f"{title} | LinkedIn",
        "og:description": _described(member),
        "og:type": "profile",
        "profile:first_name": member.first,
        "profile:last_name": member.last,
        "og:url": member.url,
        "og:image": member.photo or DEFAULT_PHOTO,
    }
    shown = (fill("property", key=key, value=value) for key, value in properties.items() if value)
    head = page_key("public_profile_v3_desktop", title) + fill("canonical", url=member.url) + "".join(shown)
    head += fill("apps", url=member.url, title=title, text=_described(member), picture=member.photo or DEFAULT_PHOTO)
    if not member.linked:
        return head
    return head + fill("linked data", block=orjson.dumps(linked_data(member)).decode().replace("</", "<\\/"))


def _described(member: Member) -> str:
    employer, school = member.employer, member.studies[0].at if member.studies and not member.masked else None
    about = " ".join((member.cut_about if member.masked else member.about).split())
    parts = [
        member.headline,
        about,
        f"Experience: {employer.name}" if employer else "",
        f"Education: {school.name}" if school else "",
        f"Location: {member.location.partition(',')[0]}" if member.location else "",
        f"{member.connections} on LinkedIn." if member.counted else "",
    ]
    description = " · ".join(part for part in parts if part)
    viewed = f"View {member.first}’s profile on LinkedIn, a professional community of 1 billion members."
    return f"{description}{' ' if member.counted else ' · '}{viewed}"


# The top of the profile


def _top_card(markup: Markup, member: Member) -> str:
    logo, title, contact, message = (
        markup.sign_in(member.first, member.slug, f"top-card_{trk}", member.photo)
        for trk in ("logo", "title", "contact-info", "secondary-cta")
    )
    shown = (followers_text(member.followers), member.connections) if member.counted else ()
    layout = " of 2024" if member.rendered else ""
    place = fill(f"place{layout}", member=member) if member.location else ""
    return fill(
        "top card",
        member=member,
        cover=member.cover or DEFAULT_COVER,
        photo=markup.picture(
            member.photo,
            "hue-web-entity__image rounded-[50%] w-16 h-16 top-card-layout__entity-image top-card__profile-image "
            "top-card__profile-image--real-image",
        ),
        logo_window=logo,
        title_window=title,
        message_window=message,
        headline=fill("headline", member=member) if member.headline else "",
        subheader=fill(f"subheader{layout}", place=place, window=contact),
        counts="".join(fill("count", count=each) for each in shown),
        **_chips(markup, member),
    )


def _chips(markup: Markup, member: Member) -> dict[str, str]:
    kind = "currentPositionsDetails" if member.employer else "pastPositionsDetails"
    employer = member.employer or (member.positions[0].at if member.positions else None)
    school = member.studies[0].at if member.studies else None
    return {
        "employer": _chip(markup, kind, employer),
        "school": _chip(markup, "educationsDetails", school),
        "websites": _websites(markup, member.rows["websites"]),
    }


def _chip(markup: Markup, kind: str, place: Institution | None) -> str:
    if place is None:
        return ""
    tag, href = ("a", f' href="{tracked(place.shown_url)}"') if place.url else ("div", "")
    return fill("chip", kind=kind, tag=tag, href=href, picture=markup.picture(place.logo), place=place)


def _websites(markup: Markup, rows: list[Row]) -> str:
    if len(rows) == 1:
        return fill("website", row=rows[0], href=redirected(rows[0]["url"]), picture=markup.picture(None))
    listed = "".join(fill("websites row", row=row, href=redirected(row["url"])) for row in rows)
    return listed and fill("websites", rows=listed)


# The parts of the page around the profile


def _instructor_courses(markup: Markup, member: Member) -> str:
    if markup.light or member.masked:
        return ""
    link = full_link(f"{PUBLIC}/learning/x", "A course they teach")
    taught = fill("courses", member=member, link=link, picture=markup.picture(None))
    return titled_section("instructor-courses", f"Courses by {member.first}", taught)


def _rail(markup: Markup, member: Member) -> str:
    others = "".join(
        _aside(markup, row, "browsemap-profile", row["summary"]) for row in member.rows["people_also_viewed"]
    )
    named = "".join(
        _aside(markup, {"followers": "", **row}, "samename-profile", row["headline"])
        for row in member.rows["same_name"]
    )
    rail = (("browsemap", "Other similar profiles", others), ("samename", f"Others named {member.name}", named))
    return fill("other posts") + "".join(
        fill("aside", kind=kind, title=title, rows=show_more(rows, 10)) for kind, title, rows in rail if rows
    )


def _aside(markup: Markup, row: Row, trk: str, text: str) -> str:
    """Build another member's card. In the layout of 2024, it is a link with the location and without followers."""
    title = fill("aside title", row=row, subtitle=fill("aside subtitle", text=text) if text else "")
    href = f"{row['link']}?trk=public_profile_{trk}"
    if markup.rendered:
        return fill("aside card of 2024", row=row, href=href, title=title, picture=row["image"] or DEFAULT_PHOTO)
    details = "".join(fill("aside detail", detail=each) for each in (row["followers"], row["location"]) if each)
    return fill("aside card", row=row, href=href, title=title, picture=markup.picture(row["image"]), details=details)


def _footer() -> str:
    links = "".join(fill("footer link", name=name, title=name.title()) for name in FOOTER)
    return fill("footer", links=links, languages="".join(fill("language", number=n) for n in range(LANGUAGES)))
