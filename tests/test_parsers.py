"""Parsers take linear time for nested text, and end with data or a typed error at any depth."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from web_poet import HttpResponse

from crawler.errors import ScrapeError
from crawler.outputs import feed_files, sql
from crawler.platforms.microblog.js_literals import Literals
from crawler.platforms.microblog.pages import Records
from crawler.platforms.model import encodable
from crawler.platforms.photoapp import pages as embed
from crawler.platforms.professional.document import read_document
from crawler.platforms.requests import decode_cursor
from crawler.platforms.retail.payload import DataBlock
from crawler.platforms.shortvideo.pages import wall_in
from crawler.platforms.videosite import details as feed
from crawler.reading.careful import read, read_plain
from crawler.reading.documents import all_dicts, decode, encode, has_many_attributes, linked_data, script_block
from crawler.registry import scrapers
from crawler.service.mcp import bounded
from crawler.service.route import read_object
from crawler.targets.files.source import read_rows
from crawler.targets.parser import TargetParser
from tests.linear import LENGTH, superlinear
from tests.parsers import Nested, parsing_places, recursive_places

pytestmark = pytest.mark.meta

TYPED = (ScrapeError, ValueError)
"""The errors of a parser: those of targets, and ValueError of inputs."""
URL = "https://www.example.com/"
TARGETS = TargetParser(tuple(scrapers().values()))


def response(text: str) -> HttpResponse:
    return HttpResponse(URL, text.encode(), headers={"Content-Type": "text/html; charset=utf-8"})


def request(text: str) -> Any:
    return SimpleNamespace(content=io.BytesIO(text.encode()), request_headers={})


def rows(suffix: str) -> Callable[[str], object]:
    return lambda text: list(read_rows(io.BytesIO(text.encode()), f"targets.{suffix}", TARGETS))


def feed_values(text: str) -> object:
    root = feed.feed_root(f'<feed xmlns="{feed.ATOM}">{text}</feed>'.encode())
    return root is not None and (feed.plain_feed(root), feed.unknown_parts(root))


READERS_OF_HTML: list[Callable[[str], object]] = [
    lambda text: embed.post_in_html(b"<p data-media-id=1>" + text.encode()),
    lambda text: wall_in(response(text)),
    lambda text: script_block(b"<p>DATA" + text.encode(), "DATA"),
    lambda text: embed.raise_for_broken(b'<p class="EmbedIsBroken">' + text.encode()),
]
READERS_OF_JSON: list[Callable[[str], object]] = [rows("json"), rows("jsonl"), lambda text: read_object(request(text))]
STRANGERS: dict[str, Callable[[str], object]] = {
    "platforms/requests.py:decode_cursor": lambda text: decode_cursor("videos-1", text),
    "platforms/microblog/pages.py:ProfilePage._literals": lambda text: Literals().read(text),
    "platforms/professional/markup.py:parse": lambda text: read_document(response(text)),
    "platforms/videosite/details.py:feed_root": feed_values,
    "reading/documents.py:": lambda text: decode(f'["\n",{text}', what="text"),
    "reading/documents.py:decode": lambda text: linked_data([text]),
    "reading/documents.py:has_many_attributes": lambda text: has_many_attributes(text.encode()),
    "reading/documents.py:parsed_html": lambda text: [each(text) for each in READERS_OF_HTML],
    "reading/documents.py:strict_decoder": lambda text: [each(text) for each in READERS_OF_JSON],
    "reading/strict.py:_decoder": lambda text: read(DataBlock, text.encode(), what="block", code_after=True),
    "targets/files/tables.py:_records": rows("csv"),
}
"""Parsers of texts that a platform or a client sends."""

OWN = {
    "configuration/setting_types.py:": "settings",
    "downloads/egress_setting.py:": "settings",
    "jobs/": "the store's own rows",
    "service/mcp.py:Tools.": "the answers of the operator's endpoint",
    "outputs/exporters.py:_header": "the first line of a feed of the project",
    "outputs/feed_files.py:_is_json": "the last line of a feed of the project",
    "platforms/requests.py:_read": "a file of the operator",
    "platforms/requests.py:shipped_ids": "a file of the project",
    "probe/report.py:load_targets": "a file of the operator",
    "service/openapi.py:_examples": "a file of the project",
    "service/webhooks.py:Webhooks._with_changes": "the store's own rows",
    "settings.py:_from_environment": "settings",
    "storage/kept.py:": "files of the project",
    "targets/files/tables.py:_row": "rows from the project's own process",
    "targets/sources.py:FetchedOnce._repeats": "columns that this process has stored",
}
"""Parsers of other texts, by the beginning of their places, with the text's origin."""

REFUSED_FROM = {"platforms/professional/markup.py:parse": 600_000}
"""Number of characters from which each text is refused (10,000 tags), if the time below it is not linear."""

WALKERS: dict[str, Callable[[Any], object]] = {
    "service/mcp.py:_first": lambda data: bounded(encodable({"data": data}), 100),
    "outputs/sql.py:_storable": lambda data: sql._storable(encodable(data)),
    "platforms/microblog/pages.py:Records.nested": lambda data: Records([], frozenset("a")).nested(data),
    "reading/documents.py:all_dicts": lambda data: list(all_dicts(data)),
    "reading/documents.py:encode": lambda data: encode(data, what="data"),
    "reading/careful.py:read_plain": lambda data: read_plain(DataBlock, data),
    "platforms/model.py:encodable": encodable,
}
"""Functions that walk through data of any depth."""

BOUNDED = {
    "browser/proxy.py:is_public": "an address in an address",
    "errors.py:documented.below": "classes",
    "jobs/job.py:_path": "data that was not JSON, of the user's own components",
    "jobs/lifecycle.py:_begin": "a second try",
    "jobs/worker.py:Worker._store": "a second try",
    "service/mcp.py:_short": "a schema of the project",
    "monitoring/fields.py:": "a data model and its data",
    "outputs/columns.py:": "column types",
    "jobs/changes.py:": "column types",
    "outputs/selection.py:": "column types and selected names",
    "outputs/sql.py:columns_of": "column types",
    "platforms/retail/plan.py:Plan._used": "slices of a price range",
    "reading/careful.py:find": "the path of a contract",
    "reading/strict.py:_expression": "the path of a contract",
    "reading/strict.py:_Compiler._type": "the paths of contracts",
    "reading/values.py:count": "a float as an integer",
    "service/openapi.py:_compact": "a schema of the project",
    "service/openapi.py:_references": "a schema of the project",
    "service/route.py:for_callers": "a schema of the project",
    "browser/sessions.py:PageSession.attach.": "handlers of events, which call the session's methods of their names",
}
"""Functions that call themselves, by the beginning of their places, with what limits their depth."""

TEXTS = {
    "lists": Nested("[", "]"),
    "open lists": Nested("["),
    "objects": Nested('{"a":', "}", inside="1"),
    "open objects": Nested('{"a":'),
    "lists in the second place": Nested("[1,", "]", inside="1"),
    "rows": Nested('{"a":1},', before="[", after="1]"),
    "keys": Nested('"a":1,', before="{", after='"b":1}'),
    "texts with line breaks": Nested('"\n",', before="[", after="1]"),
    "halves of emoji": Nested('"\\ud83d",', before="[", after="1]"),
    "backslashes": Nested("\\", before='"'),
    "quotation marks": Nested('"'),
    "nodes": Nested('{"@graph":[', "]}", inside="{}"),
    "elements": Nested("<div>", "</div>"),
    "open elements": Nested("<div>"),
    "misplaced elements": Nested("<b><p>"),
    "tables": Nested("<table><tr><td>"),
    "links in list entries": Nested("<a><li>"),
    "foreign elements": Nested("<svg><g>"),
    "sections": Nested('<section class="aside-section-container">'),
    "scripts": Nested("<script></script>"),
    "open scripts": Nested("<script>"),
    "open comments": Nested("<!--"),
    "open tags": Nested("<p"),
    "attributes": Nested(" a=b", before="<p", after=">"),
    "attributes of many names": Nested(" a a=b <p"),
    "tags in quotes": Nested('<p a="', '">'),
    "tags after quotes": Nested('<p a="" b="'),
    "tags in quotes of each other": Nested(' b="<p a="', before='<p a="', after='">'),
    "entities": Nested("&amp;&#x41;"),
    "an element of XML": Nested("<a>", "</a>"),
    "entries": Nested("<entry><id>1</id></entry>"),
    "declarations of entities": Nested('<!ENTITY a "b">', before="<!DOCTYPE f [", after="]>"),
    "slots": Nested("$R[0]=["),
    "slots in themselves": Nested("$R[0]=[$R[0],", "]", inside="1"),
    "parentheses": Nested("(", ")"),
    "literals": Nested("{a:", "}", inside="1"),
    "rows of a table": Nested("a,b\n", before="url,id\n"),
    "quoted cells": Nested('"a""b",'),
    "letters": Nested("a"),
    "spaces": Nested(" "),
}


@dataclass(frozen=True)
class Parser:
    """A parser whose time is measured."""

    parse: Callable[[str], object]

    def seconds(self, text: str) -> float:
        start = time.thread_time()
        with suppress(*TYPED):
            self.parse(text)
        return time.thread_time() - start


def nested(depth: int, kind: type) -> Any:
    value: Any = {} if kind is dict else []
    for _ in range(depth):
        value = {"a": value} if kind is dict else [value]
    return value


def quadratic(text: str) -> int:
    return sum(len(text[index:].encode()) for index in range(0, len(text), 4))


def test_a_parser_that_is_not_linear_is_found() -> None:
    assert superlinear(Parser(quadratic), [Nested("[")])


def test_each_place_that_parses_is_listed() -> None:
    own = {place for place in parsing_places() if place.startswith(tuple(OWN))}
    assert parsing_places() - own == STRANGERS.keys()
    assert all(any(place.startswith(start) for place in own) for start in OWN)


def test_each_function_that_calls_itself_is_listed() -> None:
    bounded = {place for place in recursive_places() if place.startswith(tuple(BOUNDED))}
    assert recursive_places() - bounded <= WALKERS.keys()
    assert [start for start in BOUNDED if not any(place.startswith(start) for place in bounded)] == []


@pytest.mark.parametrize("place", STRANGERS)
def test_the_time_of_a_parser_is_linear(place: str) -> None:
    parser = Parser(STRANGERS[place])
    longest = REFUSED_FROM.get(place, LENGTH)
    assert {name: found[0] for name, text in TEXTS.items() if (found := superlinear(parser, [text], longest))} == {}


@pytest.mark.parametrize("kind", [dict, list])
@pytest.mark.parametrize("place", WALKERS)
def test_walking_through_data_of_any_depth_ends_with_a_result_or_a_typed_error(place: str, kind: type) -> None:
    for depth in (100, 250, 500, 100_000):
        try:
            WALKERS[place](nested(depth, kind))
        except TYPED:
            assert depth > 100


def test_a_list_that_contains_itself_twice_is_refused() -> None:
    endless: list[Any] = []
    endless += [endless, endless]
    with pytest.raises(ScrapeError):
        Records([], frozenset()).nested(endless)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, '["\n",' + "[" * 100_000])
def test_text_that_is_nested_100_000_levels_deep_is_a_typed_error(text: str) -> None:
    with pytest.raises(ScrapeError) as refused:
        decode(text, what="block")
    assert (refused.value.code, refused.value.reason) == ("EXTRACTION_FAILED", "broken_data_block")


def test_entities_do_not_multiply_the_text_of_a_feed() -> None:
    names = "abcdefgh"
    declared = "".join(f'<!ENTITY {name} "{f"&{former};" * 10}">' for former, name in pairwise(names))
    text = f'<!DOCTYPE feed [<!ENTITY a "aaaaaaaaaa">{declared}]><feed xmlns="{feed.ATOM}" a="&h;">&h;</feed>'
    assert feed.feed_root(text.encode()) is None


def test_numbers_beside_raw_control_characters_are_read_as_elsewhere() -> None:
    numbers = '[123456789012345678901234567890, 1.5e3, -7, 18446744073709551615, "{}"]'
    assert decode(numbers.replace("{}", "a\nb"), what="block") == [*orjson.loads(numbers)[:-1], "a\nb"]


def test_the_line_of_a_feed_of_any_depth_is_recognised() -> None:
    assert not feed_files._is_json(b"[" * 100_000)
