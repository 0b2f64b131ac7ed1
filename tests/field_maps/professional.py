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
NONE_SHOWN = ("certifications", "courses", "organizations", "publications", "services")


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
    if has_head and masked:
        experience, education = masked_rows(page, data)
    elif has_head:
        experience, education = positions(page), schools(page)
    else:
        experience, education = linked_positions(data), linked_schools(data)
    about, full_name = summary(page, data), words(page.css("h1.top-card-layout__title")) or person(data)["name"]
    activity = activities(page, data)
    found: dict[str, Any] = {
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
        "languages": [language(row) for row in rows(page, "languages")]
        or [{"name": each["name"], "proficiency": ""} for each in at(person(data), "knowsLanguage") or []],
        "lastName": meta(page, "profile:last_name") or " ".join(full_name.split()[1:]),
        "fullName": full_name,
        "headline": words(page.css("h2.top-card-layout__headline")),
        "location": location(page) or at(person(data), "address.addressLocality") or "",
        "people_also_viewed": [neighbour(card) for card in page.css("section.browsemap li .base-aside-card")],
        "profile_photo": photo(page, data),
        "projects": [project(row) for row in rows(page, "projects")],
        "recommendations": [
            recommendation(row) for row in page.css("[data-section=recommendations] .endorsement-card")
        ],
        "same_name": [namesake(card) for card in page.css("section.samename li > *")],
        "skills": [words(row) for row in page.css("[data-section=skills] li.skills__item")],
        "success": True,
        "total_experiences": len(experience),
        "volunteer_experience": [volunteering(row) for row in rows(page, "volunteering")],
        "websites": websites(page),
    }
    url = page.css("link[rel=canonical]::attr(href)").get() or meta(page, "og:url") or at(person(data), "url")
    found |= {"profile_url": url, "public_identifier": unquote(url.rstrip("/").rpartition("/")[2])}
    found["data_availability"] = availability(found, masked=masked, has_head=has_head)
    language_of_page = page.css("meta[name=locale]::attr(content)").get() or "en"
    if not language_of_page.startswith("en"):
        found["data_availability"]["note"] += f" Its language is {language_of_page}: texts are in this language."
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
    plain = re.sub(r"[?&]trk=[^&]*$", "", url or "")
    # Companies and schools have one form of URL, although a page has several.
    return re.sub(r"^https://[a-z]+\.(linkedin\.com/(?:company|school|showcase)/[^/?]+)/?$", r"https://www.\1", plain)


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
    contents = page.css("section[data-section=summary] .core-section-container__content")
    shown = words(contents.xpath("./p"), lines=True)
    cut = " ".join("".join(contents.xpath("./div/text()").getall()).split())  # before the sign-in window
    return shown or cut or at(person(data), "description") or ""


def location(page: Selector) -> str:
    header = page.css(f"{CARD} .profile-info-subheader")
    until_2026_01 = header.xpath("./div[.//*[@data-modal]]").css("span:not([data-modal])")
    shown = (words(each) for each in [*header.xpath("./span"), *until_2026_01])
    return next(filter(None, shown), "")


def counts(page: Selector, data: list[dict[str, Any]]) -> dict[str, str]:
    """The texts about followers, which are first, and about connections."""
    groups = page.css(f"{CARD} .profile-info-subheader .not-first-middot").xpath("self::*[not(.//*[@data-modal])]")
    shown = [words(each) for each in groups.xpath("./span")]
    exact = at(person(data), "interactionStatistic.userInteractionCount")
    followers, connections = shown if len(shown) == 2 else (f"{exact} followers" if exact else "", "")
    return {"connections": connections, "followers": followers}


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


def masked_rows(page: Selector, data: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Positions and schools from the masked list. Only schools show years. The logos of masked rows are not used.

    The linked data has the same rows in the same order: positions with the same names, masked or not, and schools with
    the same years. Its other rows follow.
    """
    listed = page.css(".experience-education__list li")
    own = link_of(page.css(f"{CARD} [data-section=currentPositionsDetails]"))
    employers, jobs = list(zip(employers_of(data), linked_positions(data), strict=True)), []
    for row in listed:
        if not row.css(".date-range"):
            found = next((each for each in employers if each[0].strip() == words(row.css("h3"))), None)
            employers = [each for each in employers if each is not found]
            jobs.append(masked_position(row, own) | ({"location": found[1]["location"]} if found else {}))
    return jobs + [job for _, job in employers], masked_schools(listed.css(":scope:has(.date-range)"), data)


def masked_schools(listed: SelectorList[Selector], data: list[dict[str, Any]]) -> list[dict[str, Any]]:
    linked, studies = linked_schools(data), []
    for row in listed:
        study = school(row) | {"school_name": "", "school_url": "", "degree": "", "field_of_study": "", "masked": True}
        same = [each for each in linked if all(each[key] == study[key] for key in ("start_date", "end_date"))]
        known = (
            {key: same[0][key] for key in ("date_range", "description", "school_name", "school_url")} if same else {}
        )
        linked = [each for each in linked if each not in same[:1]]
        studies.append(study | known | ({} if known.get("school_name") else {"school_image": None}))
    return studies + linked


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


def employers_of(data: list[dict[str, Any]]) -> list[str]:
    """The names of the present employers, then of the past ones."""
    past = [each for each in at(person(data), "alumniOf") or [] if each["@type"] == "Organization"]
    return [each["name"] for each in [*(at(person(data), "worksFor") or []), *past]]


def linked_position(employer: dict[str, Any], title: str) -> dict[str, Any]:
    hidden, url = is_masked(employer["name"]), employer.get("url") or ""
    return dict.fromkeys(position(Selector("<li></li>")), "") | {
        "company_image": None,
        "company_name": "" if hidden else employer["name"],
        "company_name_source": "masked" if hidden else "json_ld",
        "company_slug": slug(url),
        "company_url": address(url),
        "description": plain_line(at(employer, "member.description")),
        "end_date": str(at(employer, "member.endDate") or ""),
        "job_title": "" if is_masked(title) else title,
        "location": employer.get("location") or "",
        "masked": hidden,
        "start_date": str(at(employer, "member.startDate") or ""),
    }


def linked_schools(data: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Schools, each masked by itself."""
    listed = [each for each in at(person(data), "alumniOf") or [] if each["@type"] == "EducationalOrganization"]
    return [linked_school(each) for each in listed]


def linked_school(found: dict[str, Any]) -> dict[str, Any]:
    masked, times = is_masked(found["name"]), [str(at(found, f"member.{name}Date") or "") for name in ("start", "end")]
    years = [int(each[:4]) if each else None for each in times]
    return school(Selector("<li></li>")) | {
        "date_range": " - ".join(times) if "-" in times[0] else "",
        "description": plain_line(at(found, "member.description")),
        "end_date": years[1],
        "masked": masked,
        "school_name": "" if masked else found["name"],
        "school_url": "" if masked else address(found.get("url")),
        "start_date": years[0],
    }


def plain_line(text: str | None) -> str:
    return "" if is_masked(text) else " ".join((text or "").split())


def award(title: str) -> dict[str, str]:
    return {"date": "", "description": "", "issuer": "", "title": title}


# Other lists


def activities(page: Selector, data: list[dict[str, Any]]) -> list[dict[str, Any]]:
    tabs = page.css("section[data-section=posts] li.slide-list__item")
    listed = page.css("section[data-section=posts] ul[data-test-id=activities__list] > li")
    own = page.css("link[rel=canonical]::attr(href)").get("").rpartition("/")[2]
    known = {node["url"]: node["text"] for node in data if node["@type"] == "DiscussionForumPosting"}
    return [tab_card(card) for card in tabs] + [list_card(card, own, known) for card in listed]


def list_card(card: Selector, own: str, known: dict[str, str]) -> dict[str, Any]:
    """A card in the list names the member who acted. The linked data has the member's own posts, with whole texts."""
    member = card.css("h4.base-main-card__subtitle a")
    link = address(card.css('a.base-card__full-link[href*="/posts/"]::attr(href)').get())
    is_own = link in known or f"/posts/{own}_" in link
    shown, whole = words(card.css("h3.base-main-card__title")), known.get(link, "")
    is_cut = shown.endswith("…") and " ".join(whole.split()).startswith(shown.rstrip("… "))
    return {
        "action": words(card.css("h4.base-main-card__subtitle")),
        "author": words(member) if is_own else "",
        "author_url": address(member.attrib["href"]) if is_own else "",
        "image": image(card.css("img.main-activity-card__img")),
        "link": link,
        "text": "\n".join(" ".join(each.split()) for each in whole.strip().split("\n")) if is_cut else shown,
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


def neighbour(card: Selector) -> dict[str, Any]:
    """A card about another member. Since 2026-07, its details are separate elements; before, only a location."""
    details = card.css(".base-aside-card__metadata")
    shown = [words(each) for each in details.xpath("./div") or details]
    summary = " ".join(words(card.css(".base-aside-card__subtitle"), lines=True).split())
    return {
        "followers": shown[0] if len(shown) > 1 else "",
        "image": image(card.css("img, [data-delayed-background]")),
        "link": address(card.css("a::attr(href)").get() or card.attrib.get("href")),
        "location": shown[-1],
        "name": words(card.css("h3")),
        "summary": summary,
    }


def namesake(card: Selector) -> dict[str, Any]:
    found = neighbour(card)
    del found["followers"]
    return found | {"headline": found.pop("summary")}


def language(row: Selector) -> dict[str, str]:
    return {"name": words(row.css("h3")), "proficiency": words(row.css("h4")).strip("-")}


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
