"""The articles and the recent activity in simulated profile pages. Activity has two layouts: list and tabs."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING
from urllib.parse import quote

from crawler.sandbox.professional.figures import figures, is_framed
from crawler.sandbox.professional.markup import CARD, MAIN_TITLE, STATIC, Markup, show_more, tracked
from crawler.sandbox.professional.words import Row

if TYPE_CHECKING:
    from crawler.sandbox.professional.people import Member

MAX_SHOWN_CHARACTERS = 150
"""The number of characters after which a post's text is cut in the layout with a list."""
REACTIONS = ("LIKE", "PRAISE", "EMPATHY", "APPRECIATION", "INTEREST", "ENTERTAINMENT", "MAYBE")


def cut(text: str) -> str:
    """Shorten a text as in the layout with a list."""
    return text if len(text) <= MAX_SHOWN_CHARACTERS else f"{text[:MAX_SHOWN_CHARACTERS].rstrip()}…"


def articles(markup: Markup, member: Member) -> str:
    """Build the section with the articles. All articles are in the HTML, but the page initially shows only three."""
    rows = "".join(f"<li>{_article(markup, row)}</li>" for row in member.rows["articles"])
    return markup.section("articles", f"Articles by {member.first}", rows and show_more(rows, 3))


def _article(markup: Markup, row: Row) -> str:
    return (
        f'<div class="{CARD} base-main-card flex">{markup.full_link(row["link"], row["title"])}'
        f'<div class="base-main-card__media">{markup.picture(row["image"] or None, "h-full")}</div>'
        '<div class="base-main-card__info self-center ml-1 flex-1"><div class="body-text base-main-card__metadata">'
        '<span class="body-text base-main-card__metadata-item">'
        f"{figures(row).day_text}</span></div>"
        f'<h3 class="{MAIN_TITLE} base-main-card__title--link">\n  {escape(row["title"])}\n</h3>'
        f'<p class="base-main-card__description">{escape(row["title"])} and more</p>{_counts(markup, row)}</div></div>'
    )


def first(markup: Markup, member: Member) -> str:
    """Build the first activity section, with the follower count, and the tabs or the first three rows of the list."""
    if member.layout == "tabs":
        return _wrapped(markup, "Activity", _tabs(markup, member))
    return _wrapped(markup, "Activity", _list(markup, member.rows["activity"][:3]))


def more(markup: Markup, member: Member) -> str:
    """Build the second activity section, which exists only in the layout with a list."""
    rows = member.rows["activity"][3:] if member.layout == "list" else []
    return _wrapped(markup, f"More activity by {member.first}", _list(markup, rows))


def _wrapped(markup: Markup, title: str, content: str) -> str:
    if not content:
        return ""
    see = (
        '<a class="btn-md" href="https://www.linkedin.com/signup/cold-join?x" data-test-id="activities__see-more-link">'
    )
    return markup.section("posts", title, f"{content}{see}Join now to see all activity</a>", kind="activities")


def _list(markup: Markup, rows: list[Row]) -> str:
    shown = "".join(f"<li>{_list_card(markup, row)}</li>" for row in rows)
    return shown and f'<ul data-test-id="activities__list">{shown}</ul>'


def _list_card(markup: Markup, row: Row) -> str:
    action = row["action"].removesuffix(row["author"])
    kind = "" if row["image"] else " main-activity-card__img--ghost"
    play = '<icon class="base-main-card__play-button"></icon>' if row["image"] else ""
    return (
        f'<div class="{CARD} main-activity-card">{markup.full_link(row["link"], cut(row["text"]))}'
        '<div class="base-main-card__media relative w-[228px]">'
        f"{markup.picture(row['image'], f'main-activity-card__img{kind} h-full')}{play}</div>"
        f'<div class="base-main-card__info self-center ml-1"><h3 class="{MAIN_TITLE} base-main-card__title--link">\n'
        f'  {escape(cut(row["text"]))}\n</h3><h4 class="base-main-card__subtitle">\n  {action}'
        f'<a href="{tracked(row["author_url"])}">{escape(row["author"])}</a>\n</h4></div></div>'
    )


def _tabs(markup: Markup, member: Member) -> str:
    rows = member.rows["activity"]
    if not rows:
        return ""
    posts = [row for row in rows if row["action"].endswith("shared this")]
    reactions = [row for row in rows if row not in posts]
    names = ("Posts", "Comments", "Reactions")
    buttons = "".join(
        f'<li class="tab flex" role="presentation"><button class="tab-button tab-pill" role="tab">{name}</button></li>'
        for name in names
    )
    panels = "".join(
        f'<div class="tab__panel w-full pt-1 {kind}" tabindex="0" role="tabpanel" hidden>'
        f"{_slides(''.join(_slide(markup, row) for row in shown))}</div>"
        for kind, shown in (("posts", posts), ("", []), ("reactions", reactions))
    )
    return (
        f'<div class="tabs activities-tab w-full" data-tab-id="activities-tab"><ul class="tabs__list" role="tablist">'
        f"{buttons}</ul>{panels}</div>"
    )


def _slides(cards: str) -> str:
    """Build the cards of a tab, or "" if there are none."""
    return cards and (
        '<section class="slide-list relative"><header class="slide-list__header mb-1.5"></header>'
        '<div class="slide-list__nav"><div class="slide-list__nav-wrap slide-list__nav-wrap--prev">'
        '<button class="slide-list__nav-button"><icon class="slide-list__nav-icon"></icon>'
        '</button></div></div><div class="relative overflow-hidden slide-list__container p-1">'
        f'<ul class="slide-list__list items-stretch flex" role="list">{cards}</ul></div></section>'
    )


def _slide(markup: Markup, row: Row) -> str:
    author, post = _author(markup, row), _post(markup, row)
    if row["action"].endswith("shared this"):
        inner = (
            f'<div class="px-2">{author}</div><div class="{CARD}">{post}{_frame(row) if is_framed(row) else ""}</div>'
        )
    else:  # another member's post in a frame, with one link above the post and one inside it
        inner = (
            f'<div class="px-2"><a class="face-pile" href="#">{markup.picture(None, "face-pile__image")}</a></div>'
            f'<div class="{CARD}">{markup.full_link(row["link"], row["action"], _tab(row))}'
            f'<div class="profile-activity-card">'
            f'<div class="px-1.5">{author}</div><div class="{CARD}">{post}</div></div></div>'
        )
    return (
        '<li class="mr-0.25 babybear:min-w-[290px] min-w-[360px] slide-list__item mr-2 rtl:ml-2">'
        f'<div class="profile-activity-card flex flex-col h-[560px]">{inner}<div class="mt-auto px-2">'
        f"{_counts(markup, row)}{_actions(markup, row['link'])}</div></div></li>"
    )


def _frame(row: Row) -> str:
    """Build another member's post inside a post of the member."""
    link = f'<a class="base-card__full-link" href="{escape(row["link"])}" data-tracking-control-name="{_tab(row)}"></a>'
    return (
        f'<div class="profile-activity-card"><div class="{CARD} base-main-card profile-activity-root-author">'
        f'<a class="base-card__full-link" href="{STATIC}/in/x"></a><h3 class="{MAIN_TITLE}">Somebody</h3></div>'
        f'<div class="{CARD}">{link}<div data-see-more-text="more" class="see-more-text">A shared post</div></div>'
        "</div>"
    )


def _tab(row: Row) -> str:
    """Return the tracking name of the links in a card, which identifies the card's tab."""
    return f"public_profile__{'posts' if row['action'].endswith('shared this') else 'reactions'}"


def _author(markup: Markup, row: Row) -> str:
    place = "original" if row["action"].endswith("shared this") else "root"
    return (
        f'<div class="flex flex-row"><div class="{CARD} base-main-card profile-activity-{place}-author">'
        f"{markup.full_link(row['author_url'], row['author'], 'publisher-author-card')}{markup.picture(None)}"
        f'<div class="base-main-card__info"><h3 class="{MAIN_TITLE}">\n  {escape(row["author"])}\n</h3>'
        '<div class="body-text base-main-card__metadata">21h</div></div><div class="base-main-card__ctas"></div></div>'
        '<div class="ellipsis-menu" data-test-id="profile-feed-activity-card__ellipsis-menu"></div></div>'
    )


def _post(markup: Markup, row: Row) -> str:
    tab = _tab(row)
    content = (
        f'<div class="{CARD} profile-activity-content-card">{markup.full_link(row["link"], tab, tab)}'
        f'<div class="relative h-[240px]">{markup.picture(row["image"], "w-full h-full object-contain")}</div></div>'
        if row["image"]
        else ""
    )
    return (
        f"{markup.full_link(row['link'], row['action'], tab)}"
        f'<div data-see-more-text="more" class="see-more-text whitespace-break-spaces">{escape(row["text"])}'
        f"      \n</div>{content}"
    )


def _counts(markup: Markup, row: Row) -> str:
    """Build the numbers of reactions and comments below a card. Some cards show no number of comments."""
    stated = figures(row)
    comments = "" if stated.comments is None else _comments(stated.comments)
    reactions = f'data-num-reactions="{stated.reactions}"'
    if markup.light:
        return f'<div data-test-id="social-actions__reactions" {reactions}></div>{comments}'
    images = "".join(
        f'<code id="social-actions__reaction-image-{name}"><!--"{STATIC}/{name.lower()}"--></code>\n'
        for name in REACTIONS
    )
    return (
        '<code id="i18n_reaction_singular" style="display: none"><!--"%numReactions% Reaction"--></code>\n'
        '<code id="i18n_reactions_plural" style="display: none"><!--"%numReactions% Reactions"--></code>\n'
        '<div class="flex items-center font-sans text-sm babybear:text-xs -mt-1"><div class="flex items-center" '
        f'data-test-id="social-actions__reactions" data-id="social-actions__reactions" {reactions}>'
        f'<img alt data-reaction-type="LIKE" data-delayed-url="{STATIC}/bn39hirwzjqj18ej1fkz55671" height="16px">'
        '<span aria-hidden="true" class="font-normal ml-0.5" data-test-id="social-actions__reaction-count">'
        f"{stated.reactions:,}</span></div>{images}{comments}</div>"
    )


def _comments(number: int) -> str:
    return (
        '<div class="flex items-center" data-test-id="social-actions__comments" data-id="social-actions__comments" '
        f'data-num-comments="{number}">{number:,} Comments</div>'
    )


def _actions(markup: Markup, url: str) -> str:
    """Build the reaction and share buttons of a post, which make up most of a card's HTML."""
    if markup.light:
        return ""
    target = quote(url, safe="")
    chosen = "".join(
        f'<div class="selected-reaction--{name} flex flex-row items-center"><img class="inline-block relative '
        f'w-3 h-3" alt="{name.capitalize()}" aria-hidden="true" data-delayed-url="{STATIC}/5tec0{name}"></div>\n'
        for name in REACTIONS
    )
    shares = "".join(
        f'<li role="presentation"><button data-tracking-control-name="social-share_{name}" class="'
        f'social-share__item social-share-item" data-share-service="{name}" role="menuitem"><icon class="'
        f'social-share__item-icon" data-delayed-url="{STATIC}/aup4g97pdky3ff73gv9lyhj{name}"></icon><span class="'
        f'social-share__item-text pl-1">{name.capitalize()}</span></button></li>\n'
        for name in ("copy", "mail", "chat", "feed")
    )
    join = f"https://www.linkedin.com/signup/cold-join?session_redirect={target}"
    return (
        '<div class="social-action-bar"><div class="reactions-menu">'
        f'<a class="reactions-menu__link" href="{join}"><icon class="social-action-bar__icon" '
        f'data-delayed-url="{STATIC}/3djuegvxjnk75fm1bl5ugf342"></icon>Like</a></div><template id="selected-reaction">'
        f'{chosen}</template><a class="social-action-bar__button" href="{join}">Comment</a><div class="'
        f'collapsible-dropdown social-share" data-share-url="{escape(url)}"><ul class="collapsible-dropdown__list">'
        f'{shares}</ul><button class="collapsible-dropdown__button social-share__button social-share__button-square">'
        f'<icon class="social-share__button-icon" data-delayed-url="{STATIC}/l7s88viq07vqke49pnrbl5e4"></icon></button>'
        "</div></div>"
    )
