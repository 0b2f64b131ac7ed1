"""Builds all lists of the record from the page's sections and its linked data, and the content items (specification
2.4) from the cards of the articles and of the activity.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import unquote

from crawler.platforms.model import Model, empty
from crawler.platforms.professional import schema
from crawler.platforms.professional.document import Document
from crawler.platforms.professional.markup import (
    EMPLOYER_PAGES,
    Dates,
    clean_url,
    is_cut,
    last_segment,
    picture,
    plain,
    uncut,
    year,
    years,
)
from crawler.platforms.professional.masked import MASKED, Keyed, clear, is_masked, masked_rows, school_key
from crawler.platforms.professional.payload import (
    LIKE,
    Article,
    Employer,
    LinkedData,
    Person,
    Posting,
    School,
    Statistic,
)
from crawler.platforms.professional.schema import MemberItem
from crawler.platforms.professional.sections import Sections
from crawler.reading.contract import Unread
from crawler.reading.values import count, hashtags, mentions, stated_day, text, unix_time

Row = dict[str, Any]

HISTORY = ("experience", "education")


def record_lists(
    document: Document, linked: LinkedData, activity: Iterable[Row], unread: list[Unread]
) -> dict[str, list[Any]]:
    """Return all lists of the record, by field name. Add schools that are left out to ``unread``.

    The linked data is used for a list without a section, and for what the masked block withholds.
    ``activity``: the cards of the activity.
    """
    rows, person = document.sections.rows, linked.person
    found: dict[str, list[Any]] = {
        **{name: rows.get(name, []) for name in _AS_READ},
        "activity": [_cells(schema.Activity, card) for card in activity],
        "articles": [_cells(schema.Article, row) for row in article_cells(document, linked)],
        "people_also_viewed": [_person(row, "summary") for row in rows.get("people_also_viewed", [])],
        "same_name": [_namesake(row) for row in rows.get("same_name", [])],
        "skills": [row["name"] for row in rows.get("skills", [])],
    }
    if person and "awards" not in rows:
        titles = filter(None, map(plain, person.awards))
        found["awards"] = [{**empty(schema.Award), "title": title} for title in titles]
    if person and "languages" not in rows:
        names = filter(None, (plain(each.name) for each in person.languages))
        found["languages"] = [{**empty(schema.Language), "name": name} for name in names]
    return found | _history(document, person, unread)


_AS_READ = (
    *("awards", "certifications", "courses", "languages", "organizations", "projects", "publications"),
    *("recommendations", "volunteer_experience"),
)
"""The lists whose rows have the keys of the record."""


def article_cells(document: Document, linked: LinkedData) -> list[Row]:
    """Return the cells of the articles: from the page's section, or else from the linked data."""
    rows = document.sections.rows
    return rows["articles"] if "articles" in rows else list(map(linked_article, linked.articles))


def _cells(model: type[Model], row: Row) -> Row:
    """Return the cells of a row that are fields of its model."""
    return {name: row[name] for name in model.model_fields}


def _person(row: Row, line: str) -> Row:
    """Return the record's row for a card about another member. ``line``: the key for the line below the name.

    If a card has two details, the first is the number of followers. A single detail is the number of followers if it
    has a digit, else the location.
    """
    details = row["details"]
    is_count = len(details) > 1 or any(each.isdigit() for text in details for each in text)
    followers, location = (*details, "", "")[:2] if is_count else ("", *details, "")[:2]
    return {
        "followers": followers,
        "image": row["image"],
        "link": row["link"],
        "location": location,
        "name": row["name"],
        line: row["summary"],
    }


def _namesake(row: Row) -> Row:
    found = _person(row, "headline")
    del found["followers"]
    return found


# Positions and schools: first the values of a row that a source has in clear, then rows of several sources in one


def _history(document: Document, person: Person | None, unread: list[Unread]) -> dict[str, list[Row]]:
    """Return the positions and the schools.

    The linked data is used if the page has no section for them, and to complete the masked block: the block has only
    the first positions, and masks more than the linked data does.
    """
    rows = document.sections.rows
    positions, schools = masked_rows(rows.get(MASKED, []), document.head.company, document.head.school)
    linked = _linked_positions(person) if person else []
    linked_schools = [_linked_school(each) for each in person.past if isinstance(each, School)] if person else []
    for name, stated in (("experience", linked), ("education", linked_schools)):
        if name in rows:
            unread += _lacking_rows(name, document.sections, len(stated))
            stated.clear()
    known_positions, other_positions = _pairs(positions, linked)
    known_schools, other_schools = _pairs(schools, linked_schools)
    if other_schools and any(key and not found for (key, _), (_, found) in zip(schools, known_schools, strict=True)):
        # The linked data of a recorded page has each school of its block (``0611a05b9ecb``). Here, the others may be
        # those of the block with other years.
        unread.append(Unread("education[]", "contradiction", len(other_schools), len(linked_schools), loses_rows=True))
        other_schools = []
    return {
        "education": [_school(_page_school(**row)) for row in rows.get("education", [])]
        + [_school(*pair) for pair in known_schools]
        + [_school({}, row) for row in other_schools],
        "experience": [_position(_page_position(**row)) for row in rows.get("experience", [])]
        + [_position(*pair) for pair in known_positions]
        + [_position({}, row) for row in other_positions],
    }


def _lacking_rows(name: str, sections: Sections, stated: int) -> list[Unread]:
    """Return the rows that a section lacks, because the page's linked data has more positions or schools than it.

    On each of five recorded pages with both, the section has at least as many (captures 675355348e00 of 2024 and
    8647fd3c40d5 of 2026). ``stated``: the number in the linked data. Rows that are reported already do not count.
    """
    lost = sum(each.rows for each in sections.unread if each.loses_rows and each.path.startswith(f"{name}["))
    missing = stated - len(sections.rows[name]) - lost
    return [Unread(f"{name}[]", "contradiction", missing, stated, loses_rows=True)] if missing > 0 else []


def _pairs(shown: Iterable[Keyed], linked: Iterable[Keyed]) -> tuple[list[tuple[Row, Row]], list[Row]]:
    """Return each row of the page with its row in the linked data (else {}), and the other rows of the linked data.

    Both sources have the same order. Of several rows with the same key, the first ones are taken together.
    """
    pairs, rest = [], list(linked)
    for key, row in shown:
        found = next((each for each in rest if key and each[0] == key), None)
        if found:
            rest.remove(found)
        pairs.append((row, found[1] if found else {}))
    return pairs, [row for _, row in rest]


def _position(shown: Row, linked: Row | None = None) -> Row:
    """Build a position from its values in clear on the page and in the linked data."""
    row = {**empty(schema.Experience), **(linked or {}), **shown}
    is_hidden = {name: name in row["masked"] and not row[name] for name in ("company_name", "job_title")}
    if is_hidden["company_name"]:
        row |= {"company_image": None, "company_name_source": "masked", "company_url": ""}
    slug = last_segment(row["company_url"], *EMPLOYER_PAGES)
    return row | {"company_slug": slug, "masked": any(is_hidden.values())}


def _school(shown: Row, linked: Row | None = None) -> Row:
    """Build a school from its values in clear on the page and in the linked data, which may have months, too."""
    row = {**empty(schema.Education), **(linked or {}), **shown}
    if "school_name" in row["masked"] and not row["school_name"]:
        row |= {"school_image": None, "school_url": ""}
    dates = (linked or {}).get("date_range") or row["date_range"]
    return row | {"date_range": dates, "masked": any(not row[name] for name in row["masked"])}


def _page_position(*, dates: Dates, **others: Any) -> Row:
    period = {"date_range": dates.text, "start_date": dates.start, "end_date": dates.end, "duration": dates.duration}
    return clear({**others, **period, "company_name_source": "page"})


def _page_school(
    *, places: Sequence[str], dates: Dates, activities: Iterable[str], description: str, **others: Any
) -> Row:
    degree, field, grade = (*places, "", "", "")[:3]
    return clear(
        {
            **others,
            **years(dates),
            "degree": degree,
            "description": "\n".join(filter(None, [*activities, description])),
            "field_of_study": field,
            "grade": grade,
        }
    )


def _linked_positions(person: Person) -> list[Keyed]:
    """Return the positions in the page's linked data. Only present positions have titles."""
    present, titles = person.employers, [plain(each) for each in person.job_titles if each]
    if len(titles) != len(present):  # titles cannot be assigned to employers: only whether all are masked is used
        titles = titles[:1] * len(present) if titles and all(map(is_masked, titles)) else [""] * len(present)
    past = [each for each in person.past if isinstance(each, Employer)]
    rows = [_linked_position(each, title) for each, title in zip(present, titles, strict=True)]
    return rows + [_linked_position(each, "") for each in past]


def _linked_position(employer: Employer, title: str) -> Keyed:
    values = {
        "job_title": title,
        "company_name": plain(employer.name),
        "company_url": clean_url(employer.url),
        "company_name_source": "json_ld",
        "start_date": text(employer.start),
        "end_date": text(employer.end),
        "location": plain(employer.location),
        "description": plain(employer.description),
    }
    return values["company_name"], clear(values)


def _linked_school(found: School) -> Keyed:
    """Return a school in the linked data. Its dates are years, or texts with months ("2024-11")."""
    dates = [text(found.start), text(found.end)]
    stated = {"start_date": year(dates[0]), "end_date": year(dates[1])}
    values = {
        "school_name": plain(found.name),
        "school_url": clean_url(found.url),
        "date_range": " - ".join(filter(None, dates)) if any("-" in each for each in dates) else "",
        "description": plain(found.description),
    }
    return school_key(stated), clear({**stated, **values})


_TAB = "public_profile__"
_REACTIONS, _POSTS, _COMMENTS = f"{_TAB}reactions", f"{_TAB}posts", f"{_TAB}comments"
TABS = frozenset({_REACTIONS, _POSTS, _COMMENTS})
"""The values of ``data-tracking-control-name`` in the links of cards. The value identifies the tab of a card."""
_POST = re.compile(
    r"(?:/posts/(?:(?P<owner>[^/_?#]+)_)?(?:[^/?#]*-)?|urn:li:)(?:activity|share|ugcPost)[-:](?P<id>\d{1,20})(?!\w)"
)
"""Matches the author's name and the post's id in the link of a post. Before the id, there may be words of the text."""
_ARTICLE = re.compile(r"/pulse/(?P<id>[^/?#]+)")
_ID_TIME_SHIFT = 22
"""Number of low bits in an activity's id. The bits above them are the milliseconds since 1970 (in 8 of 8 posts of
2026-06)."""
_AUTHOR_PATHS = ("in", "company", "school", "showcase")
"""First path segments in the URLs of members, companies and schools. The second segment is the name."""


def activity(cells: Iterable[Row], postings: Iterable[Posting], own_name: str) -> list[Row]:
    """Return the cards of the activity: their cells, with the author of the post and what the linked data has of it.

    In the layout with a list, a card names the member who acted, not the author of the post. The author is the member
    if the link or the linked data says so; of any other author, only the name in the link is known. An author that a
    card's link contradicts is left out.

    Args:
        cells: the cells of the cards.
        postings: the posts in the linked data.
        own_name: the member's name in URLs.
    """
    stated = {clean_url(each.url): each for each in postings}
    cards = [_card(row, stated.get(row["link"]), own_name.casefold()) for row in cells]
    own_labels = {card["label"] for card in cards if card["is_own"]}
    return [card | {"content_type": _content_type(card, own_labels)} for card in cards]


def _card(row: Row, node: Posting | None, own_name: str) -> Row:
    owner = _owner(row["link"])
    card = row | {"label": row["action"].replace(row["author"], ""), "node": node, "is_contradiction": False}
    if "kind" in row:
        # A card that frames another post has an author for each of the two posts. If the first one cannot be found,
        # the second one is read. On the recorded page since 2026-07, all ten cards show the author in their link.
        shown = last_segment(row["author_url"], *_AUTHOR_PATHS).casefold()
        card["is_contradiction"] = bool(row["shared"] and owner and shown) and shown != owner.casefold()
    if card["is_contradiction"] or ("kind" not in row and owner.casefold() != own_name):
        card |= {"author": plain(node.author) if node else "", "author_url": clean_url(node.author_url) if node else ""}
    name = last_segment(card["author_url"], *_AUTHOR_PATHS) or ("" if "kind" in row else owner)
    whole = plain(node.text) if node else ""
    return card | {"author_username": name, "is_own": name.casefold() == own_name, "text": uncut(row["text"], whole)}


def _content_type(card: Row, own_labels: set[str]) -> str:
    """Return the kind of the member's action, without interpreting words.

    In the layout with tabs, the tab of reactions contains likes. In the tab of posts, another author's post, and a post
    that frames another post, is a share. All other cards are posts. In the layout with a list, the member's own posts
    are posts. Another author's post is a share if one of the member's own posts has the same line about the action;
    else it is a like.
    """
    if "kind" in card:
        if card["kind"] == _REACTIONS:
            return "like"
        return "share" if card["kind"] == _POSTS and (card["shared"] or not card["is_own"]) else "post"
    if card["is_own"]:
        return "post"
    return "share" if card["label"] in own_labels else "like"


def linked_activity(postings: Iterable[Posting]) -> list[Row]:
    """Return the cards of the posts in the linked data, for a page without a section with the activity."""
    return [
        {
            "author": plain(each.author),
            "author_username": last_segment(clean_url(each.author_url), *_AUTHOR_PATHS),
            "content_type": "post",
            "link": clean_url(each.url),
            "node": each,
            "text": plain(each.text),
        }
        for each in postings
    ]


def _owner(link: str) -> str:
    """Return the author's name in a post's link, "" if the link has none.

    >>> _owner("https://www.linkedin.com/posts/jane-doe_hello-activity-7400000000000000001-Xq_9")
    'jane-doe'
    >>> _owner("https://www.linkedin.com/posts/hello-activity-7400000000000000001-Xq_9")
    ''
    """
    found = _POST.search(unquote(link))
    return (found["owner"] or "") if found else ""


# Articles


def linked_article(found: Article) -> Row:
    """Return the cells for an article that is only in the linked data."""
    return {
        "image": picture(found.image) or "",
        "link": clean_url(found.url),
        "title": plain(found.title),
    }


def articles(cells: Iterable[Row], nodes: Iterable[Article], own: Row) -> list[Row]:
    """Return the cards of the member's articles.

    ``nodes``: the articles in the linked data, which have exact times. ``own``: the member as ``author`` and
    ``author_username``.
    """
    stated = {clean_url(each.url): each for each in nodes}
    return [
        {**row, **own, "content_type": "article", "node": stated.get(row["link"]), "text": row["title"]}
        for row in cells
    ]


# Content items


def item(card: Row) -> Row:
    """Return the content item of a card."""
    found, node, text = content_id(card["link"]), card["node"], card["text"]
    reactions, image = card.get("reactions"), card.get("image")
    published = unix_time(node.published) if node else None
    if published is None:
        published = _time_of_id(found) if found.isdigit() else _day(card.get("day") or "")
    words = text.rpartition(" ")[0] if is_cut(text) else text  # the word at which a text is cut may be cut, too
    return {
        **empty(MemberItem),
        "author_name": card["author"],
        "author_username": card["author_username"],
        "caption": text,
        "comment_count": card.get("comments"),
        "content_code": found,
        "content_id": found,
        "content_link": card["link"],
        "content_type": card["content_type"],
        "hashtags": hashtags(words),
        "images": [image] if image else [],
        "like_count": statistic(node.statistics, LIKE) if node and reactions is None else reactions,
        "mentions": mentions(words),
        "published_date": published,
        "thumbnail_image": image or "",
    }


def statistic(statistics: list[Statistic], kind: str) -> int | None:
    """Return the number in the first statistic of a kind, or None."""
    return next((count(each.number) for each in statistics if (each.kind or "").endswith(kind)), None)


def content_id(link: str) -> str:
    """Return the number of a post, or the last part of an article's URL, from its link. "" for any other link.

    >>> content_id("https://www.linkedin.com/posts/jane_hello-activity-7400000000000000001-Xq_9")
    '7400000000000000001'
    >>> content_id("https://www.linkedin.com/posts/jane_activity-7400000000000000001-Xq_9")
    '7400000000000000001'
    >>> content_id("https://www.linkedin.com/feed/update/urn%3Ali%3Aactivity%3A7400000000000000001")
    '7400000000000000001'
    >>> content_id("https://www.linkedin.com/pulse/na%C3%AFve-questions-jane-doe/")
    'naïve-questions-jane-doe'
    >>> content_id("https://www.linkedin.com/posts/jane_hello-Xq_9")
    ''
    """
    found = _POST.search(unquote(link)) or _ARTICLE.search(link)
    return unquote(found["id"]) if found else ""


def _time_of_id(found: str) -> int | None:
    """Return the time that an activity's id contains, in Unix seconds. Shorter ids, of before 2012, contain no time.

    >>> _time_of_id("7468440836972625921"), _time_of_id("12345")
    (1780615052, None)
    """
    seconds = (int(found) >> _ID_TIME_SHIFT) // 1000 if len(found) == 19 else 0
    return seconds or None


def _day(text: str) -> int | None:
    day = stated_day(text)
    return int(day.timestamp()) if day else None
