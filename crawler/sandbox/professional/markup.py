"""HTML building blocks of the simulated network's pages: pictures, cards, the sign-in window."""

from __future__ import annotations

from html import escape
from urllib.parse import quote

from crawler.sandbox.skeletons import Fragments

STATIC = "https://static.licdn.com/aero-v1/sc/h"
DEFAULT_PHOTO = f"{STATIC}/9c8pery4andzj6ohjkjp54ma2"
GHOST = f"{STATIC}/cs8pjfgyw96g44ln9r7tct85f"

fill = Fragments(__file__)


class Markup:
    """Builds HTML. ``rendered``: as saved by a browser, with pictures loaded. ``light``: for a smaller page."""

    def __init__(self, *, rendered: bool, light: bool) -> None:
        self.rendered = rendered
        self.light = light

    def picture(self, url: str | None, classes: str = "hue-web-entity__image w-6 h-6") -> str:
        """Build an image element. If pictures are not loaded, its URL is in another attribute than ``src``."""
        return fill("rendered picture" if self.rendered else "picture", source=url or GHOST, classes=classes)

    def sign_in(self, name: str, slug: str, trk: str, photo: str | None) -> str:
        """Build the sign-in window, which contains the member's name and photo. A page contains it many times."""
        window = "light sign-in" if self.light else "sign-in"
        return fill(window, name=name, slug=quote(slug), trk=trk, photo=self.picture(photo))

    def logo(self, url: str | None, page: str = "") -> str:
        """Build the logo in a card. The logo is a link if the company or school has a page."""
        shown = self.picture(url, "hue-web-entity__image w-6 h-6 profile-section-card__image")
        return fill("logo link", href=tracked(page), picture=shown) if page else shown

    def card(self, heading: str, subtitle: str, body: str, logo: str = "", classes: str = "") -> str:
        """Build the card for a row, as in most lists. All arguments are HTML."""
        logo = logo or self.logo(None)
        return fill("card", heading=heading, subtitle=subtitle, body=body, logo=logo, classes=classes)


def full_link(url: str, label: str, tracking: str = "public_profile") -> str:
    """Build the link that covers a whole card. ``tracking``: the name by which clicks on it are counted."""
    return fill("full link", url=url, label=label, tracking=tracking)


def more_text(text: str) -> str:
    """Build a text. For a long text, build a short version, and the whole text behind a "Show more" button."""
    if not text:
        return ""
    return fill("short text" if len(text) < 200 else "long text", whole=lines(text), cut=lines(text[:180]))


def section(name: str, title: str, content: str, *, kind: str = "") -> str:
    """Build a section of the profile, or "" if the section has no content."""
    return content and fill("section", name=name, title=title, content=content, kind=kind or name)


def show_more(rows: str, shown: int, label: str = "Show more") -> str:
    """Build a list that initially shows only its first ``shown`` rows. All rows are in the HTML."""
    return fill("show more", rows=rows, shown=shown, label=label)


def heading(title: str, href: str = "") -> str:
    """Build a card's heading, with the title escaped. If ``href`` is given, the heading is a link."""
    return fill("heading link" if href else "heading", title=title, href=href)


def lines(text: str) -> str:
    """Escape a text, and replace its line breaks with ``<br>`` elements."""
    return escape(text).replace("\n", "<br>")


def tracked(url: str) -> str:
    """Build a link within the platform, with its tracking parameters."""
    return escape(f"{url}?trk=public_profile_link")


def redirected(url: str) -> str:
    """Build a link to an external page through the platform's redirect, or "" for an empty URL."""
    if not url:
        return ""
    target = quote(url, safe="").replace(".", "%2E")
    return escape(
        f"https://www.linkedin.com/redir/redirect?url={target}&urlhash=x7-_&trk=public_profile_topcard-website"
    )


def date_range(text: str, duration: str = "") -> str:
    """Build the HTML for two dates, or one date and "Present", and the duration between them."""
    if not text:
        return ""
    start, dash, end = text.partition(" - ")
    shown = f"<time>{start}</time>" + (f"{dash}{end if end == 'Present' else f'<time>{end}</time>'}" if dash else "")
    how_long = f'<span class="before:middot">{duration}</span>' if duration else "<!---->"
    return fill("date range", dates=shown, duration=how_long)
