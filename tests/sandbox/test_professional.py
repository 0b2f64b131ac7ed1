"""The simulated professional network: reproducible by its seed, varied, and with correct expected records."""

from __future__ import annotations

import re
from functools import cache
from typing import Any
from urllib.parse import quote

import pytest

from crawler.sandbox.professional.people import SPECIAL
from crawler.sandbox.professional.site import Site

SITE = "https://www.linkedin.com"

# Keys copied from specification 2.6, so that the records are compared with it and not with the project's own schemas.
PROFILE_KEYS = {
    *("about", "about_truncated", "activity", "activity_count", "articles", "awards", "certifications", "courses"),
    *("languages", "organizations", "projects", "publications", "recommendations", "same_name", "services", "skills"),
    *("volunteer_experience", "background_cover_image_url", "connections", "contact_info", "country"),
    *("current_company", "current_school", "data_availability", "education", "experience", "firstName", "lastName"),
    *("fullName", "followers", "headline", "location", "people_also_viewed", "profile_photo", "profile_url"),
    *("public_identifier", "success", "total_experiences", "websites"),
}
ROW_KEYS = {
    "activity": {"action", "author", "author_url", "image", "link", "text"},
    "articles": {"image", "link", "title"},
    "education": {
        *("date_range", "degree", "description", "field_of_study", "grade", "end_date", "start_date", "masked"),
        *("school_image", "school_name", "school_url"),
    },
    "experience": {
        *("company_image", "company_name", "company_name_source", "company_slug", "company_url", "date_range"),
        *("description", "duration", "employment_type", "end_date", "job_title", "location", "start_date", "masked"),
    },
    "people_also_viewed": {"followers", "location", "name", "summary", "image", "link"},
    "websites": {"label", "url"},
    # Section 4.7 of the design.
    "awards": {"title", "issuer", "date", "description"},
    "certifications": {"name", "issuer", "issued", "credential_url", "url"},
    "courses": {"name", "number"},
    "languages": {"name", "proficiency"},
    "organizations": {"name", "position", "date_range", "description"},
    "projects": {"title", "url", "date_range", "description", "contributors"},
    "publications": {"title", "publisher", "date", "url", "description", "contributors"},
    "recommendations": {"name", "url", "text"},
    "same_name": {"name", "headline", "location", "link", "image"},
    "volunteer_experience": {"role", "organization", "organization_url", "cause", "date_range", "description"},
}


@cache
def site() -> Site:
    return Site()


def expected_record(slug: str) -> dict[str, Any]:
    return site().expected_record({"url": f"{SITE}/in/{quote(slug)}"})


def test_every_kind_of_member_exists() -> None:
    members = site().members.values()
    kinds = {
        "full": [m for m in members if not m.masked],
        "masked": [m for m in members if m.masked],
        "thin": [m for m in members if not m.positions and not m.studies],
        "forty positions": [m for m in members if len(m.positions) == 40],
        "no photo": [m for m in members if m.photo is None],
        "no cover": [m for m in members if m.cover is None],
        "tabs": [m for m in members if m.layout == "tabs"],
        "list": [m for m in members if m.layout == "list"],
        "linked data": [m for m in members if m.linked],
        "no linked data": [m for m in members if not m.linked],
        "as saved by a browser": [m for m in members if m.rendered],
        "counts hidden": [m for m in members if not m.counted],
        "right to left": [m for m in members if re.search(r"[\u0590-\u06ff]", m.name)],
        "emoji": [m for m in members if "🤍" in m.name],
        "one name": [m for m in members if not m.last],
        "country edition": [m for m in members if m.edition != "www"],
        "nothing current": [m for m in members if m.positions and not m.employer],
        "grouped": [
            m for m in members if any(a.at == b.at for a, b in zip(m.positions, m.positions[1:], strict=False))
        ],
        "no page of the employer": [m for m in members if any(not p.at.url for p in m.positions)],
        "school without years": [m for m in members if any(not s.start for s in m.studies)],
    }
    assert [kind for kind, found in kinds.items() if not found] == []
    whole = site().members["mara-lindqvist"]
    assert whole.skills
    assert [name for name, rows in whole.rows.items() if not rows] == []


@pytest.mark.parametrize("slug", SPECIAL)
def test_expected_records_have_the_contract_s_keys(slug: str) -> None:
    record = expected_record(slug)
    assert set(record) == PROFILE_KEYS
    for name, keys in ROW_KEYS.items():
        assert all(set(row) == keys for row in record[name]), name
    availability = record["data_availability"]
    assert record["total_experiences"] == availability["positions_found"] == len(record["experience"])
    assert availability["education_found"] == len(record["education"])
    assert availability["positions_masked_by_linkedin"] == sum(row["masked"] for row in record["experience"])
    assert availability["about_truncated"] is record["about_truncated"]
    assert record["activity_count"] == len(record["activity"])
