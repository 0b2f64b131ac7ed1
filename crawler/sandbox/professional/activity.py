"""The articles and the recent activity in simulated profile pages. Activity has two layouts: list and tabs."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from crawler.sandbox.professional.figures import figures, is_framed
from crawler.sandbox.professional.markup import Markup, full_link, section, show_more, tracked
from crawler.sandbox.professional.words import Row
from crawler.sandbox.skeletons import Fragments

if TYPE_CHECKING:
    from crawler.sandbox.professional.people import Member

MAX_SHOWN_CHARACTERS = 150
"""The number of characters after which a post's text is cut in the layout with a list."""
REACTIONS = ("LIKE", "PRAISE", "EMPATHY", "APPRECIATION", "INTEREST", "ENTERTAINMENT", "MAYBE")

fill = Fragments(__file__)


def cut(text: str) -> str:
    """Shorten a text as in the layout with a list."""
    return text if len(text) <= MAX_SHOWN_CHARACTERS else f"{text[:MAX_SHOWN_CHARACTERS].rstrip()}…"


def articles(markup: Markup, member: Member) -> str:
    """Build the section with the articles. All articles are in the HTML, but the page initially shows only three."""
    rows = "".join(_article(markup, row) for row in member.rows["articles"])
    return section("articles", f"Articles by {member.first}", rows and show_more(rows, 3))


def _article(markup: Markup, row: Row) -> str:
    return fill(
        "article",
        row=row,
        link=full_link(row["link"], row["title"]),
        picture=markup.picture(row["image"] or None, "h-full"),
        day=figures(row).day_text,
        counts=_counts(markup, row),
    )


def first(markup: Markup, member: Member) -> str:
    """Build the first activity section, with the tabs or with the first three rows of the list."""
    rows = member.rows["activity"]
    return _wrapped("Activity", _tabs(markup, rows) if member.layout == "tabs" else _list(markup, rows[:3]))


def more(markup: Markup, member: Member) -> str:
    """Build the second activity section, which exists only in the layout with a list."""
    rows = member.rows["activity"][3:] if member.layout == "list" else []
    return _wrapped(f"More activity by {member.first}", _list(markup, rows))


def _wrapped(title: str, content: str) -> str:
    return section("posts", title, content and fill("see all", content=content), kind="activities")


def _list(markup: Markup, rows: list[Row]) -> str:
    shown = "".join(_list_card(markup, row) for row in rows)
    return shown and fill("list", rows=shown)


def _list_card(markup: Markup, row: Row) -> str:
    kind = "" if row["image"] else " main-activity-card__img--ghost"
    return fill(
        "list card",
        row=row,
        link=full_link(row["link"], cut(row["text"])),
        picture=markup.picture(row["image"], f"main-activity-card__img{kind} h-full"),
        play=fill("play button") if row["image"] else "",
        text=cut(row["text"]),
        action=row["action"].removesuffix(row["author"]),
        author_link=tracked(row["author_url"]),
    )


def _tabs(markup: Markup, rows: list[Row]) -> str:
    posts = [_slide(markup, row) for row in rows if is_shared(row)]
    reactions = [_slide(markup, row) for row in rows if not is_shared(row)]
    return fill("tabs", posts=_slides(posts), reactions=_slides(reactions)) if rows else ""


def is_shared(row: Row) -> bool:
    """Whether the member shared the post of a row in the layout with tabs. If not, the member reacted to it."""
    return bool(row["action"].endswith("shared this"))


def _slides(cards: list[str]) -> str:
    """Build the cards of a tab, or "" if there are none."""
    return fill("slides", cards="".join(cards)) if cards else ""


def _slide(markup: Markup, row: Row) -> str:
    author, post = _author(markup, row), _post(markup, row)
    if is_shared(row):
        frame = fill("frame", row=row, tab=_tab(row)) if is_framed(row) else ""
        inner = fill("own post", author=author, post=post, frame=frame)
    else:  # another member's post in a frame, with one link above the post and one inside it
        face, link = markup.picture(None, "face-pile__image"), full_link(row["link"], row["action"], _tab(row))
        inner = fill("other post", face=face, link=link, author=author, post=post)
    return fill("slide", inner=inner, counts=_counts(markup, row), actions=_actions(markup, row["link"]))


def _tab(row: Row) -> str:
    """Return the tracking name of the links in a card, which identifies the card's tab."""
    return f"public_profile__{'posts' if is_shared(row) else 'reactions'}"


def _author(markup: Markup, row: Row) -> str:
    link = full_link(row["author_url"], row["author"], "publisher-author-card")
    place = "original" if is_shared(row) else "root"
    return fill("author", row=row, place=place, link=link, picture=markup.picture(None))


def _post(markup: Markup, row: Row) -> str:
    tab = _tab(row)
    picture = markup.picture(row["image"], "w-full h-full object-contain")
    shown = fill("post picture", link=full_link(row["link"], tab, tab), picture=picture)
    return fill("post", row=row, link=full_link(row["link"], row["action"], tab), content=shown if row["image"] else "")


def _counts(markup: Markup, row: Row) -> str:
    """Build the numbers of reactions and comments below a card. Some cards show no number of comments."""
    stated = figures(row)
    comments = "" if stated.comments is None else fill("comments", number=stated.comments)
    if markup.light:
        return fill("light counts", stated=stated, comments=comments)
    images = "".join(fill("reaction image", name=name, lower=name.lower()) for name in REACTIONS)
    return fill("counts", stated=stated, comments=comments, images=images)


def _actions(markup: Markup, url: str) -> str:
    """Build the reaction and share buttons of a post, which make up most of a card's HTML."""
    if markup.light:
        return ""
    return fill(
        "actions",
        url=url,
        join=f"https://www.linkedin.com/signup/cold-join?session_redirect={quote(url, safe='')}",
        chosen="".join(fill("selected reaction", name=name, title=name.capitalize()) for name in REACTIONS),
        shares="".join(fill("share", name=name, title=name.title()) for name in ("copy", "mail", "chat", "feed")),
    )
