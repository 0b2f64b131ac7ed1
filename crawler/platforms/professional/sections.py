"""The table of the sections of a profile page, and of the values in their rows (specification 2.6).

The kinds of the cells (``always``, ``often`` ...) follow recorded pages of 2024-03 to 2026-07
(``docs/platforms/professional.md``). Sections are found by name, never by their headings, which depend on the page's
language.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from selectolax.lexbor import LexborNode

from crawler.platforms.professional.markup import (
    NO_DATES,
    NO_SUBTITLE,
    UNREADABLE,
    collapsed,
    date_range,
    dates,
    href,
    image,
    line,
    lines,
    paragraphs,
    source,
    with_breaks,
)
from crawler.platforms.professional.table import INNERMOST, OUTERMOST, Cell, Layout, Section, Table
from crawler.reading.values import count

_QUOTES = "“”„‟«»\"' \n\xa0"


# Readers of cells


def shown(node: LexborNode) -> str | None:
    """Read a text on one line: "" for the platform's placeholder for a missing text, None for an empty text."""
    return _value(line(node))


def _value(text: str) -> str | None:
    return "" if text == NO_SUBTITLE else text or None


def undated(node: LexborNode) -> str | None:
    """Read the text of an element on one line, without the dates in it."""
    parts = (each.text() for each in node.iter(include_text=True) if not _is_date(each))
    return _value(collapsed("".join(parts)))


def _is_date(node: LexborNode) -> bool:
    return node.tag == "time" or (node.tag == "span" and node.css_first("time") is not None)


def described(node: LexborNode) -> Any:
    """Read a description. ``node``: the element with the description's versions, or one of these versions.

    If the page contains a shortened and a full version, the full version is read.
    """
    if _is_version(node) and node.parent is not None:
        node = node.parent
    versions = [each for each in node.iter() if _is_version(each)]
    return lines(versions[-1] if versions else node) or UNREADABLE  # no recorded element is empty


def _is_version(node: LexborNode) -> bool:
    return "show-more-less-text__text" in (node.attributes.get("class") or "")


def places(node: LexborNode) -> Any:
    """Read the degree, the field of study and the grade of a school, each in an element.

    The page has an empty HTML comment in place of a missing value, and no empty element. If the number of values and
    comments is not three, and some values have the attribute ``data-section``, then the value without the attribute is
    the degree, and the others follow in page order.
    """
    found = [each for each in node.iter(include_text=True) if _is_element(each) or _is_empty_comment(each)]
    values = [each for each in found if _is_element(each)]
    if not values:
        text = shown(node)
        return None if text is None else (text,)
    if not all(map(line, values)):
        return UNREADABLE
    marked = [each for each in values if "data-section" in each.attributes]
    if len(found) == 3 or not marked:
        return tuple(line(each) if _is_element(each) else "" for each in found)
    degrees = [line(each) for each in values if "data-section" not in each.attributes]
    return (degrees[0] if degrees else "", *map(line, marked))


def _is_element(node: LexborNode) -> bool:
    return not (node.tag or "").startswith("-")


def _is_empty_comment(node: LexborNode) -> bool:
    return node.tag == "-comment" and not (node.comment_content or "").strip(" \t\r\n")


def link(node: LexborNode) -> str | None:
    """Read the URL of a link."""
    return href(node) or None


def shown_image(node: LexborNode) -> Any:
    """Read the URL of a picture, "" for the platform's placeholder. Each picture of the recorded pages has a URL."""
    return (image(node) or "") if source(node) else UNREADABLE


def quoted(node: LexborNode) -> str | None:
    """Read a recommendation, without the quotation marks around it."""
    return paragraphs(node).strip(_QUOTES) or None


def title(node: LexborNode) -> Any:
    """Read the title of a link, which names a person."""
    return collapsed(node.attributes.get("title") or "") or UNREADABLE


def one_line(node: LexborNode) -> str | None:
    """Read a text that may contain line breaks as one line."""
    return _value(collapsed(lines(node)))


def before_window(node: LexborNode) -> str | None:
    """Read the text of an element, without the sign-in window that follows the text in the same element."""
    parts = (each.text() for each in node.iter(include_text=True) if each.tag != "div")
    return with_breaks("".join(parts)) or None


def details(node: LexborNode) -> list[str] | None:
    """Read the lines below a member's name on a card. A line is an element of its own, or the whole text."""
    listed = [line(each) for each in node.iter()]
    return [each for each in listed if each] or ([line(node)] if line(node) else None)


def number(what: str) -> Cell:
    """Declare a cell with the number of a post's reactions or comments. A post without any has no element for them.

    On the four recorded pages since 2026-07, all 52 elements for reactions and all 47 for comments have the number.
    """
    attribute = f"data-num-{what}"

    def read(node: LexborNode) -> Any:
        return count(node.attributes.get(attribute)) if attribute in node.attributes else UNREADABLE

    return Cell(f'[{attribute}], [data-test-id="social-actions__{what}"]', read, empty=None, often=10)


def _attribute(name: str) -> Any:
    return lambda node: collapsed(node.attributes.get(name) or "") or None


# Cells of several sections

TITLE = Cell("h3", shown, "identity")
TITLE_URL = Cell("h3 a[href]", link)
SUBTITLE = Cell("h4", shown, "always")
DATED = Cell(".date-range", dates, empty=NO_DATES, often=3, fallback="time")
DATE_RANGE = replace(DATED, read=date_range, empty="")
DATE = Cell("time", shown, often=3)
DESCRIPTION = Cell(":is(.show-more-less-text, .show-more-less-text__text--less)", described)
LOGO = Cell("img", shown_image, "always", None)
CONTRIBUTORS = Cell("li li a", title, every=True)
_PARAGRAPH = 'p:not([class*="show-more-less"]):not(:has(time))'
_CONTENTS = ".core-section-container__content"
FULL_LINK = "a.base-card__full-link"
POST_LINK = f'{FULL_LINK}[href*="/posts/"]'
_CONTENT = ".profile-activity-content-card"
TAB_LINK = f":not({_CONTENT}) > {POST_LINK}"
"""Selects the links to a post whose text describes the member's action, but not the links around pictures."""
REACTIONS, COMMENTS = number("reactions"), number("comments")
_AUTHOR, _ROOT = ".profile-activity-original-author", ".profile-activity-root-author"
"""Select the author of a post, and the author of another post inside it."""
_NAME = ".base-main-card__title"
_AFTER_DATES = "p:has(time) + p"
_LOGO_LINK = "a.profile-section-card__image-link[href]"


def _rows(css: str = OUTERMOST, *, mark: str = "", filled: str = "", needed: str = "", **cells: Cell) -> Layout:
    return Layout(css, cells, mark, filled, needed)


def _people(mark: str, link_css: str, image_of: Cell, *, often: int = 10) -> Layout:
    """Declare a layout of cards about other members. ``often``: of the line below the name."""
    return _rows(
        mark=mark,
        name=Cell(".base-aside-card__title", shown, "identity"),
        summary=Cell(".base-aside-card__subtitle", one_line, often=often),
        details=Cell(".base-aside-card__metadata", details, empty=(), often=3),
        link=Cell(f"{link_css}[href]", link, "always"),
        image=image_of,
    )


_BACKGROUND = Cell("[data-delayed-background]", shown_image, "always", None, fallback="img")
PEOPLE = (
    # 2026-01: on the recorded page, none of the ten cards has a line below the name.
    _people("div.base-aside-card [data-delayed-background]", FULL_LINK, _BACKGROUND, often=0),
    _people("div.base-aside-card", FULL_LINK, LOGO),  # 2026-07
    _people("a.base-aside-card", "a.base-aside-card", _BACKGROUND),  # 2024, and namesakes in 2026-01
)


def _section(field: str, *layouts: Layout, names: str = "", mark: str = "", **cells: Cell) -> Section:
    """Declare a section.

    ``names``: its names on the page, by default that of the field. ``cells``: the cells of its single layout, a list
    with one item per row.
    """
    return Section(tuple((names or field).split()), field, layouts or (Layout(OUTERMOST, cells),), mark)


TABLE = Table(
    (
        _section(
            "about",
            _rows(f"{_CONTENTS} > p", text=Cell(f"{_CONTENTS} > p", lambda node: lines(node) or None, "identity")),
            _rows(f"{_CONTENTS} > div", text=Cell(f"{_CONTENTS} > div", before_window, "identity")),  # masked
            names="summary",
        ),
        _section(
            "articles",
            title=TITLE,
            link=Cell(f"{FULL_LINK}[href]", link, "identity"),
            image=Cell(".base-main-card__media img", shown_image, "always"),
            day=Cell(".base-main-card__metadata", shown, often=3),
            reactions=REACTIONS,
            comments=COMMENTS,
        ),
        _section(
            "activity",
            _rows(  # the layout with tabs, since 2026-07
                "li.slide-list__item",
                filled=".slide-list",
                link=Cell(TAB_LINK, link, "identity"),
                action=Cell(TAB_LINK, shown, "always"),
                kind=Cell(TAB_LINK, _attribute("data-tracking-control-name")),
                author=Cell(f"{_AUTHOR} {_NAME}", shown, "always", fallback=f"{_ROOT} {_NAME}"),
                author_url=Cell(f"{_AUTHOR} {FULL_LINK}", link, "always", fallback=f"{_ROOT} {FULL_LINK}"),
                image=Cell(f"{_CONTENT} img", shown_image, empty=None, fallback="img.object-contain"),
                text=Cell(".see-more-text", lambda node: paragraphs(node) or None, often=10),
                shared=Cell(_ROOT, lambda _: True, empty=False),
                reactions=REACTIONS,
                comments=COMMENTS,
            ),
            _rows(  # the layout with a list, since 2024
                link=Cell(POST_LINK, link, "identity"),
                action=Cell("h4", shown, "always"),
                author=Cell("h4 a", shown, "always"),
                author_url=Cell("h4 a[href]", link, "always"),
                image=Cell("img.main-activity-card__img", shown_image, "always", None),
                text=Cell("h3", shown, "always"),
            ),
            names="posts activities",
        ),
        _section(
            "experience",
            _rows(
                INNERMOST,
                job_title=Cell(".experience-item__title", shown, "identity"),
                company_name=Cell(".experience-item__subtitle", shown, "identity"),
                company_url=Cell("h4 a[href]", link, fallback=_LOGO_LINK),
                company_image=LOGO,
                dates=replace(DATED, kind="always"),
                location=Cell(
                    ":is(p, span).experience-item__meta-item:not(:has(time))", shown, often=10, fallback=_AFTER_DATES
                ),
                description=DESCRIPTION,
            ),
        ),
        _section(
            "education",
            names="educationsDetails education",
            school_name=TITLE,
            school_url=Cell("h3 a[href]", link, fallback=_LOGO_LINK),
            school_image=LOGO,
            places=Cell("h4", places, "always", ()),
            dates=replace(DATED, often=10),
            activities=Cell('div.control-transition p:not([class*="show-more-less"])', shown, every=True),
            description=DESCRIPTION,
        ),
        _section(  # the positions and schools of a masked profile
            "masked_history",
            _rows(
                filled=".visible-list, .blurred-content",
                needed=".visible-list",
                name=Cell('h3:not([class*="blurred"])', shown, "identity"),
                second=Cell("h4", shown, "always", fallback="h4 + p"),  # some HTML parsers move the text after the h4
                url=Cell("h3 a[href]", link, fallback=_LOGO_LINK),
                image=LOGO,
                dates=replace(DATED, often=0),
            ),
            names="experience-education",
        ),
        _section(
            "certifications",
            name=TITLE,
            issuer=SUBTITLE,
            issued=DATE,
            credential_url=Cell('a[data-tracking-control-name$="see-credential"]', link, fallback="a.btn-md[href]"),
            url=TITLE_URL,
        ),
        _section(
            "volunteer_experience",
            names="volunteering",
            role=TITLE,
            organization=SUBTITLE,
            organization_url=Cell("h4 a[href]", link),
            cause=Cell(_PARAGRAPH, shown),
            date_range=DATE_RANGE,
            description=DESCRIPTION,
        ),
        _section("awards", names="honors-and-awards", title=TITLE, issuer=SUBTITLE, date=DATE, description=DESCRIPTION),
        _section(
            "projects",
            title=TITLE,
            url=TITLE_URL,
            date_range=DATE_RANGE,
            description=DESCRIPTION,
            contributors=CONTRIBUTORS,
        ),
        _section(
            "publications",
            title=TITLE,
            publisher=Cell("h4", undated),
            date=DATE,
            url=TITLE_URL,
            description=DESCRIPTION,
            contributors=CONTRIBUTORS,
        ),
        _section("languages", name=TITLE, proficiency=SUBTITLE),
        _section("courses", name=TITLE, number=Cell("h4", shown)),
        _section(
            "organizations",
            name=TITLE,
            position=Cell("h4", shown),
            date_range=DATE_RANGE,
            description=replace(DESCRIPTION, fallback=_PARAGRAPH),
        ),
        _section(
            "recommendations",
            name=TITLE,
            url=Cell("a[href]", link),
            text=Cell(".endorsement-card__content", quoted, "always"),
        ),
        _section("skills", name=Cell("li", shown, "identity")),
        _section("people_also_viewed", *PEOPLE, names="browsemap"),
        _section("same_name", *PEOPLE, names="samename", mark='a[href*="public_profile_samename"]'),
    ),
    not_read=(
        "instructor-courses",  # courses that the member taught
        "patents",
        "test-scores",
        "groups",
        "contributions",
        "bottom-cta-banner",  # a call to sign in
        "related-posts",
        "course-recommendations",
    ),
)
