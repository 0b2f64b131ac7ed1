"""The simulated network's complete profile pages, with the structure and size of real ones."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import orjson

from crawler.sandbox.professional import activity, section
from crawler.sandbox.professional.linked import linked_data
from crawler.sandbox.professional.markup import CARD, STATIC, Markup, redirected, show_more, tracked
from crawler.sandbox.professional.words import PUBLIC, followers_text

if TYPE_CHECKING:
    from crawler.sandbox.professional.people import Member
    from crawler.sandbox.professional.words import Institution, Row

MODALS = ("follow", "nav", "browse", "activity", "experience", "bottom", "base", "upsell", "report")
DEFAULT_COVER = f"{STATIC}/5q92mjc5c51bjlwaj3rs9aa82"
LANGUAGES = 27
NEWLINE = "\n  "


def profile(member: Member, *, light: bool) -> bytes:
    """Render the profile page of a member."""
    markup = Markup(rendered=member.rendered, light=light)
    parts = (
        _top_card(markup, member),
        section.summary(markup, member),
        _instructor_courses(markup, member),
        activity.articles(markup, member),
        activity.first(markup, member),
        section.history(markup, member),
        section.cards(markup, member),
        activity.more(markup, member),
        _bottom(member),
    )
    windows = "".join(markup.sign_in(member.first, member.slug, trk, member.photo) for trk in MODALS)
    body = (
        f'{_NAVIGATION}<main class="main" id="main-content" role="main"><section class="core-rail mx-auto">'
        f'<div class="details mx-details-container-padding"><section class="profile">{"".join(parts)}</section></div>'
        f'</section><section class="right-rail">{_rail(markup, member)}</section></main>{_footer(light=light)}'
        f'<div class="guest-upsells">{_UPSELL}{windows}</div>'
    )
    return document(_head(member), body)


def document(head: str, body: str) -> bytes:
    """Render a page of the network around its content."""
    return (
        f'<!DOCTYPE html>\n    <html lang="en">\n      <head>\n{head}\n      </head>\n      <body dir="ltr">\n'
        f"<!----><!---->\n{body}\n      </body>\n    </html>\n"
    ).encode()


def page_key(key: str, title: str) -> str:
    """Build the beginning of the HTML head, which contains the page key and the title."""
    return (
        f'<meta name="pageKey" content="{key}">\n<meta name="robots" content="max-image-preview:large, noarchive">\n'
        f'<meta name="locale" content="en_US">\n<meta id="config" data-app-version="2.0.4565" '
        f'data-multiproduct-name="public-profile-frontend" data-service-name="public-profile-frontend">\n'
        f"<title>{escape(title)} | LinkedIn</title>\n"
    )


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
        "og:image": member.photo or f"{STATIC}/9c8pery4andzj6ohjkjp54ma2",
    }
    linked = orjson.dumps(linked_data(member)).decode().replace("</", "<\\/") if member.linked else ""
    script = f'<script type="application/ld+json">\n      {linked}\n</script>' if linked else ""
    return (
        page_key("public_profile_v3_desktop", title)
        + f'<link rel="canonical" href="{member.url}">\n'
        + "".join(f'<meta property="{key}" content="{escape(value)}">\n' for key, value in properties.items() if value)
        + script
    )


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
    photo = markup.picture(member.photo, "hue-web-entity__image rounded-[50%] w-16 h-16 top-card-layout__entity-image")
    headline = (
        f'<h2 class="top-card-layout__headline break-words font-sans text-md">\n  {escape(member.headline)}\n</h2>'
        if member.headline
        else ""
    )
    logo, title, contact, message = (
        markup.sign_in(member.first, member.slug, f"top-card_{trk}", member.photo)
        for trk in ("logo", "title", "contact-info", "secondary-cta")
    )
    shown = (followers_text(member.followers), member.connections) if member.counted else ()
    counts = (
        f'<div class="not-first-middot">{"".join(f"<span>{NEWLINE}{each}{NEWLINE}</span>" for each in shown)}</div>'
    )
    subheader = _subheader_2024(member) if member.rendered else _subheader(member, contact)
    return (
        '<section class="top-card-layout container-lined overflow-hidden"><figure class="cover-img min-h-[87px]">'
        '<div class="cover-img__image-frame"><div class="cover-img__image-position"><img class="cover-img__image" '
        f'src="{escape(member.cover or DEFAULT_COVER)}" alt></div></div></figure>'
        '<div class="top-card-layout__card relative p-2"><div class="top-card__profile-image-container '
        'top-card__profile-image-container--cvw-fix" data-section="picture"><button class="cursor-pointer" '
        f'data-test-id="logo-button"><div class="top-card__entity-inner-ring">{photo}</div></button>{logo}</div>'
        '<div class="top-card-layout__entity-info-container flex flex-wrap"><div class="top-card-layout__entity-info">'
        '<button class="cursor-pointer"><h1 class="top-card-layout__title font-sans text-lg font-bold">\n'
        f"  {escape(member.name)}\n</h1></button>{title}{headline}"
        '<h3 class="top-card-layout__first-subline font-sans text-md"><div class="profile-info-subheader">\n'
        f"{subheader}{counts}</div></h3>"
        '<h4 class="top-card-layout__second-subline font-sans text-sm"><div class="mutual-connections">'
        '<div class="face-pile__images-container"></div></div></h4><div class="top-card-layout__cta-container">'
        '<a class="top-card-layout__cta top-card-layout__cta--primary" href="/signup">Join to view profile</a>'
        f"{message}</div></div>{_chips(markup, member)}</div></div></section>"
    )


def _subheader(member: Member, contact: str) -> str:
    """Build the location and the link to the contact data in the layout since 2026-07."""
    place = f'<span>{escape(member.location)}</span>\n<span class="before:middot"></span>' if member.location else ""
    return f'{place}<button class="link cursor-pointer">\n  Contact Info\n</button>{contact}'


def _subheader_2024(member: Member) -> str:
    """Build the location and the link to the contact data in the layout of 2024, as a separate group."""
    place = f"<span>{escape(member.location)}</span>" if member.location else ""
    link = '<span class="link cursor-pointer" data-modal="public_profile_contact-info_modal">Contact Info</span>'
    return f'<div class="not-first-middot">{place}{link}</div>'


def _chips(markup: Markup, member: Member) -> str:
    kind = "currentPositionsDetails" if member.employer else "pastPositionsDetails"
    employer = member.employer or (member.positions[0].at if member.positions else None)
    school = member.studies[0].at if member.studies else None
    return (
        '<div class="top-card-layout__entity-info top-card-layout__entity-info--right-column ml-details">'
        f'<div class="top-card__links-container">{_chip(markup, kind, employer)}'
        f"{_chip(markup, 'educationsDetails', school)}{_websites(markup, member.rows['websites'])}</div></div>"
    )


def _chip(markup: Markup, kind: str, place: Institution | None) -> str:
    if place is None:
        return ""
    shown = f'{markup.picture(place.logo)}<span class="top-card-link__description">\n  {escape(place.name)}\n</span>'
    tag, href = ("a", f' href="{tracked(place.url)}"') if place.url else ("div", "")
    return f'<div data-section="{kind}"><{tag}{href} class="flex" data-test-id="top-card-link">{shown}</{tag}></div>'


def _websites(markup: Markup, rows: list[Row]) -> str:
    if len(rows) == 1:
        (row,) = rows
        return (
            f'<div data-section="websites"><a href="{redirected(row["url"])}" data-test-id="top-card-link">'
            f'{markup.picture(None)}<span class="top-card-link__description">{escape(row["label"])}</span></a></div>'
        )
    listed = "".join(
        f'<div class="websites-list__row"><dt class="websites__name">\n  {escape(row["label"])}\n</dt><dd>'
        f'<a href="{redirected(row["url"])}"><span>{escape(row["url"])}</span></a></dd></div>'
        for row in rows
    )
    window = (
        '<button class="modal__outlet"><span class="top-card-link__description">Websites</span></button>'
        f'<div id="websites" class="modal"><dl class="websites-list">{listed}</dl></div>'
    )
    return (rows and f'<div data-section="websites">{window}</div>') or ""


# The parts of the page around the profile


def _instructor_courses(markup: Markup, member: Member) -> str:
    if markup.light or member.masked:
        return ""
    taught = (
        f'<ul><li><div class="{CARD} base-main-card">{markup.full_link(f"{PUBLIC}/learning/x", "A course they teach")}'
        f'<div class="base-main-card__media">{markup.picture(None)}<div class="main-learning-course-card__duration">32m'
        '</div></div><div class="base-main-card__info"><h3 class="base-main-card__title base-main-card__title--link">'
        f'A course they teach</h3><h4 class="base-main-card__subtitle">By: {escape(member.name)}</h4>'
        '<div class="base-main-card__metadata"><span class="base-main-card__metadata-item">1,200 viewers</span></div>'
        "</div></div></li></ul>"
    )
    return markup.section("instructor-courses", f"Courses by {member.first}", taught)


def _bottom(member: Member) -> str:
    return (
        '<section class="core-section-container my-3 bottom-cta-banner"><div class="core-section-container__content">'
        '<section class="hidden-summary container-lined p-3"><h2 class="hidden-summary__title text-xl">'
        f'View {escape(member.first)}’s full profile</h2><ul class="hidden-summary__summary-items">'
        '<li class="hidden-summary__summary-item"><span class="hidden-summary__summary-item-text">Get introduced</span>'
        '</li></ul><a class="hidden-summary__cta" href="/signup">Join to view</a></section></div></section>'
    )


def _rail(markup: Markup, member: Member) -> str:
    others = "".join(
        _aside(markup, row, "browsemap-profile", row["summary"]) for row in member.rows["people_also_viewed"]
    )
    named = "".join(
        _aside(markup, {"followers": "", **row}, "samename-profile", row["headline"])
        for row in member.rows["same_name"]
    )
    rail = (("browsemap", "Other similar profiles", others), ("samename", f"Others named {member.name}", named))
    return _ASIDE_ACTIVITY + "".join(
        f'<section class="aside-section-container mb-4 {kind}" data-nosnippet="true"><h2 '
        f'class="aside-section-container__title section-title">{escape(title)}</h2>'
        f'<div class="aside-section-container__content">{show_more(rows, 10)}</div></section>'
        for kind, title, rows in rail
        if rows
    )


def _aside(markup: Markup, row: Row, trk: str, text: str) -> str:
    subtitle = f'<p class="base-aside-card__subtitle font-sans text-sm">\n  {escape(text)}\n</p>' if text else ""
    href = f"{escape(row['link'])}?trk=public_profile_{trk}"
    title = f'<h3 class="base-aside-card__title">\n  {escape(row["name"])}\n</h3>{subtitle}'
    if markup.rendered:
        return _aside_2024(row, href, title)
    meta = "".join(f"<div>\n  {escape(each)}\n</div>" for each in (row["followers"], row["location"]) if each)
    return (
        f'<li><div class="{CARD} base-aside-card"><a class="base-card__full-link" href="{href}"><span class="sr-only">'
        f"{escape(row['name'])}</span></a>{markup.picture(row['image'])}<div class='base-aside-card__info'>{title}"
        f'<div class="base-aside-card__metadata">{meta}</div><div class="base-aside-card__action">'
        f'<a href="{href}" class="btn-sm">Connect</a></div></div></div></li>'
    )


def _aside_2024(row: Row, href: str, title: str) -> str:
    """Build another member's card in the layout of 2024: a link with the location and without followers."""
    url = escape(row["image"] or f"{STATIC}/9c8pery4andzj6ohjkjp54ma2")
    return (
        f'<li><a class="{CARD} base-aside-card" href="{href}"><div class="box-border lazy-loaded" '
        f'data-delayed-background="" style="background-image: url(&quot;{url}&quot;);"></div>'
        f"<div class='base-aside-card__info'>{title}<div class=\"base-aside-card__metadata\">"
        f'\n  {escape(row["location"])}\n</div></div></a><a href="/login" class="btn-sm">Connect</a></li>'
    )


def _footer(*, light: bool) -> str:
    if light:
        return ""
    languages = "".join(
        f'<li class="language-selector__item" role="presentation"><button aria-label="{number}" class="font-sans '
        f'text-xs link block py-[5px] px-2 w-full hover:cursor-pointer language-selector__link !font-regular" '
        f'data-tracking-control-name="language-selector-{number}" data-locale="l{number}" role="menuitem">Language '
        f"{number}</button></li>\n"
        for number in range(LANGUAGES)
    )
    links = "".join(
        f'<li class="li-footer__item font-sans text-xs"><a class="li-footer__item-link flex" href="/{name}?trk=footer">'
        f"{name.title()}</a></li>\n"
        for name in ("about", "accessibility", "user agreement", "privacy policy", "cookie policy", "brand policy")
    )
    return (
        '<footer class="li-footer bg-transparent w-full"><ul class="li-footer__list flex"><li class="li-footer__item">'
        f'<span class="li-footer__copy-text">&copy; 2026</span></li>{links}<li class="li-footer__item">'
        f'<ul class="language-selector__list">{languages}</ul><button class="language-selector__button">'
        '<span class="language-selector__label-text">Language</span></button></li></ul></footer>'
    )


_NAVIGATION = """
<header class="header base-detail-page__header sticky-header"><nav class="nav pt-1.5 pb-2 flex" aria-label="Primary">
  <a href="/?trk=public_profile_nav-header-logo" class="nav__logo-link link-no-visited-state z-1 mr-auto"></a>
  <ul class="top-nav-menu flex items-center nav__menu"><li><a class="top-nav-link" href="/pub/dir/+/+?trk=x">
    <span class="top-nav-link__label-text font-sans text-xs">People</span></a></li></ul>
  <div class="nav__cta-container order-3 flex"><a class="nav__button-tertiary" href="/signup">Join now</a>
    <a class="nav__button-secondary" href="/login">Sign in</a></div>
</nav></header>
"""
_ASIDE_ACTIVITY = f"""
<section class="aside-section-container mb-4"><h2 class="aside-section-container__title">Explore more posts</h2>
  <ul><li><div class="{CARD} aside-activity-card">
    <a class="base-card__full-link" href="{PUBLIC}/posts/somebody-else_hello-activity-7300000000000000001-Xq_9">
      <span class="sr-only">A post by somebody else</span></a>
    <div class="aside-activity-card__social-actions -mt-0.5"><div data-test-id="social-actions__reactions"
      data-num-reactions="713"></div><div data-test-id="social-actions__comments" data-num-comments="22"></div></div>
  </div></li></ul></section>
"""
_UPSELL = """
<form class="google-auth base-google-auth" action="https://www.linkedin.com/uas/login-submit" method="post">
  <input name="trk" value="public_profile_google-one-tap-submit" type="hidden">
  <div class="google-one-tap__module hidden fixed"><div class="google-auth__tnc-container hidden"></div></div>
  <div class="loader loader--full-screen"><div class="loader__container"><icon class="loader__icon"></icon></div></div>
</form>
"""
