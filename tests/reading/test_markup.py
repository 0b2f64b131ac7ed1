"""The index of an HTML page: it gives what parsel gives for the same selector."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from parsel import Selector
from web_poet import HttpResponse

from crawler.reading.markup import BREAK, Node, indexed, indexed_text

SELECTORS = (
    *("li", "*", ".a", "li.a", ".a.b", "section[data-section]", "[data-section]", '[data-section="a"]', '[class*="a"]'),
    *(
        'a[href$="b"]',
        "li, .a",
        ".a .b",
        "ul > li",
        "ul > .a span",
        "h3 + p",
        "h3 + p, h3 p, p.b",
        "li li",
        ".a > .b .a",
    ),
    *("section li a, section .b", "br", "div.a[data-section]", "ul ul > li + li", 'p[class="a b"]'),
)
TAGS = ("section", "ul", "li", "a", "p", "h3", "span", "div", "br", "button")
ATTRIBUTES = (
    "",
    ' class="a"',
    ' class="a b"',
    ' class=" b\n a\xa0c "',
    ' class="ab"',
    ' data-section="a"',
    ' href="/b"',
)
pages = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(TAGS), st.sampled_from(ATTRIBUTES)).map(lambda tag: f"<{tag[0]}{tag[1]}>"),
        st.sampled_from(TAGS).map(lambda tag: f"</{tag}>"),
        st.sampled_from(["x", " y\n", "<!-- z -->", "<?pi?>"]),
    ),
    max_size=40,
).map("".join)

PAGE = """<html><body>
<section data-section="skills"><ul>
  <li class="row">One<ul><li>Inner</li></ul></li>
  <li class="row">Two <button>Close<b>!</b></button>and<br>a half<!-- note --> more</li>
</ul></section>
<button><p class="label">Show</p></button>
</body></html>"""


def described(nodes: list[Node]) -> list[tuple[str, str]]:
    return [(node.element.tag, node.text) for node in nodes]


def expected(found: Selector, selector: str) -> list[tuple[str, str]]:
    return [(each.root.tag, each.xpath("string()").get() or "") for each in found.css(selector)]


@given(pages)
def test_sp_3_selectors_find_what_parsel_finds_in_each_part_of_a_page(html: str) -> None:
    page, other = indexed_text(html), Selector(html, type="html")
    for selector in SELECTORS:
        assert described(page.css(selector)) == expected(other, selector)
        for node, part in zip(page.css("ul, .a"), other.css("ul, .a"), strict=True):
            assert described(node.css(selector)) == expected(part, selector)
            assert node.has(selector) == bool(inside(part, selector))


def inside(part: Selector, selector: str) -> list[Selector]:
    """The matches in the descendants of an element, as if each were a page of its own."""
    return [found for child in part.xpath("*") for found in child.css(selector)]


@given(pages)
def test_sp_3_places_in_the_tree_are_those_of_xpath(html: str) -> None:
    page, other = indexed_text(html), Selector(html, type="html")
    outermost = expected_places(other.xpath("//li[not(ancestor::li)]"))
    assert [node.number for node in page.outermost("li")] == outermost
    known = expected_places(other.xpath("//*[ancestor-or-self::li]"))
    assert [node.number for node in page.css("*") if node.is_inside("li")] == known
    for node, each in zip(page.css("p, a, span"), other.css("p, a, span"), strict=True):
        nearest = node.ancestor(".a")
        above = each.xpath("ancestor::*[contains(concat(' ', normalize-space(@class), ' '), ' a ')][1]")
        assert ([] if nearest is None else [nearest.number]) == expected_places(above)


def expected_places(found: list[Selector]) -> list[int]:
    return [list(each.root.getroottree().getroot().iter()).index(each.root) for each in found]


def test_pieces_leave_out_hidden_elements_and_comments_and_mark_line_breaks() -> None:
    page = indexed_text(PAGE)
    one, two = page.css("li.row")
    assert "".join(one.pieces("button")) == "OneInner"
    assert list(two.pieces("button")) == ["Two ", "and", BREAK, "a half", " more"]
    label = page.first("p.label")
    assert label is not None
    assert (label.text, list(label.pieces("button")), list(label.pieces("svg"))) == ("Show", [], ["Show"])


def test_parts_of_a_page() -> None:
    page = indexed_text(PAGE)
    (section,) = page.css('section[data-section="skills"]')
    assert [row.get("class") for row in section.outermost("li")] == ["row", "row"]
    assert [row.is_child("ul ul") or row.is_child("section > ul") for row in section.css("li")] == [True] * 3
    first = section.first("li.row")
    assert first is not None
    assert first.has("li")
    assert not first.has(".row")
    assert first.classes == ["row"]
    assert first.get("id") is None
    assert page.first("table") is None
    assert page.css("li")[1].ancestor(".row") is not None
    assert page.css("li")[0].ancestor(".row") is None


@pytest.mark.parametrize("selector", ["li:not(.a)", "li:has(a)", "a::text", "li ~ li", "#id", "a[href^='b']"])
def test_a_selector_that_the_index_does_not_support_is_an_error(selector: str) -> None:
    with pytest.raises(ValueError, match=r"^The index does not support"):
        indexed_text(PAGE).css(selector)


@pytest.mark.parametrize(
    ("body", "content_type", "text"),
    [
        ("<p>é€😀</p>".encode(), "text/html; charset=utf-8", "é€😀"),
        ("\ufeff<p>é</p>".encode(), "text/html", "é"),
        ("<p>é</p>".encode("latin-1"), "text/html; charset=iso-8859-1", "é"),
        ("<p>é€</p>".encode("utf-16"), "text/html; charset=utf-16", "é€"),
        (b'<meta charset="iso-8859-1"><p>\xe9</p>', "text/html", "é"),
        (b'<meta charset="iso-8859-1"><p>\xc3\xa9</p>', "text/html; charset=utf-8", "é"),
        (b"<p>a\xffb</p>", "text/html; charset=utf-8", "a\ufffdb"),
        (b"<p>a\xe2\x82</p><p>c</p>", "text/html; charset=utf-8", "a\ufffd"),
        (b"<p>a\x00b</p>", "text/html; charset=utf-8", "ab"),
    ],
)
def test_sp_3_bytes_are_read_in_the_encoding_of_the_response(body: bytes, content_type: str, text: str) -> None:
    response = HttpResponse("https://a.example", body, headers={"Content-Type": content_type})
    found = indexed(response).first("p")
    assert found is not None
    assert found.text == text


@pytest.mark.parametrize("body", [b"", b" \n", b"\x00", b"<!-- only a comment -->", b"text"])
def test_a_page_without_elements_has_a_root(body: bytes) -> None:
    page = indexed(HttpResponse("https://a.example", body, headers={"Content-Type": "text/html; charset=utf-8"}))
    assert page.css("li") == []


def test_a_deep_page_does_not_exhaust_the_stack() -> None:
    page = indexed_text("<div class=a>" * 1_500 + "deep<br>er" + "</div>" * 1_500)
    assert "".join(page.pieces("button")) == f"deep{BREAK}er"
    assert page.has(".a .a .a")
