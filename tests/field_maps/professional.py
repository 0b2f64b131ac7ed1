"""Professional: reads the sections of a member's page that occur in captures, independently of the page objects.

The notes on the platform do not specify the wording of ``data_availability.note`` and of an exact number of followers,
the keys in the rows of volunteering, projects, recommendations, awards and languages, and the date range of a position
whose dates are only in the linked data. For these, this module follows the project's documentation and other fixtures.
"""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import parse_qs, unquote, urljoin, urlsplit

from parsel import Selector, SelectorList

from tests.field_maps.paths import at

SITE = "https://www.linkedin.com"
CARD = "section.top-card-layout"
FULL_NOTE = "The platform served this profile in full, as far as it is shown to visitors without an account."
MASKED_NOTE = (
    "The platform served the masked variant of this profile: {0} of {0} positions have no readable title or company."
)
LINKED_NOTE = "Only the page's linked data was available, which has no past titles and no lists of skills or activity."
ALWAYS_WITHHELD = ["contact_info", "experience.employment_type"]
MASKED_WITHHELD = [
    *("about", "contact_info", "education", "experience.company_name", "experience.date_range"),
    *("experience.employment_type", "experience.job_title", "headline", "skills"),
]
NONE_SHOWN = ("certifications", "courses", "organizations", "publications", "same_name", "services")


def payload_of(body: str) -> Selector:
    """The page."""
    return Selector(body)


COUNTRIES = {"United States": "US"}


def expected(_page: str, page: Selector | dict[str, Any]) -> dict[str, Any] | None:
    """Return what must be extracted from a page, or from the linked data of one."""
    if isinstance(page, dict):
        page = Selector(f'<script type="application/ld+json">{json.dumps(page)}</script>')
    data, has_head = linked_data(page), bool(page.css("h1.top-card-layout__title"))
    masked = bool(page.css("section.experience-education")) or is_masked(at(person(data), "jobTitle"))
    if has_head:
        experience, education = masked_rows(page) if masked else (positions(page), schools(page))
    else:
        experience, education = linked_positions(data), linked_schools(data)
    about, full_name = summary(page, data), words(page.css("h1.top-card-layout__title")) or person(data)["name"]
    activity = activities(page)
    found = {
        "about": about,
        "about_truncated": masked and about.endswith("…"),
        "activity": activity,
        "activity_count": len(activity),
        "articles": articles(page) or linked_articles(data),
        "awards": [award(title) for title in at(person(data), "awards") or []],
        "background_cover_image_url": image(page.css(f"{CARD} img.cover-img__image")) or "",
        "contact_info": {},
        "country": at(person(data), "address.addressCountry") or COUNTRIES.get(location(page).rpartition(", ")[2], ""),
        "current_company": link_of(page.css(f"{CARD} [data-section=currentPositionsDetails]")),
        "current_school": link_of(page.css(f"{CARD} [data-section=educationsDetails]")),
        "education": education,
        "experience": experience,
        "firstName": meta(page, "profile:first_name") or full_name.split()[0],
        "languages": [{"name": each["name"], "proficiency": ""} for each in at(person(data), "knowsLanguage") or []],
        "lastName": meta(page, "profile:last_name") or " ".join(full_name.split()[1:]),
        "fullName": full_name,
        "headline": words(page.css("h2.top-card-layout__headline")),
        "location": location(page) or at(person(data), "address.addressLocality") or "",
        "people_also_viewed": neighbours(page),
        "profile_photo": photo(page, data),
        "projects": [project(row) for row in rows(page, "projects")],
        "recommendations": [
            recommendation(row) for row in page.css("[data-section=recommendations] .endorsement-card")
        ],
        "skills": [words(row) for row in page.css("[data-section=skills] li.skills__item")],
        "success": True,
        "total_experiences": len(experience),
        "volunteer_experience": [volunteering(row) for row in rows(page, "volunteering")],
        "websites": websites(page),
    }
    url = page.css("link[rel=canonical]::attr(href)").get() or meta(page, "og:url") or at(person(data), "url")
    found |= {"profile_url": url, "public_identifier": unquote(url.rstrip("/").rpartition("/")[2])}
    found["data_availability"] = availability(found, masked=masked, has_head=has_head)
    return found | counts(page, data) | {name: [] for name in NONE_SHOWN}


def availability(found: dict[str, Any], *, masked: bool, has_head: bool) -> dict[str, Any]:
    """The fields that the page withheld."""
    experience, education = found["experience"], found["education"]
    note = MASKED_NOTE.format(len(experience)) if masked else FULL_NOTE if has_head else LINKED_NOTE
    withheld = [name for name in MASKED_WITHHELD if name != "education" or any(each["masked"] for each in education)]
    return {
        "about_truncated": found["about_truncated"],
        "authenticated": False,
        "education_found": len(education),
        "fields_withheld_by_linkedin": withheld if masked else ALWAYS_WITHHELD,
        "note": note,
        "positions_found": len(experience),
        "positions_masked_by_linkedin": sum(each["masked"] for each in experience),
        "positions_with_job_title": sum(bool(each["job_title"]) for each in experience),
        "source": "public_profile_page" if has_head else "json_ld",
    }


# Parts of a page


def words(found: SelectorList[Selector] | Selector, *, lines: bool = False) -> str:
    """The text of the first element; ``lines`` keeps the line breaks."""
    first = found[0] if isinstance(found, SelectorList) and found else found
    if not isinstance(first, Selector):
        return ""
    if not lines:
        return " ".join(" ".join(first.xpath(".//text()").getall()).split())
    markup = re.sub(r"(?s)<button.*?</button>", "", first.get())
    plain = Selector("<div>" + re.sub(r"<br\s*/?>", "\n", markup) + "</div>").xpath("string()").get() or ""
    shown = "\n".join(" ".join(line.split()) for line in plain.strip().splitlines())
    return re.sub(r"\s*<br\s*/?>\s*", " ", shown)  # breaks that are escaped twice


def address(url: str | None) -> str:
    """A URL without tracking parameters; for a redirect, its destination."""
    parts = urlsplit(url or "")
    if parts.path == "/redir/redirect":
        return parse_qs(parts.query)["url"][0]
    return re.sub(r"[?&]trk=[^&]*$", "", url or "")


def image(found: SelectorList[Selector]) -> str | None:
    """The URL of the first image; None for the platform's placeholders."""
    url: str = found.attrib.get("data-delayed-url") or found.attrib.get("src") or ""
    return None if not url or urlsplit(url).hostname == "static.licdn.com" else url


def meta(page: Selector, name: str) -> str:
    return page.css(f'meta[property="{name}"]::attr(content)').get() or ""


def rows(page: Selector, section: str) -> SelectorList[Selector]:
    return page.css(f"section[data-section={section}] li.profile-section-card")


def linked_data(page: Selector) -> list[dict[str, Any]]:
    blocks = page.css('script[type="application/ld+json"]::text').getall()
    return [node for block in blocks for node in json.loads(block)["@graph"]]


def person(data: list[dict[str, Any]]) -> dict[str, Any]:
    return next((node for node in data if node["@type"] == "Person"), {})


# The head of a page


def summary(page: Selector, data: list[dict[str, Any]]) -> str:
    shown = words(page.css("section[data-section=summary] .core-section-container__content p"), lines=True)
    return shown or at(person(data), "description") or ""


def location(page: Selector) -> str:
    shown = (words(each) for each in page.css(f"{CARD} .profile-info-subheader > span"))
    return next(filter(None, shown), "")


def counts(page: Selector, data: list[dict[str, Any]]) -> dict[str, str]:
    shown = [words(each) for each in page.css(f"{CARD} .profile-info-subheader .not-first-middot > span")]
    exact = at(person(data), "interactionStatistic.userInteractionCount")
    followers = next((each for each in shown if "follower" in each), f"{exact} followers" if exact else "")
    return {"connections": next((each for each in shown if "connection" in each), ""), "followers": followers}


def photo(page: Selector, data: list[dict[str, Any]]) -> str:
    shown = image(page.css(f"{CARD} [data-section=picture] img")) or meta(page, "og:image")
    # Resolved against the page's URL, because in a capture a text replaces the removed URL.
    return shown or urljoin(SITE, at(person(data), "image.contentUrl") or "")


def link_of(found: SelectorList[Selector]) -> dict[str, str | None]:
    name, url = words(found.css(".top-card-link__description")), address(found.css("a::attr(href)").get())
    return {"logo": image(found.css("img")), "name": name, "url": url}


def websites(page: Selector) -> list[dict[str, str]]:
    listed = page.css(f"{CARD} [data-section=websites] .websites-list__row")
    if listed:
        return [{"label": words(row.css("dt")), "url": address(row.css("dd a::attr(href)").get())} for row in listed]
    links = page.css(f"{CARD} [data-section=websites] > a")
    return [{"label": words(each), "url": address(each.attrib["href"])} for each in links]


# Lists


def dates(row: Selector | SelectorList[Selector]) -> tuple[str, list[str], str]:
    """The range as shown, its start and end, and the duration."""
    shown = row.css(".date-range")
    times = [words(each) for each in shown.css("time")]
    ends = [*times, "Present"] if len(times) == 1 else times
    return " - ".join(ends), ends, words(shown.xpath("./span"))


def slug(url: str) -> str:
    found = re.search(r"/(?:company|school|showcase)/([^/?]+)", url)
    return unquote(found[1]) if found else ""


def positions(page: Selector) -> list[dict[str, Any]]:
    found = page.css("ul.experience__list").css("li.experience-item, li.experience-group-position")
    return [position(row) for row in found]


def position(row: Selector) -> dict[str, Any]:
    shown, ends, duration = dates(row)
    url = address(row.css("h4 a::attr(href)").get() or row.css("a.profile-section-card__image-link::attr(href)").get())
    places = [each for each in row.css("p.experience-item__meta-item") if not each.css(".date-range")]
    return {
        "company_image": image(row.css("img")),
        "company_name": words(row.css(".experience-item__subtitle")),
        "company_name_source": "page",
        "company_slug": slug(url),
        "company_url": url,
        "date_range": shown,
        "description": description(row),
        "duration": duration,
        "employment_type": "",
        "end_date": ends[-1] if ends else "",
        "job_title": words(row.css(".experience-item__title")),
        "location": words(places[0]) if places else "",
        "masked": False,
        "start_date": ends[0] if ends else "",
    }


def description(row: Selector) -> str:
    whole = row.css(".show-more-less-text__text--more") or row.css(".show-more-less-text__text--less")
    return words(whole, lines=True)


def schools(page: Selector) -> list[dict[str, Any]]:
    return [school(row) for row in page.css("li.education__list-item")]


def school(row: Selector) -> dict[str, Any]:
    shown, ends, _ = dates(row)
    years = [int(each[-4:]) if each[-4:].isdecimal() else None for each in ends]
    named = [words(each) for each in row.css("h4 span.control-transition")] or [words(row.css("h4")).strip("-")]
    return {
        "date_range": shown,
        "degree": named[0],
        "description": description(row),
        "end_date": years[-1] if years else None,
        "field_of_study": named[1] if len(named) > 1 else "",
        "grade": named[2] if len(named) > 2 else "",
        "masked": False,
        "school_image": image(row.css("img")),
        "school_name": words(row.css("h3")),
        "school_url": address(row.css("h3 a::attr(href)").get()),
        "start_date": years[0] if years else None,
    }


def masked_rows(page: Selector) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Positions and schools from the masked list. Only schools show years. The logos of masked rows are not used."""
    listed = page.css(".experience-education__list li")
    own = link_of(page.css(f"{CARD} [data-section=currentPositionsDetails]"))
    jobs = [masked_position(row, own) for row in listed if not row.css(".date-range")]
    clear = {"school_name": "", "school_image": None, "degree": "", "field_of_study": "", "masked": True}
    return jobs, [school(row) | clear for row in listed if row.css(".date-range")]


def masked_position(row: Selector, own: dict[str, str | None]) -> dict[str, Any]:
    found = dict.fromkeys(position(row), "") | {"company_image": None, "company_name_source": "masked", "masked": True}
    if words(row.css("h3")) != own["name"]:
        return found
    known = {"company_image": own["logo"], "company_name": own["name"], "company_url": own["url"]}
    return found | known | {"company_name_source": "top_card", "company_slug": slug(own["url"] or "")}


# Linked data, the only source for some pages


def is_masked(value: Any) -> bool:
    return "***" in str(value)


def linked_positions(data: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Present employers, then past ones (in linked data, among the schools). Only present positions have titles."""
    current = at(person(data), "worksFor") or []
    titles = at(person(data), "jobTitle") or []
    titles = titles if len(titles) == len(current) else [""] * len(current)
    past = [each for each in at(person(data), "alumniOf") or [] if each["@type"] == "Organization"]
    masked = is_masked(at(person(data), "jobTitle"))
    found = [linked_position(each, title) for each, title in zip(current, titles, strict=True)]
    found += [linked_position(each, "") for each in past]
    return [each | {"masked": masked or each["masked"]} for each in found]


def linked_position(employer: dict[str, Any], title: str) -> dict[str, Any]:
    hidden, url = is_masked(employer["name"]), employer.get("url") or ""
    return dict.fromkeys(position(Selector("<li></li>")), "") | {
        "company_image": None,
        "company_name": "" if hidden else employer["name"],
        "company_name_source": "masked" if hidden else "json_ld",
        "company_slug": slug(url),
        "company_url": url,
        "description": at(employer, "member.description") or "",
        "end_date": str(at(employer, "member.endDate") or ""),
        "job_title": "" if is_masked(title) else title,
        "location": employer.get("location") or "",
        "masked": hidden,
        "start_date": str(at(employer, "member.startDate") or ""),
    }


def linked_schools(data: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Schools. On a masked page, they stay masked, although the linked data may contain them in clear."""
    listed = [each for each in at(person(data), "alumniOf") or [] if each["@type"] == "EducationalOrganization"]
    masked = is_masked(at(person(data), "jobTitle"))
    return [
        school(Selector("<li></li>"))
        | {
            "end_date": at(each, "member.endDate"),
            "masked": masked,
            "school_name": "" if masked else each["name"],
            "school_url": "" if masked else (each.get("url") or ""),
            "start_date": at(each, "member.startDate"),
        }
        for each in listed
    ]


def award(title: str) -> dict[str, str]:
    return {"date": "", "description": "", "issuer": "", "title": title}


# Other lists


def activities(page: Selector) -> list[dict[str, Any]]:
    tabs = page.css("section[data-section=posts] li.slide-list__item")
    listed = page.css("section[data-section=posts] ul[data-test-id=activities__list] > li")
    return [tab_card(card) for card in tabs] + [list_card(card) for card in listed]


def list_card(card: Selector) -> dict[str, Any]:
    member = card.css("h4.base-main-card__subtitle a")
    return {
        "action": words(card.css("h4.base-main-card__subtitle")),
        "author": words(member),
        "author_url": address(member.attrib["href"]),
        "image": image(card.css("img.main-activity-card__img")),
        "link": address(card.css('a.base-card__full-link[href*="/posts/"]::attr(href)').get()),
        "text": words(card.css("h3.base-main-card__title")),
    }


def tab_card(card: Selector) -> dict[str, Any]:
    links = card.css("a.base-card__full-link")
    acted = next(
        link for link in links if re.search(r"(shared|reposted|liked|reacted on|commented on) this$", words(link))
    )
    # The author of a post. On a card about another member's post, it is in the nested card.
    author = card.css(".profile-activity-original-author") or card.css(".profile-activity-card .publisher-author-card")
    return {
        "action": words(acted),
        "author": words(author.css(".base-main-card__title")),
        "author_url": address(author.css("a::attr(href)").get()),
        "image": image(card.css(".profile-activity-content-card img")),
        "link": address(acted.attrib["href"]),
        "text": words(card.css(".see-more-text, [data-see-more-text]"), lines=True),
    }


def articles(page: Selector) -> list[dict[str, str]]:
    return [
        {
            "image": image(card.css(".base-main-card__media img")) or "",
            "link": address(card.css("a.base-card__full-link::attr(href)").get()),
            "title": words(card.css("h3.base-main-card__title")),
        }
        for card in page.css("section[data-section=articles] li .base-main-card")
    ]


def linked_articles(data: list[dict[str, Any]]) -> list[dict[str, str]]:
    nodes = [node for node in data if node["@type"] == "Article"]
    return [
        {"image": at(node, "image.url") or "", "link": node["url"], "title": node.get("headline") or node["name"]}
        for node in nodes
    ]


def neighbours(page: Selector) -> list[dict[str, Any]]:
    return [neighbour(card) for card in page.css("section.browsemap li .base-aside-card")]


def neighbour(card: Selector) -> dict[str, Any]:
    shown = [words(each) for each in card.css(".base-aside-card__metadata > div")]
    return {
        "followers": next((each for each in shown if "follower" in each), ""),
        "image": image(card.css("img")),
        "link": address(card.css("a.base-card__full-link::attr(href)").get()),
        "location": next((each for each in shown if "follower" not in each), ""),
        "name": words(card.css("h3")),
        "summary": words(card.css(".base-aside-card__subtitle"), lines=True),
    }


def volunteering(row: Selector) -> dict[str, Any]:
    causes = row.xpath('.//p[not(.//*[contains(@class, "date-range")])][not(contains(@class, "show-more-less"))]')
    return {
        "cause": words(causes),
        "date_range": dates(row)[0],
        "description": description(row),
        "organization": words(row.css("h4")),
        "organization_url": address(row.css("h4 a::attr(href)").get()),
        "role": words(row.css("h3")),
    }


def project(row: Selector) -> dict[str, Any]:
    return {
        "contributors": row.css("a.face-pile__url::attr(title)").getall(),
        "date_range": dates(row)[0],
        "description": description(row),
        "title": words(row.css("h3")),
        "url": address(row.css("h3 a::attr(href)").get()),
    }


def recommendation(row: Selector) -> dict[str, str]:
    text = words(row.css(".endorsement-card__content"), lines=True)
    return {
        "name": words(row.css("h3")),
        "text": text.strip("“”"),
        "url": address(row.css("a::attr(href)").get()),
    }
