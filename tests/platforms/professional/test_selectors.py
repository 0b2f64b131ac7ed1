"""Additional selectors from the ``PAYLOAD_NAMES`` file for the table of sections: changed pages, invalid lines."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest
from web_poet import HttpResponse, PageParams

from crawler.platforms.names import WrongNamesError, parse_names
from crawler.platforms.professional.content import ContentPage
from crawler.platforms.professional.pages import ProfilePage
from crawler.platforms.professional.sections import TABLE
from crawler.probe.repair import as_json, repair
from crawler.reading.names import NO_NAMES, Names
from crawler.sandbox.professional.site import Site
from crawler.sandbox.protocol import FakeRequest
from crawler.sandbox.renames import PAGES_BEFORE, RenamingSite

MARA = FakeRequest("/in/mara-lindqvist")


def names_of(lines: dict[str, Any]) -> Names:
    return parse_names(orjson.dumps({TABLE.label: lines}))


def page_of(renames: dict[str, str], kind: type[ProfilePage | ContentPage] = ProfilePage) -> Any:
    """Return the page of a member with renamed classes and section names."""
    site = RenamingSite(Site(light=True), renames)
    body = [site.page(MARA)[2] for _ in range(PAGES_BEFORE + 1)][-1]
    return kind(response=HttpResponse("https://www.linkedin.com", body), page_params=PageParams({}))


def read(page: Any, names: Names) -> tuple[Any, list[str]]:
    copy = type(page)(response=page.response, page_params=page.page_params)
    copy.names = names
    return asyncio.run(copy.to_item()), [each.path for each in copy.unread]


CHANGES: dict[str, tuple[dict[str, str], dict[str, Any], str]] = {
    "a section": ({".skills": ".talents"}, {"skills": "talents"}, "sections[].…unknown"),
    "a value": (
        {".experience-item__title": ".position__title"},
        {"experience[].job_title": ".position__title"},
        "experience[].job_title",
    ),
    "a list of selectors": (
        {".experience-item__title": ".position__title"},
        {"experience[].job_title": [".never", "li .position__title, .position__title"]},
        "experience[].job_title",
    ),
    "the cards of a section": (
        {".base-aside-card": ".side-card"},
        {"people_also_viewed[]": "li:not(li li)", "same_name[]": "li:not(li li)"},
        "people_also_viewed[]",
    ),
    "a section and its values": (
        {".browsemap": ".others", ".base-aside-card__title": ".card-name"},
        {"people_also_viewed": "others", "people_also_viewed[].name": ".card-name", "same_name[].name": ".card-name"},
        "same_name[]",
    ),
    "rows of tabs": (
        {".slide-list__item": ".tab__item"},
        {"activity[]": "li.tab__item"},
        "activity[]",
    ),
}


@pytest.mark.parametrize(("renames", "lines", "path"), CHANGES.values(), ids=CHANGES)
def test_lines_give_the_record_of_the_page_before_its_change(
    renames: dict[str, str], lines: dict[str, Any], path: str
) -> None:
    before, changed, names = page_of({".x": ".y"}), page_of(renames), names_of(lines)
    assert path in read(changed, NO_NAMES)[1]
    assert read(changed, names) == read(before, NO_NAMES)
    assert read(before, names) == read(before, NO_NAMES), "pages are changed one by one"


def test_a_list_of_values_is_read_once() -> None:
    """If the additional selector finds values in a row, the values of the declared selector are not added to them."""
    names = names_of({"projects[].contributors": "a[title]"})
    assert read(page_of({".x": ".y"}), names) == read(page_of({".x": ".y"}), NO_NAMES)


def test_the_page_with_the_activity_reads_the_same_lines() -> None:
    renames, lines, _ = CHANGES["rows of tabs"]
    before, changed = page_of({".x": ".y"}, ContentPage), page_of(renames, ContentPage)
    assert read(changed, names_of(lines)) == read(before, NO_NAMES)


def test_without_lines_the_table_stays_itself() -> None:
    names = names_of({"skills": "talents"})
    assert names.table(TABLE) is names.table(TABLE) is not TABLE
    assert NO_NAMES.table(TABLE) is Names().table(TABLE) is TABLE
    assert parse_names(as_json(names).encode()).lines == names.lines


BOUNDS = "a selector has at most 200 characters, 5 combined elements, and one :has()."


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ({"skils": "talents"}, "skils is not a path of professional.sections; did you mean skills?"),
        ({"skills[].nam": "h3"}, "skills[].nam is not a path of professional.sections; did you mean skills[].name?"),
        ({"browsemap": "x"}, "browsemap is not a path of professional.sections; the sections are about, articles, "),
        ({"skills": "two words"}, "skills: expected the class or the data-section of the section, of at most 100"),
        ({"skills": ""}, "skills: expected the class or the data-section"),
        ({"skills": "x" * 10_000}, "skills: expected the class or the data-section"),
        ({"skills": "courses"}, "courses is the name of a known section."),
        ({"skills": "patents"}, "patents is the name of a known section."),
        ({"skills": "core-section-container"}, "core-section-container is the name of a known section."),
        ({"skills[]": 5}, "skills[]: expected the name of a section or a CSS selector."),
        ({"skills[]": []}, "skills[]: expected a path, or a list of at most 10."),
        ({"skills[]": ["li", None]}, "skills[]: expected the name of a section or a CSS selector."),
        ({"skills[]": ""}, "skills[]: '' is not a CSS selector that the parser can compile."),
        ({"skills[].name": "li["}, "skills[].name: 'li[' is not a CSS selector that the parser can compile."),
        ({"skills[].name": "p::before"}, "'p::before' is not a CSS selector that the parser can compile."),
        ({"skills[].name": "> li"}, "'> li' is not a CSS selector that the parser can compile."),
        ({"skills[].name": "\x1b[2J"}, "is not a CSS selector that the parser can compile."),
        ({"skills[].name": "a" * 10_000}, BOUNDS),
        ({"skills[].name": ":not(" * 10_000}, BOUNDS),
        ({"skills[].name": "zz * * * * * li"}, BOUNDS),
        ({"skills[].name": ":has(:has(a))"}, BOUNDS),
        (
            {"experience[].job_title": ".experience-item__subtitle"},
            ".experience-item__subtitle is the declared selector of another value.",
        ),
    ],
)
def test_a_wrong_line_is_refused_with_a_sentence(lines: dict[str, Any], sentence: str) -> None:
    with pytest.raises(WrongNamesError) as error:
        names_of(lines)
    assert sentence in str(error.value)
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 600


def test_a_selector_of_another_value_is_found_by_a_good_page() -> None:
    names = names_of({"experience[].job_title": "h4 a", "skills": "talents"})
    (sentence,) = repair([page_of(CHANGES["a value"][0])], [page_of({".x": ".y"})], names).wrong
    assert sentence.startswith("PAYLOAD_NAMES: professional.sections: h4 a is not experience[].job_title: its value")
    assert repair([], [page_of({".x": ".y"})], names_of(CHANGES["a value"][1])).wrong == []
