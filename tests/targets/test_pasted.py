"""Texts as people have them: links and names with what surrounds them, lists and tables with the user's own columns."""

from __future__ import annotations

import asyncio
import csv
import json
import unicodedata
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from crawler.errors import InvalidRequest
from crawler.platforms.links import (
    Link,
    LinkError,
    all_links,
    cleaned,
    is_link,
    link_in,
    read_link,
    split_link,
    unquoted,
)
from crawler.registry import find_scraper, scrapers, spiders
from crawler.targets.files.source import FileSource
from crawler.targets.parser import TargetParser, check_params
from crawler.targets.target import InvalidTarget, Target
from tests.targets import reading
from tests.targets.workbooks import workbook

FIXTURES = Path(__file__).parents[1] / "fixtures"
EVERY = TargetParser(tuple(scrapers().values()))


def targets_of(path: Path, parser: TargetParser = EVERY) -> list[Target | InvalidTarget]:
    return reading.targets_of(path, parser)


AROUND = {
    "blanks": "  {} \t",
    "a no-break space": "\u00a0{}\u202f",
    "spaces of no width": "\u200b{}\u200b\ufeff",
    "marks of direction": "\u200e{}\u202c",
    "quotation marks": '"{}"',
    "curly quotation marks": "“{}”",
    "German quotation marks": "„{}“",
    "angle brackets": "<{}>",
    "a soft hyphen": "{}\u00ad",
    "a line end": "{}\r\n",
}
OWN = [
    ("retail-category-v4", "cat_id", "976759_976787"),
    ("microblog-profile", "username", "@NASA"),
    ("videosite-profile-v3", "username", "UC2D2CMWXMOVWx7giW1n3LIg"),
    ("professional-profile-v4", "username", "jane-doe-1a2b"),
    ("shortvideo-photo-search-v4", "cursor", "30"),
    ("retail-search-v4", "sort", "price_low"),
]
NEEDED = {"cursor": {"keywords": "cat"}, "sort": {"query": "tea"}}


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize(("scraper", "name", "value"), OWN)
def test_what_surrounds_a_param_is_dropped(scraper: str, name: str, value: str, around: str) -> None:
    params = {**NEEDED.get(name, {}), name: AROUND[around].format(value)}
    for text in (False, True):
        assert check_params(find_scraper(scraper), params, text=text).model_dump()[name] == value


def test_words_to_search_for_keep_their_quotation_marks() -> None:
    params = check_params(find_scraper("retail-search-v4"), {"query": ' "office chair"\u200b '})
    assert params.model_dump()["query"] == '"office chair"'


@pytest.mark.parametrize(
    ("scraper", "given", "sentence"),
    [
        ("retail-category-v4", {"cat_id": "food"}, "a category's id is a number, or several joined by underscores"),
        ("microblog-profile", {"username": "a name"}, "a handle has 1 to 15 letters, digits and underscores"),
        ("videosite-profile-v3", {"username": "a b"}, "a channel is named by its handle (@name), its id (UC...)"),
        ("shortvideo-photo-search-v4", {"keywords": "a", "cursor": "x"}, "a cursor is a number of at most 6 digits"),
        ("photoapp-post-v4", {"url": f"https://www.instagram.com/p/{'a' * 2_000}"}, "at most 2000 characters"),
        ("retail-search-v4", {"query": "x" * 201}, "String should have at most 200 characters"),
        ("shortvideo-photo-search-v4", {"keywords": "x" * 201}, "String should have at most 200 characters"),
        ("retail-search-v4", {"query": " \u200b "}, "the text has no words to search for"),
    ],
)
def test_a_wrong_param_gets_a_sentence_and_no_pattern(scraper: str, given: dict[str, str], sentence: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        check_params(find_scraper(scraper), given)
    assert sentence in refused.value.message
    assert "pattern" not in refused.value.message


HANDLES = """
    NASA Ελληνικά Кириллица հայերեն עברית مُحَمَّد اردو فارسی हिन्दीगीत বাংলাগান ਪੰਜਾਬੀ ગુજરાતી
    ଓଡ଼ିଆ தமிழ் తెలుగు ಕನ್ನಡ മലയാളം සිංහල ภาษาไทย ພາສາລາວ བོད་ཡིག မြန်မာ ქართული 한국어 አማርኛ ភាសាខ្មែរ
    ᠮᠣᠩᠭᠣᠯ はじめしゃちょー 中文频道 café-noir Tiếng.Việt
    """.split()  # noqa: SIM905  # a list of quoted words would need four times as many lines


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("handle", HANDLES)
def test_a_handle_in_any_script_is_the_same_as_name_and_as_link(handle: str, form: Any) -> None:
    """macOS copies texts in the form NFD."""
    written = unicodedata.normalize(form, handle)
    scraper = find_scraper("videosite-profile-v3")
    expected = "@" + unicodedata.normalize("NFC", handle)
    by_link = check_params(scraper, {"url": f"https://www.youtube.com/@{written}/videos"})
    by_name = check_params(scraper, {"username": f"@{written}"})
    assert by_link.model_dump()["url"] == unicodedata.normalize("NFC", f"https://www.youtube.com/@{written}/videos")
    for params in (by_link, by_name):
        assert getattr(params, "channel") == expected  # noqa: B009  # the model is that of the video site


def values(record: Any) -> Iterator[str]:
    """Yield all texts in a record."""
    if isinstance(record, str):
        yield record
    elif isinstance(record, dict | list):
        for each in record.values() if isinstance(record, dict) else record:
            yield from values(each)


def read_or_refused(text: str) -> tuple[Link | None, str]:
    """Return the target of a link, or why it is refused."""
    try:
        return read_link(text), ""
    except LinkError as error:
        return None, str(error)


def records() -> Iterator[Any]:
    """Yield the records of the fixtures, and those of the sandbox for the examples of all scrapers."""
    for path in FIXTURES.rglob("output.json"):
        yield json.loads(path.read_text(encoding="utf-8"))
    for scraper in scrapers().values():
        yield sandbox_record(scraper.name)


def sandbox_record(name: str) -> Any:
    scraper = find_scraper(name)
    site = import_module(f"crawler.sandbox.{scraper.platform}.site").Site()
    return site.expected_record(scraper.example)


def test_each_link_in_a_record_is_a_target_or_a_thing_with_a_name() -> None:
    """Users give the links of records back. None is read as another target, or refused as "another page"."""
    read = 0
    texts = {text for each in records() for text in values(each) if text.startswith("https://") and "<" not in text}
    recorded = {text for text in texts if any(links.owns(split_link(text).host) for links in all_links())}
    for text in recorded:
        link, problem = read_or_refused(text)
        if link is None:
            assert "another page" not in problem, text
            continue
        read += 1
        again = check_params(find_scraper(link.scrapers[0]), {"url": text})
        meant = check_params(find_scraper(link.scrapers[0]), dict(link.params), text=True)
        assert again.identity() == meant.identity(), text
    assert read >= 40
    assert len(recorded) >= 200


NAMES = [
    ("microblog-profile", "data.additional.profile_demographics.screen_name", "username", "handle"),
    ("microblog-profile", "data.main.0.creator_handle", "username", "handle"),
    ("professional-profile-v4", "profile.username", "username", "slug"),
    ("professional-profile-v4", "posts.0.author_username", "username", "slug"),
    ("videosite-profile", "profile.username", "username", "name"),
    ("videosite-profile", "posts.0.author_username", "username", "name"),
    ("videosite-profile", "profile.profile_id", "username", "name"),
    ("retail-category-v4", "cat_id", "cat_id", "category"),
    ("retail-search-v4", "query", "query", "words"),
]


@pytest.mark.parametrize(("scraper", "path", "param", "meant"), NAMES)
def test_each_name_in_a_record_is_the_same_target_when_it_is_given_back(
    scraper: str, path: str, param: str, meant: str
) -> None:
    value = sandbox_record(scraper)
    for key in path.split("."):
        value = value[int(key) if key.isdecimal() else key]
    params = check_params(find_scraper(scraper), {param: value})
    asked = check_params(find_scraper(scraper), find_scraper(scraper).example)
    assert getattr(params, meant) == value
    assert value == getattr(asked, meant) or path.endswith("profile_id")


HEADINGS = """
    name Name NAME country Country comment Comment comments email E-Mail price Price ID type Type
    count Count page sort title Title company Company website phone Phone address city City state
    zip category Category brand Brand sku SKU notes Notes date Date status Status priority owner
    tags Tags source Source language lang keywords Keywords query Query cursor username
    Username min_price max_price
    """.split()  # noqa: SIM905  # a list of quoted words would need four times as many lines


@pytest.mark.parametrize("heading", HEADINGS)
def test_common_headings_beside_a_link_are_accepted_and_come_back(tmp_path: Path, heading: str) -> None:
    """A photo-app post has none of these params, so that each of these columns is the user's own, but for the id."""
    row = {"URL": "https://www.instagram.com/p/DeAZ0uAgNuA/", heading: "x1"}
    (tmp_path / "t.csv").write_text(";".join(row) + "\n" + ";".join(row.values()) + "\n")
    (tmp_path / "t.json").write_text(json.dumps([row]))
    for target in (*targets_of(tmp_path / "t.csv"), *targets_of(tmp_path / "t.json")):
        assert isinstance(target, Target), target
        assert target.scraper.name == "photoapp-post-v4"
        assert target.columns == ({} if heading == "ID" else {heading: "x1"})
        assert (target.id == "x1") == (heading == "ID")


def test_a_column_is_a_param_only_for_rows_whose_scraper_has_it(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(
        "Url,Type\nhttps://www.youtube.com/@NASA,short\nhttps://x.com/NASA,agency\nhttps://www.walmart.com/cp/a/1,\n"
    )
    video, profile, category = targets_of(tmp_path / "t.csv")
    assert isinstance(video, Target)
    assert isinstance(profile, Target)
    assert isinstance(category, Target)
    assert (video.params.model_dump()["type"], video.columns) == ("short", {})
    assert (profile.scraper.name, profile.columns) == ("microblog-profile", {"Type": "agency"})
    assert category.columns == {}


@pytest.mark.parametrize(("header", "own"), [("cat_id,query,sku", ("sku",)), ("url,query,sku", ("query", "sku"))])
def test_the_params_of_some_scrapers_are_own_columns_only_beside_links(
    tmp_path: Path, header: str, own: tuple[str, ...]
) -> None:
    (tmp_path / "t.csv").write_text(f"{header}\n")
    source = FileSource(TargetParser(spiders()["retail"].scrapers), str(tmp_path / "t.csv"))
    asyncio.run(source.open())
    assert source.own_columns == ()
    (tmp_path / "t.csv").write_text(f"{header}\n{'976759' if 'cat_id' in header else 'walmart.com/cp/a/1'},,\n")
    asyncio.run(source.open())
    assert source.own_columns == own


@pytest.mark.parametrize(
    ("name", "text", "own"),
    [
        ("t.csv", "cat_id,query,sort,sku\n976759,,price_low,\n", ("sku",)),
        ("t.csv", "cat_id,query,username,sort\n976759,,,price_low\n", ("sort",)),
        ("t.csv", "cat_id,scraper,sort\n976759,,price_low\n", ("sort",)),
        ("t.csv", "url,sort\nwalmart.com/cp/a/1,price_low\n", ("sort",)),
        ("t.jsonl", '{"cat_id": "976759", "sort": "price_low"}\n', ("sort",)),
    ],
)
def test_a_param_is_an_own_column_only_if_a_row_may_have_a_scraper_without_it(
    tmp_path: Path, name: str, text: str, own: tuple[str, ...]
) -> None:
    (tmp_path / name).write_text(text)
    source = FileSource(EVERY, str(tmp_path / name))
    asyncio.run(source.open())
    assert source.own_columns == own


def test_a_row_with_two_values_of_one_name_is_refused(tmp_path: Path) -> None:
    """Neither of them is dropped without a word: a table is refused by its header, an object by its line."""
    (tmp_path / "t.jsonl").write_text('{"URL": "x.com/NASA", "url": "x.com/esa"}\n{"url": "x.com/esa"}\n')
    refused, read = targets_of(tmp_path / "t.jsonl")
    assert isinstance(refused, InvalidTarget)
    assert refused.error.message == "Line 1 of t.jsonl has several values with the name 'URL'."
    assert isinstance(read, Target)


def test_a_column_that_may_be_misspelt_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("cat_id,Max Prices,country,shelf\n976759,9,US,b\n")
    with capture_logs() as logs:
        (target,) = targets_of(tmp_path / "t.csv", TargetParser(spiders()["retail"].scrapers))
    assert isinstance(target, Target)
    assert target.columns == {"Max Prices": "9", "country": "US", "shelf": "b"}
    warned = {(each["column"], each["did_you_mean"]) for each in logs if each["event"] == "column_maybe_misspelt"}
    assert warned == {("Max Prices", "max_price")}


MESSY = [
    "https://x.com/NASA ",
    "\u00a0https://x.com/esa\u200b",
    "<https://www.youtube.com/@NASA>",
    '"https://www.instagram.com/p/DeAZ0uAgNuA/"',
    "(https://www.linkedin.com/in/jane-doe).",
    "//www.walmart.com/browse/food/976759,",
    "https://l.instagram.com/?u=https%3A%2F%2Fwww.instagram.com%2Fp%2FDdG4RIxIPyf%2F",
    "WWW.TIKTOK.COM/search?q=cat%20cafe",
]
MEANT = [
    {"username": "NASA"},
    {"username": "esa"},
    {"username": "@NASA"},
    {"url": "https://www.instagram.com/p/DeAZ0uAgNuA/"},
    {"url": "https://www.linkedin.com/in/jane-doe"},
    {"cat_id": "976759"},
    {"url": "https://www.instagram.com/p/DdG4RIxIPyf/"},
    {"keywords": "cat cafe"},
]


@pytest.mark.parametrize("kind", ["t.csv", "t.xlsx", "t.json", "t.jsonl", "t.txt"])
def test_the_same_messy_list_is_the_same_targets_in_every_format(tmp_path: Path, kind: str) -> None:
    path = tmp_path / kind
    if kind == "t.csv":
        with path.open("w", encoding="utf-8-sig", newline="") as file:
            csv.writer(file, delimiter=";").writerows([["Url"], *([each] for each in MESSY)])
    elif kind == "t.xlsx":
        path.write_bytes(workbook([" URL "], *([each] for each in MESSY)))
    elif kind == "t.json":
        path.write_text(json.dumps([{"Url": each} for each in MESSY]))
    elif kind == "t.jsonl":
        path.write_text("".join(json.dumps({"url ": each}) + "\n" for each in MESSY))
    else:
        path.write_text("# to do\n" + "\n".join(MESSY) + "\n##\n")
    found = targets_of(path)
    assert [meaning(each) for each in found] == MEANT


def meaning(target: Target | InvalidTarget) -> dict[str, str]:
    assert isinstance(target, Target), target
    params = target.params.model_dump(exclude_none=True, exclude_defaults=True)
    return dict(read_link(params["url"]).params) if "url" in params else params


@pytest.mark.parametrize("piece", [")", "(", '"', "\u200b", ".", "/a", "%2F", "?next=", "a@", "<", "\u0301", " "])
def test_a_huge_text_is_refused_or_read_without_its_ends_being_counted_again(piece: str) -> None:
    end = piece * (2_000_000 // len(piece))
    for text in (end, f"https://x.com/NASA{end}"):
        is_link(text)
        cleaned(text)
        unquoted(text)
        link, problem = read_or_refused(text)
        assert link is None or link.params == {"username": "NASA"}
        assert len(problem) < 1_000


@pytest.mark.parametrize(
    "text",
    [
        "https://x.com@evil.example/NASA",
        "https://x.com\\@evil.example/NASA",
        "https://x.com%2eevil.example/NASA",
        "https://x.com.evil.example/NASA",
        "https://evil.example/x.com/NASA",
        "https://xcom/NASA",
        "https://x.com:22/NASA",
        "https://x.com:x/NASA",
        "https://[x.com]/NASA",
        "https://x.com/NASA\r\nHost: evil.example",
        "https://x.com/NA\tSA",
        "https://l.instagram.com/?u=https://x.com/NASA",
        "https://www.instagram.com/accounts/login/?next=javascript:alert(1)",
        "https://www.instagram.com/accounts/login/?next=//evil.example/p/DeAZ0uAgNuA/",
        "https://www.instagram.com/accounts/login/?next=%5C%5Cevil.example/p/DeAZ0uAgNuA/",
        "https://l.instagram.com/?u=" + "https%3A%2F%2Fl.instagram.com%2F%3Fu%3D" * 20,
    ],
)
def test_a_hostile_link_is_refused(text: str) -> None:
    with pytest.raises(LinkError):
        read_link(text)


@given(st.text(max_size=80))
def test_cleaning_twice_is_cleaning_once(text: str) -> None:
    assert cleaned(cleaned(text)) == cleaned(text)
    assert link_in(link_in(text)) == link_in(text)
