"""Pasted links: each becomes a target of its platform or is rejected, and is never used as search words."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.errors import InvalidRequest
from crawler.platforms.links import LinkError, all_links, is_host, is_link, read_link, unquoted
from crawler.platforms.model import LinkParams
from crawler.registry import find_scraper, spiders
from crawler.targets.files.text import params_of
from crawler.targets.parser import TargetParser, check_params
from crawler.targets.target import Target
from tests.crawls import crawl
from tests.targets.reading import targets_of

TABLE = Path(__file__).parents[1] / "platforms/links.tsv"
"""Pasted lines. ``expected`` is a scraper with its params, ``refused`` (and the page's name), or ``words``: no link."""
PARAM = re.compile(r" (?=(?:url|username|cat_id|query|keywords|page|sort|min_price|max_price|type|include_about)=)")


class Row(NamedTuple):
    line: str
    expected: str
    why: str

    @property
    def target(self) -> tuple[str, dict[str, str]]:
        scraper, *params = PARAM.split(self.expected)
        return scraper, dict(each.split("=", 1) for each in params)


ROWS = [Row(*line.split("\t")) for line in TABLE.read_text().split("\n")[1:] if line]
REFUSED = [row for row in ROWS if row.expected.startswith("refused")]
WORDS = [row for row in ROWS if row.expected == "words"]
READ = [row for row in ROWS if row not in REFUSED + WORDS]


def line_of(row: Row) -> str:
    return row.line


@pytest.mark.parametrize("row", READ, ids=line_of)
def test_a_pasted_link_is_read_as_expected(row: Row) -> None:
    scraper, params = row.target
    link = read_link(row.line)
    assert (link.scrapers[0], link.params) == (scraper, params), row.why
    check_params(find_scraper(scraper), params, text=True)


@pytest.mark.parametrize("row", REFUSED, ids=line_of)
def test_other_links_are_refused_with_a_sentence(row: Row) -> None:
    assert is_link(row.line), row.why
    _, _, page = row.expected.partition(": ")
    sentence = rf"this is {page} on the platform \w+, which no " if page else r"(this |'|[\w.]+ has short links)"
    with pytest.raises(LinkError, match=f"^{sentence}"):
        read_link(row.line)


@pytest.mark.parametrize("row", WORDS, ids=line_of)
def test_words_are_not_links(row: Row) -> None:
    assert not is_link(row.line), row.why
    assert not is_host(row.line)


def test_the_host_of_a_platform_is_one_in_any_case() -> None:
    assert [is_host(text) for text in ("x.com", " X.COM", "x.company")] == [True, True, False]


def test_a_list_of_links_of_all_platforms_is_read_or_refused_by_line(tmp_path: Path) -> None:
    """Each spider reads the list, even the spiders whose only param accepts any text."""
    path = tmp_path / "links.txt"
    path.write_text("\n".join(row.line for row in ROWS))
    for name, spider in spiders().items():
        found = targets_of(path, TargetParser(spider.scrapers))
        assert len(found) == len(ROWS)
        for row, target in zip(ROWS, found, strict=True):
            scraper, params = row.target
            if isinstance(target, Target):
                expected = check_params(target.scraper, params, text=True) if row in READ else None
                assert expected is None or (target.scraper.name, target.params) == (scraper, expected), row
                assert expected is not None or row.expected == "words", row
            elif row in READ:
                assert scraper not in {s.name for s in spider.scrapers}, row
                platform = find_scraper(scraper).platform
                assert f"which {' and '.join(read_link(row.line).scrapers)} can read (spider {platform})" in (
                    target.error.message
                ), name
            else:
                assert row in REFUSED or name != "shortvideo", row


@pytest.mark.parametrize("row", READ, ids=line_of)
def test_every_scraper_takes_the_link_as_url(row: Row) -> None:
    """The param ``url`` gives the same target as the params in the table, even without naming the scraper."""
    scraper, params = row.target
    named = find_scraper(scraper)
    found = TargetParser(spiders()[named.platform].scrapers).parse({"url": row.line}, text=True)
    assert isinstance(found, Target), found
    assert found.scraper is named
    for typed in (found.params, check_params(named, {"url": row.line})):
        meant = check_params(named, params, text=True)
        assert typed.model_dump()["url"] == unquoted(row.line)
        if isinstance(typed, LinkParams) and isinstance(meant, LinkParams):
            assert typed.own() == meant.own()
            assert typed.model_dump(exclude={*typed.exactly_one_of}) == meant.model_dump(
                exclude={*typed.exactly_one_of}
            )


def test_every_platform_names_scrapers_that_exist() -> None:
    for links in all_links():
        for name in (name for names in links.scrapers.values() for name in names):
            assert (find_scraper(name).name, find_scraper(name).platform) == (name, links.platform.name)


@pytest.mark.parametrize(
    ("scraper", "params"),
    [
        ("retail-search-v4", {"query": "https://www.walmart.com/browse/food/976759"}),
        ("retail-search-v4", {"query": "www.tiktok.com/search?q=a"}),
        ("shortvideo-photo-search-v4", {"keywords": "x.com/NASA"}),
        ("microblog-profile", {"username": "https://x.com/NASA"}),
        ("videosite-profile-v3", {"username": "youtube.com/@NASA"}),
        ("retail-category-v4", {"cat_id": "https://www.walmart.com/browse/food/976759"}),
    ],
)
def test_a_link_given_as_another_param_is_refused(scraper: str, params: dict[str, str]) -> None:
    for text in (False, True):
        with pytest.raises(InvalidRequest, match="this is a link: give it as url"):
            check_params(find_scraper(scraper), params, text=text)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"url": "walmart.com/browse/976759?page=3&sort=price_low"}, {"page": 3, "sort": "price_low"}),
        ({"url": "walmart.com/browse/976759?page=3", "page": 5}, {"page": 5, "sort": "best_match"}),
        ({"url": "walmart.com/search?q=a&min_price=2.50"}, {"min_price": 2.5}),
        ({"url": "youtube.com/@a/shorts"}, {"type": "short"}),
        ({"url": "youtube.com/@a/shorts", "type": "all"}, {"type": "all"}),
        ({"url": "youtube.com/@a/about"}, {"include_about": True, "type": "video"}),
    ],
)
def test_params_take_precedence_over_what_the_link_states(
    given: dict[str, object], expected: dict[str, object]
) -> None:
    scraper = find_scraper(read_link(str(given["url"])).scrapers[0])
    params = check_params(scraper, given)
    assert params.model_dump(include={*expected}) == expected
    assert check_params(scraper, params.model_dump(mode="json", exclude_none=True)) == params, "as a saved target"


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("walmart.com/browse/976759?page=0", "page"),
        ("walmart.com/browse/976759?page=two", "page"),
        ("walmart.com/browse/976759?sort=cheapest", "sort"),
        (f"walmart.com/search?q={'a' * 201}", "query"),
        (f"tiktok.com/search?q={'a' * 201}", "keywords"),
    ],
)
def test_a_value_in_a_link_is_checked_like_a_param(url: str, name: str) -> None:
    scraper = find_scraper(read_link(url).scrapers[0])
    for text in (False, True):
        with pytest.raises(InvalidRequest, match=f"url: the link's {name} is not valid: ") as refused:
            check_params(scraper, {"url": url}, text=text)
        assert refused.value.details[0]["loc"] == ["url"]


TEXTS = (
    st.text()
    | st.tuples(
        st.sampled_from(["", "https://", "//", "HTTP://"]), st.sampled_from([r.line for r in ROWS]), st.text()
    ).map("".join)
    | st.tuples(
        st.sampled_from([f"https://{links.platform.domain}/" for links in all_links()]),
        st.text("/@?=&%#:_-.aU0é\n"),
        st.text(),
    ).map("".join)
)


@given(TEXTS)
def test_any_text_is_read_or_raises_the_typed_error(text: str) -> None:
    with contextlib.suppress(LinkError):
        link = read_link(text)
        assert link.scrapers
        for name in link.scrapers:
            fields = find_scraper(name).params.model_fields
            with contextlib.suppress(InvalidRequest):
                check_params(find_scraper(name), {k: v for k, v in link.params.items() if k in fields}, text=True)
    for spider in spiders().values():
        parser = TargetParser(spider.scrapers)
        parser.parse({"url": text}, text=True)
        parser.parse({"url": text})
        with contextlib.suppress(InvalidRequest):
            found = params_of(text, parser)
            assert not is_link(text) or found.keys() - {"scraper"} <= read_link(text).params.keys()


def test_a_crawl_of_links_of_another_platform_fails_each_line(tmp_path: Path) -> None:
    path = tmp_path / "links.txt"
    path.write_text(
        "https://www.tiktok.com/@nasa\nhttps://www.walmart.com/browse/food/976759\nhttps://x.com/quiet_harbor\n"
    )
    code, out, failures, log = crawl(tmp_path, "-a", f"targets={path}", spider="microblog")
    assert (code, len(out), len(failures)) == (4, 1, 2), log
    assert out[0]["params"]["username"] == "quiet_harbor"
    assert [each["message"].split(" of links.txt ")[1][:60] for each in failures] == [
        "is not a link to a target: this is a profile on the platform",
        "is a link to a category on the platform retail, which retail",
    ]


@pytest.mark.parametrize(
    ("scraper", "params"),
    [
        ("retail-category-v4", [{"cat_id": "976759"}, {"url": "walmart.com/cp/food/976759?povid=x"}]),
        ("retail-search-v4", [{"query": "a b", "page": 2}, {"url": "https://www.walmart.com/search?q=a+b&page=2"}]),
        ("videosite-profile-v3", [{"username": "@a", "type": "short"}, {"url": "https://youtube.com/@a/shorts?si=x"}]),
        ("microblog-profile", [{"username": "a"}, {"url": "https://twitter.com/@a/media"}]),
        ("shortvideo-photo-search-v4", [{"keywords": "a b"}, {"url": "m.tiktok.com/search?q=a%20b"}]),
        ("photoapp-post-v4", [{"url": "instagram.com/reel/DaSandbox01"}, {"url": "instagr.am/x/p/DaSandbox01?igsh=y"}]),
        (
            "professional-profile",
            [{"url": "uk.linkedin.com/in/jos%c3%a9"}, {"url": "https://www.linkedin.com/in/josé/de"}],
        ),
        ("professional-profile-v4", [{"url": "de.linkedin.com/in/a"}, {"url": "https://www.linkedin.com/in/a?trk=b"}]),
    ],
)
def test_all_links_to_a_target_have_one_identity(scraper: str, params: list[dict[str, object]]) -> None:
    found = find_scraper(scraper)
    first, second = (Target("1", found, check_params(found, each)) for each in params)
    assert first.identity == second.identity
    assert first.params != second.params
