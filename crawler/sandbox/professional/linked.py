"""The linked data of the simulated profile pages, which contains a part of the profile in schema.org's vocabulary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from crawler.sandbox.professional.figures import figures
from crawler.sandbox.professional.markup import DEFAULT_PHOTO
from crawler.sandbox.professional.section import masked
from crawler.sandbox.skeletons import ABSENT, Skeletons

if TYPE_CHECKING:
    from crawler.sandbox.professional.people import Member, Position, Study
    from crawler.sandbox.professional.words import Row

Node = dict[str, Any]


fill = Skeletons(__file__)


def linked_data(member: Member) -> Node:
    """Build the page's ``@graph``: articles, posts, the page itself, and last the member."""
    author = {"@type": "Person", "name": member.name, "url": member.url}
    articles = [_article(author, row) for row in member.rows["articles"]]
    posts = [_post(author, row) for row in member.rows["activity"] if is_own(member, row)]
    page = fill("page", member=member)
    return {"@context": "http://schema.org", "@graph": [*articles, *posts, page, _person(member)]}


def _article(author: Node, row: Row) -> Node:
    return fill("article", author=author, row=row, stated=figures(row), image=row["image"] or ABSENT)


def _post(author: Node, row: Row) -> Node:
    stated = figures(row)
    published = stated.time_text.replace("+00:00", "Z")
    return fill("post", author=author, row=row, stated=stated, published=published)


def is_own(member: Member, row: Row) -> bool:
    """Whether an activity row is the member's own post. The linked data contains only these rows of the activity."""
    return f"/posts/{quote(member.slug)}_" in row["link"]


def _person(member: Member) -> Node:
    # On a masked page, all positions are listed as present ones.
    present = [each for each in member.positions if member.masked or each.end == "Present"]
    former = [_employer(member, each) for each in member.positions if each not in present]
    return fill(
        "person",
        member=member,
        former=[*former, *(_school(study) for study in member.studies if study.start)],
        awards=[row["title"] for row in member.rows["awards"]],
        photo=member.photo or DEFAULT_PHOTO,
        titles=[masked(each.title) if member.masked else each.title for each in present],
        languages=[{"@type": "Language", "name": row["name"]} for row in member.rows["languages"]],
        employers=[_employer(member, position) for position in present],
        about=member.cut_about if member.masked else member.about.replace("\n", "<br>"),
    )


def _employer(member: Member, position: Position) -> Node:
    known = {
        "location": position.location or ABSENT,
        "description": position.description.replace("\n", "<br>") or ABSENT,
    }
    if member.masked:
        known["description"] = masked(position.description) or ABSENT
    if member.masked and position is not member.positions[0]:
        return fill("organization", name=masked(position.at.name), url=ABSENT, start=ABSENT, end=ABSENT, **known)
    return fill(
        "organization",
        name=f"{position.at.name} ",
        url=position.at.shown_url or ABSENT,
        start=ABSENT if member.masked else _date(position.start),
        end=ABSENT if member.masked or position.end == "Present" else _date(position.end),
        **known,
    )


def _date(shown: str) -> int | str:
    return int(shown) if shown.isdecimal() else "2021-07"


def _school(study: Study) -> Node:
    """Build a school. A masked page, too, has the name and the months in clear."""
    start, end = f"{study.start}-09", f"{study.end}-06" if study.end else ABSENT
    return fill("school", study=study, start=start, end=end, description=study.description or ABSENT)
