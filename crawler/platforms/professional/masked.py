"""What the platform masks: recognises masked texts, reads the masked block, and builds ``data_availability``
(specification 2.6).

A masked text is one in which the platform's server replaced each letter by an asterisk. Masked texts are empty in the
record: neither logos nor the lengths of words are used to reconstruct them. What the page states in clear elsewhere,
in its linked data or its top section, is used.
"""

from __future__ import annotations

import re
from typing import Any

from crawler.platforms.professional.markup import last_segment, years

Row = dict[str, Any]
Keyed = tuple[str, Row]
"""A row with its key, by which the row of another source is found. "": the row has no key."""

MASKED = "masked_history"
"""The field of the section (the *masked block*) that replaces positions and schools on a masked page."""
STRAY_WORD = "undefined"
"""The word that the platform shows in a masked text if a school's subject is missing."""
_MASK = re.compile(r"\*{3,}")
_NO_WORD = re.compile(rf"{STRAY_WORD}|\W|_")

MEMBERS_ONLY = ("contact_info", "experience.employment_type")
"""Fields that the platform withholds from every visitor without an account."""
_UNREAD = "Parts of the page could not be read, and the warnings name them: the fields with these parts lack data."


def is_masked(value: str, *, in_block: bool = False) -> bool:
    """Whether a text is masked: it contains asterisks, and no words except a stray "undefined".

    ``in_block``: the text is in the masked block, which replaces positions and schools. There, three asterisks in a row
    or the word "undefined" alone suffice.

    >>> is_masked("******** *** ***"), is_masked("*** ****** undefined"), is_masked("*** Founder ***")
    (True, True, False)
    >>> is_masked("*** Founder ***", in_block=True), is_masked("undefined", in_block=True), is_masked("undefined")
    (True, True, False)
    """
    if in_block and (value == STRAY_WORD or _MASK.search(value)):
        return True
    return "*" in value and not _NO_WORD.sub("", value)


def clear(row: Row, *, in_block: bool = False) -> Row:
    """Return the values of a row that are in clear, and the names of the masked values as ``masked``."""
    masked = {name for name, value in row.items() if isinstance(value, str) and is_masked(value, in_block=in_block)}
    return {name: value for name, value in row.items() if value and name not in masked} | {"masked": masked}


def masked_rows(rows: list[Row], company: Row, own_school: Row) -> tuple[list[Keyed], list[Keyed]]:
    """Return the positions and the schools of the masked block. The block lists positions first, then schools.

    Nothing separates them: the first row that is recognisable as a school, and all rows after it, count as schools.

    Args:
        rows: the cells of the rows.
        company: the company at the top of the profile.
        own_school: the school at the top of the profile.
    """
    first = next((n for n, row in enumerate(rows) if _is_school(row, company, own_school)), len(rows))
    return [_masked_position(row, company) for row in rows[:first]], [_masked_school(row) for row in rows[first:]]


def _is_school(row: Row, company: Row, own_school: Row) -> bool:
    """Whether a row shows years, or the name or the logo of the school at the top of the profile.

    A row with the name or the logo of the company at the top is a position.
    """
    if row["name"] == company["name"] or (row["image"] and _picture_id(row["image"]) == _picture_id(company["logo"])):
        return False
    if row["name"] == own_school["name"] or row["dates"].times:
        return True
    return bool(row["image"]) and _picture_id(row["image"]) == _picture_id(own_school["logo"])


def _picture_id(url: str | None) -> str:
    """Return the id of a picture, which all sizes share: the segment after ``/image/v2/`` or ``/image/`` in a URL."""
    return last_segment(url or "", "v2", "image")


def _masked_position(row: Row, company: Row) -> Keyed:
    """Return a position of the masked block. Its key is its employer's name, masked or in clear."""
    same = bool(row["name"]) and row["name"] == company["name"]
    values = {
        "job_title": row["second"],
        "company_name": row["name"],
        "company_url": (company["url"] if same else "") or row["url"],
        "company_image": (company["logo"] if same else None) or row["image"],
        "company_name_source": "top_card" if same else "page",
    }
    return row["name"], clear(values, in_block=True)


def _masked_school(row: Row) -> Keyed:
    """Return a school of the masked block. Its key is its years."""
    stated = years(row["dates"])
    values = {
        "school_name": row["name"],
        "school_url": row["url"],
        "school_image": row["image"],
        "degree": row["second"],
    }
    return school_key(stated), clear({**stated, **values}, in_block=True)


def school_key(school: Row) -> str:
    """Return the key of a school: its years, "" without years."""
    start, end = school["start_date"], school["end_date"]
    return f"{start}-{end}" if start or end else ""


def availability(found: Row, *, masked: bool, source: str, locale: str, is_unread: bool) -> Row:
    """Build the contract's ``data_availability`` object.

    Args:
        found: the fields about, about_truncated, education, experience, headline and skills of the profile.
        masked: whether the platform served the masked variant of the page, in which asterisks replace texts.
        source: the part of the page that the fields were read from.
        locale: the page's language and country, such as "en_US".
        is_unread: whether parts of the page could not be read.
    """
    positions = found["experience"]
    return {
        "about_truncated": found["about_truncated"],
        "authenticated": False,
        "education_found": len(found["education"]),
        "fields_withheld_by_linkedin": sorted([*MEMBERS_ONLY, *(_masked_fields(found) if masked else ())]),
        "note": _note(found, masked=masked, source=source, is_unread=is_unread) + _language_note(locale),
        "positions_found": len(positions),
        "positions_masked_by_linkedin": sum(row["masked"] for row in positions),
        "positions_with_job_title": sum(bool(row["job_title"]) for row in positions),
        "source": source,
    }


def _masked_fields(found: Row) -> list[str]:
    positions = found["experience"]
    withheld = {
        "about": not found["about"] or found["about_truncated"],
        "education": any(row["masked"] for row in found["education"]),
        "experience.company_name": any(not row["company_name"] for row in positions),
        "experience.date_range": bool(positions)
        and not any(row["date_range"] or row["start_date"] for row in positions),
        "experience.job_title": any(not row["job_title"] for row in positions),
        "headline": not found["headline"],
        "skills": not found["skills"],
    }
    return [name for name, is_withheld in withheld.items() if is_withheld]


def _language_note(locale: str) -> str:
    return f" Its language is {locale}: texts are in this language." if locale and not locale.startswith("en") else ""


def _note(found: Row, *, masked: bool, source: str, is_unread: bool) -> str:
    positions = found["experience"]
    if masked:
        hidden = sum(row["masked"] for row in positions)
        return (
            "The platform served the masked variant of this profile: "
            f"{hidden} of {len(positions)} positions have no readable title or company."
        ) + (f" {_UNREAD}" if is_unread else "")
    if is_unread:
        return _UNREAD
    if not positions and not found["education"] and not found["about"]:
        return "The public page of this profile shows neither positions nor schools nor a text about the member."
    if source == "json_ld":
        return "Only the page's linked data was available, which has no past titles and no lists of skills or activity."
    return "The platform served this profile in full, as far as it is shown to visitors without an account."
