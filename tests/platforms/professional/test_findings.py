"""Pages that were once read incorrectly, each reduced to the smallest change that shows the defect."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from typing import Any
from urllib.parse import quote

import pytest
from parsel import Selector
from selectolax.lexbor import LexborHTMLParser
from web_poet import HttpResponse, PageParams

from crawler.errors import ExtractionFailed
from crawler.pipelines import validated
from crawler.platforms.professional.link import slug_of_url
from crawler.platforms.professional.markup import dates
from crawler.platforms.professional.pages import ProfilePage
from crawler.platforms.professional.requests import profile_request
from crawler.platforms.professional.schema import Profile
from crawler.platforms.requests import NAVIGATION_HEADERS
from crawler.sandbox.professional.site import Site
from crawler.sandbox.protocol import FakeRequest
from tests import forks
from tests.crawls import ROOT, crawl

SITE = "https://www.linkedin.com"
NETWORK = Site(light=True)
MEMBER = "mara-lindqvist"
HEAD = f'<link rel="canonical" href="{SITE}/in/x"><h1 class="top-card-layout__title">X</h1>'

GHOST = "https://static.licdn.com/ghost"
"""The URL of a picture that the platform shows if there is none."""
MEMBER_NODE: dict[str, Any] = {
    "@type": "Person",
    "name": "X",
    "url": f"{SITE}/in/x",
    "address": {"addressCountry": "NL", "addressLocality": "Delft"},
    "image": {"contentUrl": GHOST},
    "interactionStatistic": [],
    "memberOf": [],
    "jobTitle": [],
    "awards": [],
    "worksFor": [],
    "alumniOf": [],
    "knowsLanguage": [],
}
"""The node of a member in linked data, with the keys that each recorded node has."""


def page_of(body: str, *, slug: str = "", url: str = f"{SITE}/in/x") -> ProfilePage:
    response = HttpResponse(url, body.encode(), headers={"Content-Type": "text/html; charset=utf-8"})
    return ProfilePage(response=response, page_params=PageParams({"slug": slug} if slug else {}))


def read(body: str, *, slug: str = "", url: str = f"{SITE}/in/x") -> dict[str, Any]:
    return validated(Profile, asyncio.run(page_of(body, slug=slug, url=url).to_item()))


def html_of(slug: str = MEMBER) -> str:
    return NETWORK.page(FakeRequest(f"/in/{quote(slug)}"))[2].decode()


# Another member's page


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("fault", ["wrong-member", "other-member"])
def test_the_faults_have_an_effect_for_every_seed(seed: int, fault: str) -> None:
    body = Site(seed, light=True).damaged(fault, FakeRequest(f"/in/{fault}"))[2].decode()
    with pytest.raises(ExtractionFailed, match=r"member|profile of"):
        read(body, slug=fault)


# Other languages

LANGUAGES: dict[str, dict[str, str]] = {
    "de_DE": {
        "followers": "Follower:innen",
        "connections": "Kontakte",
        "Present": "Heute",
        "Jan": "Jan.",
        "Experience: ": "Berufserfahrung: ",
        "Education: ": "Ausbildung: ",
        "Location: ": "Standort: ",
        " on LinkedIn": " auf LinkedIn",
        "View ": "Sehen Sie sich das Profil an: ",
        "Issued": "Ausgestellt:",
        "shared this": "hat dies geteilt",
    },
    "fr_FR": {
        "followers": "abonnés",
        "connections": "relations",
        "Present": "aujourd’hui",
        "Jan": "janv.",
        "Experience: ": "Expérience : ",
        "Education: ": "Formation : ",
        "Location: ": "Lieu : ",
        " on LinkedIn": " sur LinkedIn",
        "View ": "Consultez le profil de ",
        "Issued": "Délivré le",
        "shared this": "a partagé ceci",
    },
    "es_ES": {
        "followers": "seguidores",
        "connections": "contactos",
        "Present": "actualidad",
        "Jan": "ene",
        "Experience: ": "Experiencia: ",
        "Education: ": "Educación: ",
        "Location: ": "Ubicación: ",
        " on LinkedIn": " en LinkedIn",
        "View ": "Ver el perfil de ",
        "Issued": "Expedición:",
        "shared this": "ha compartido esto",
    },
    "pt_BR": {
        "followers": "seguidores",
        "connections": "conexões",
        "Present": "o momento",
        "Jan": "jan",
        "Experience: ": "Experiência: ",
        "Education: ": "Formação acadêmica: ",
        "Location: ": "Localidade: ",
        " on LinkedIn": " no LinkedIn",
        "View ": "Veja o perfil de ",
        "Issued": "Emitido em",
        "shared this": "compartilhou isto",
    },
    "ar_AE": {
        "followers": "متابعًا",
        "connections": "زميلًا",
        "Present": "الحالي",
        "Jan": "يناير",
        "Experience: ": "الخبرة: ",
        "Education: ": "التعليم: ",
        "Location: ": "الموقع: ",
        " on LinkedIn": " على LinkedIn",
        "View ": "عرض ملف ",
        "Issued": "صدر في",
        "shared this": "قام بمشاركة هذا",
    },
}
WORDS = re.compile(r"\b(?:followers|connections|Present|Issued|shared this)\b|\bJan(?= \d{4})")
"""The interface words that also occur in the texts of the record."""


def translated(text: str, locale: str, *, dash: str = " – ") -> str:
    """Replace the interface words of a sandbox page with those of another language."""
    words = LANGUAGES[locale]
    body = text.replace('<meta name="locale" content="en_US">', f'<meta name="locale" content="{locale}">')
    body = re.sub(r'(?<=<meta property="og:description" content=")[^"]*', lambda m: _with_words(m[0], words), body)
    parts = re.split(r'(<script type="application/ld\+json">.*?</script>)', body, flags=re.DOTALL)
    body = "".join(part if n % 2 else WORDS.sub(lambda m: words[m[0]], part) for n, part in enumerate(parts))
    return body.replace("</time> - ", f"</time>{dash}")


def _with_words(text: str, words: dict[str, str]) -> str:
    for word, other in words.items():
        text = text.replace(word, other)
    return text


def in_language(value: Any, locale: str) -> Any:
    """Replace the interface words in an expected record with those of another language."""
    if isinstance(value, dict):
        return {key: in_language(each, locale) for key, each in value.items()}
    if isinstance(value, list):
        return [in_language(each, locale) for each in value]
    text = WORDS.sub(lambda m: LANGUAGES[locale][m[0]], value) if isinstance(value, str) else value
    return re.sub(r"(?<=\d{4}) - (?=\S)", " – ", text) if isinstance(text, str) else text


@pytest.mark.parametrize("locale", LANGUAGES)
@pytest.mark.parametrize("slug", sorted(NETWORK.members)[:12])
def test_pages_in_other_languages_lose_and_invent_nothing(slug: str, locale: str) -> None:
    page = page_of(translated(html_of(slug), locale), slug=slug)
    found = validated(Profile, asyncio.run(page.to_item()))
    expected = in_language(NETWORK.expected_record({"url": f"/in/{quote(slug)}"}), locale)
    availability = found["data_availability"]
    assert f"Its language is {locale}" in availability["note"]
    for name in ("note", "fields_withheld_by_linkedin"):
        expected["data_availability"] = {**expected["data_availability"], name: availability[name]}
    exact = [record["followers"] for record in (found, expected) if re.fullmatch(r"\d+ \S+", record["followers"])]
    if len(exact) == 2:  # the number from the linked data has an English word
        expected["followers"] = found["followers"]
    assert {key: value for key, value in found.items() if value != expected[key]} == {}
    assert page.unread == []


def test_the_examples_of_a_german_page() -> None:
    body = html_of().replace("en_US", "de_DE")
    body = re.sub(r"<span>\s*[\d.]+[KM]? followers\s*</span>", "<span>12.345 Follower:innen</span>", body)
    assert read(body)["followers"] == "12.345 Follower:innen"
    found = period("Jan. 2020", " – Heute")
    assert (found.start, found.end) == ("Jan. 2020", "Heute")


def period(time: str, after: str) -> Any:
    node = LexborHTMLParser(f'<p class="date-range"><time>{time}</time>{after}</p>').css_first("p")
    assert node
    return dates(node)


@pytest.mark.parametrize("dash", [" - ", "-", " – ", "—"])
def test_the_end_of_a_period_follows_any_dash(dash: str) -> None:
    found = period("2020-01", f"{dash}Heute")
    assert (found.start, found.end) == ("2020-01", "Heute")


# Unread rows, and a renamed top section


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_honest_pages_have_no_warnings(seed: int) -> None:
    network = Site(seed, light=True)
    for slug in network.members:
        page = page_of(network.page(FakeRequest(f"/in/{quote(slug)}"))[2].decode())
        asyncio.run(page.to_item())
        assert (slug, page.unread) == (slug, [])


# Other URLs of a profile


@pytest.mark.parametrize(
    "url",
    [
        f"{SITE}/in/jane-doe/details/experience",
        f"{SITE}/in/jane-doe/details/experience/",
        f"{SITE}/in/jane-doe/recent-activity",
        f"{SITE}/in/jane-doe/recent-activity/all/",
        f"{SITE}/in/jane-doe/overlay/contact-info/",
        f"{SITE}/mwlite/in/jane-doe",
        "https://m.linkedin.com/in/jane-doe",
    ],
)
def test_urls_of_parts_of_a_profile_are_accepted(url: str) -> None:
    assert slug_of_url(url) == "jane-doe"


# No second request after the platform has blocked the first


def test_the_browser_cannot_be_a_fallback() -> None:
    command = [sys.executable, "-m", "scrapy", "crawl", "professional", "-a", f"url={SITE}/in/x"]
    run = forks.run(
        [*command, "-s", "BROWSER_FALLBACK=professional"], check=False, capture_output=True, text=True, cwd=ROOT
    )
    message = "BROWSER_FALLBACK: blocked pages of professional cannot be loaded in the browser."
    assert (run.returncode, run.stderr.splitlines()[-1]) == (2, message)


# Requests have the headers of a browser


def test_the_request_has_a_browsers_headers() -> None:
    headers = profile_request("x").headers.to_unicode_dict()
    assert {name: headers[name] for name in NAVIGATION_HEADERS} == NAVIGATION_HEADERS


# A masked page, completed from its linked data


def masked_page(rows: str, person: dict[str, Any], *, about: str = "") -> ProfilePage:
    """Return a page with a masked list, whose rows are "name|title|years"."""
    cells = [each.split("|") for each in rows.split("\n")]
    listed = "".join(
        f'<li><img src="{GHOST}"><h3>{name}</h3><h4>{second}</h4>{years and period_of(years)}</li>'
        for name, second, years in cells
    )
    block = f'<section class="experience-education"><ul class="visible-list">{listed}</ul></section>'
    linked = MEMBER_NODE | person
    return page_of(f'{HEAD}<script type="application/ld+json">{json.dumps(linked)}</script>{about}{block}')


def period_of(years: str) -> str:
    return '<span class="date-range">' + " - ".join(f"<time>{year}</time>" for year in years.split("-")) + "</span>"


def employer(name: str, **values: Any) -> dict[str, Any]:
    return {"@type": "Organization", "name": name, **values}


def attended(name: str, start: str, end: str) -> dict[str, Any]:
    dates = {"startDate": start, "endDate": end}
    return {"@type": "EducationalOrganization", "name": name, "url": f"https://uk.linkedin.com/school/{name}/"} | {
        "member": dates
    }


def test_a_masked_list_gets_what_the_linked_data_has_in_clear() -> None:
    person = {
        "jobTitle": ["*****", "***", "Cook", "***"],
        "worksFor": [
            employer("Acme", url="https://br.linkedin.com/company/acme/", location="Delft"),
            employer("*** ***", location="Ghent", member={"description": "** *** undefined"}),
            employer("****", location="Lund", member={"description": "Soups"}),
            employer("*****", location="Oslo"),
        ],
        "alumniOf": [attended("north", "2015", "2018"), attended("south", "2018-09", "2020-06")],
    }
    page = masked_page("Acme|*****|\n*** ***|***|\n****|****|\n*****|*** undefined|2018-2020\n***|**|", person)
    found = validated(Profile, asyncio.run(page.to_item()))
    positions = [(row["company_name"], row["job_title"], row["location"], row["masked"]) for row in found["experience"]]
    assert positions == [
        ("Acme", "", "Delft", True),
        ("", "", "Ghent", True),
        ("", "Cook", "Lund", True),
        ("", "", "Oslo", True),
    ]
    first = found["experience"][0]
    assert (first["company_url"], first["company_name_source"]) == (f"{SITE}/company/acme", "page")
    assert [row["description"] for row in found["experience"]] == ["", "", "Soups", ""]
    schools = [(row["school_name"], row["school_url"], row["date_range"], row["masked"]) for row in found["education"]]
    assert schools == [
        ("south", f"{SITE}/school/south", "2018-09 - 2020-06", True),
        ("", "", "", True),
        ("north", f"{SITE}/school/north", "", False),
    ]
    availability = found["data_availability"]
    assert (availability["positions_found"], availability["positions_masked_by_linkedin"]) == (4, 4)
    assert (availability["positions_with_job_title"], availability["education_found"]) == (1, 3)


def test_broken_linked_data_of_a_masked_page_is_reported() -> None:
    """The masked list has only the first positions: the others, and all places, are in the linked data."""
    employers = [employer(f"Firm {number}", location="Delft") for number in range(10)]
    titles = ["***"] * len(employers)
    whole = masked_page("Firm 0|***|", {"worksFor": employers, "jobTitle": titles})
    assert len(asyncio.run(whole.to_item())["experience"]) == 10
    assert whole.unread == []
    body = whole.response.text
    end = body.index("</script>")
    page = page_of(body[: end - 20] + body[end:])
    item = asyncio.run(page.to_item())
    assert (len(item["experience"]), [str(each) for each in page.unread]) == (1, ["linked_data[]: type, not collected"])
    assert "could not be read" in item["data_availability"]["note"]


# In a crawl


def test_and_4_in_a_crawl(tmp_path: Any) -> None:
    targets = tmp_path / "targets.jsonl"
    names = ("other-member", "other-member-once", "mara-before", "wrong-member")
    targets.write_text("".join(f'{{"id": "{name}", "url": "{SITE}/in/{name}"}}\n' for name in names))
    code, out, failures, log = crawl(tmp_path, "-a", f"targets={targets}", spider="professional")
    assert code == 4, log
    assert {each["id"]: (each["code"], each["upstream"]["reason"]) for each in failures} == dict.fromkeys(
        ("other-member", "wrong-member"), ("EXTRACTION_FAILED", "wrong_echo")
    )
    assert {each["id"]: each["data"]["public_identifier"] for each in out} == {
        "other-member-once": "other-member-once",
        "mara-before": MEMBER,
    }


# One pass over the page


def test_a_page_is_parsed_once_from_its_bytes_and_not_searched_by_xpath(monkeypatch: pytest.MonkeyPatch) -> None:
    status, _, body = NETWORK.page(FakeRequest(f"/in/{MEMBER}"))
    assert status == 200
    monkeypatch.delattr(HttpResponse, "text")
    monkeypatch.delattr(Selector, "xpath")
    assert read(body.decode(), slug=MEMBER) == NETWORK.expected_record({"url": f"/in/{MEMBER}"})
