"""Documents with very many tags or attributes are refused: reading them would block the event loop."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from web_poet import HttpResponse

from crawler.errors import ExtractionFailed
from crawler.platforms.photoapp.pages import post_in_html
from crawler.platforms.shortvideo.pages import wall_in
from crawler.reading.documents import MAX_ATTRIBUTES, MAX_TAGS, has_many_attributes, parsed_html, script_block


def test_a_document_with_the_largest_number_of_tags_is_parsed() -> None:
    page = parsed_html(b"<p>" * (MAX_TAGS - 1) + b"<b>caf\xc3\xa9\xff")
    assert page.css("b::text").get() == "café\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize("document", ["", " ", "<", "{}", "text", '<?xml version="1.0" encoding="latin1"?><p>é', "\0"])
def test_a_text_that_is_hardly_a_document_is_parsed(document: str) -> None:
    assert parsed_html(document).css("script") == []


def with_attributes(number: int) -> bytes:
    return b"<p " + b" ".join(b"a%d" % each for each in range(number)) + b">"


def test_an_element_with_the_largest_number_of_attributes_is_parsed() -> None:
    assert len(parsed_html(with_attributes(MAX_ATTRIBUTES)).css("p").attrib) == MAX_ATTRIBUTES


TAGS = {
    "names": ("<p", " a{}", ">"),
    "quotes": ("<p", ' a{}="b"', ">"),
    "line breaks": ("<P", '\n\t\ra{}="b"\f', "\n/>"),
    "slashes": ("<p", "/a{}", ">"),
    "no spaces": ("<p ", 'a{}=""', ">"),
    "single quotes": ("<p", " a{}='b'", ">"),
    "no quotes": ("<p", " a{}=b", ">"),
    "space before and after an equals sign": ("<p", ' a{} = "b"', ">"),
    "brackets in quotes": ("<p", ' a{}=">"', ">"),
    "brackets in single quotes": ("<p", " a{}='>'", ">"),
    "tags in quotes": ("<p", ' a{}="<p>"', ">"),
    "tags in single quotes": ("<p", """ a{}='<p b="">'""", ">"),
    "brackets in names": ("<p", " <a{}", ">"),
    "quotes in names": ("<p", ' a{}"<b', ">"),
    "a quotation mark in the name of the tag": ('<p="', " a{}", ' b=">">'),
    "a vertical tab in the name of the tag": ('<p\va="', " a{}", ' b=">">'),
    "a name that begins with an equals sign": ('<p ="', " a{}", ' b=">">'),
    "a value without quotes that has some": ('<p a=b"', " a{}", ' c=">">'),
    "after a script with a tag": ('<script>"<p a="</script><p', " a{}", '>">'),
    "after a tag in a comment": ('<!-- <p a=" --><p', " a{}", '>">'),
}
"""Tags as they may be written: the beginning, each attribute, the end."""


@pytest.mark.parametrize("name", TAGS)
def test_attributes_are_counted_however_a_tag_is_written(name: str) -> None:
    begin, attribute, end = TAGS[name]
    few, many = (
        begin + "".join(attribute.format(each) for each in range(number)) + end
        for number in (MAX_ATTRIBUTES - 3, MAX_ATTRIBUTES + 3)
    )
    assert not has_many_attributes(few.encode())
    assert has_many_attributes(many.encode())


def test_tags_of_other_texts_are_not_counted() -> None:
    script = "<script>" + "<a b='c'" + "".join(f" a{each}" for each in range(MAX_ATTRIBUTES)) + "></script>"
    assert not has_many_attributes(script.encode())
    assert has_many_attributes(script.encode(), in_raw_text=True)


@pytest.mark.parametrize(
    "read",
    [
        parsed_html,
        post_in_html,
        lambda body: wall_in(HttpResponse("https://platform.example/", body=body)),
        lambda body: script_block(body, "DATA"),
    ],
    ids=["any", "photoapp", "shortvideo", "script"],
)
@pytest.mark.parametrize("part", [b"<p>" * MAX_TAGS, with_attributes(MAX_ATTRIBUTES + 1)], ids=["tags", "attributes"])
def test_a_document_with_more_tags_or_attributes_is_refused(part: bytes, read: Callable[[bytes], object]) -> None:
    body = b'<p class="Embed" data-media-id="1">DATA' + part
    with pytest.raises(ExtractionFailed, match="more than 50,000 tags, or an element with more than 200") as refused:
        read(body)
    assert refused.value.reason == "too_large"
