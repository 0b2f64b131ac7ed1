"""Determines from the fields found which fields of a profile the platform withheld (specification 2.6)."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]

MEMBERS_ONLY = ("contact_info", "experience.employment_type")
"""Fields that the platform withholds from every visitor without an account."""
_UNREAD = "Parts of the page could not be read, and the warnings name them: the fields with these parts lack data."


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
