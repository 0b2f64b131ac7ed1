"""The parser of script literals: values, slots, code around them, and malformed input."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.errors import ExtractionFailed
from crawler.platforms.microblog.js_literals import MAX_CHARACTERS, MAX_ELEMENTS, Literals
from crawler.sandbox.microblog.page import _Literal
from crawler.sandbox.microblog.site import PLANS, Site
from scripts.captures import captures
from tests import js_tokenizer
from tests.microblog_pages import answer, page_of


def read(*scripts: str) -> Literals:
    found = Literals()
    for script in scripts:
        found.read(script)
    return found


def first(script: str) -> Any:
    return read(script).containers[0]


@pytest.mark.parametrize(
    ("script", "value"),
    [
        ("$R[0]={a:1,b:-2.5,c:1e3,d:12n}", {"a": 1, "b": -2.5, "c": 1000.0, "d": 12}),
        ("$R[0]={a:!0,b:!1,c:true,d:false}", {"a": True, "b": False, "c": True, "d": False}),
        ("$R[0]={e:null,f:void 0,g:undefined,h:NaN}", {"e": None, "f": None, "g": None, "h": None}),
        ("""$R[0]={bare_$1:1,"with-dash":2,'single':3}""", {"bare_$1": 1, "with-dash": 2, "single": 3}),
        ('$R[0]={VXNlcjox:4,"VXNlcjo=":5,12:6}', {"VXNlcjox": 4, "VXNlcjo=": 5, "12": 6}),
        (r'$R[0]=["\x3Cb\x3E","a\u2028b","\ud83d\udc3e","\ud83d"]', ["<b>", "a\u2028b", "🐾", "�"]),
        (r'$R[0]=["\"}],","\\"]', ['"}],', "\\"]),
        ("$R[0]=[[],{},[[]]]", [[], {}, [[]]]),
        ('$R[0]={a:new Date("2026-01-02"),b:$R[1]=[1,2]}', {"a": "2026-01-02", "b": [1, 2]}),
        ('$R[0]={text:"$R[1]={a:1} relayRecords:{",next:2}', {"text": "$R[1]={a:1} relayRecords:{", "next": 2}),
        ("$R[0]={self:$R[0],a:1}", None),
    ],
)
def test_literals_become_values(script: str, value: Any) -> None:
    found = first(script)
    if value is None:
        assert found["self"] is found
    else:
        assert found == value


def test_slots_are_shared_by_all_scripts_of_a_page() -> None:
    found = read('($R=>$R[0]={a:$R[1]={n:1}})($R["tsr"])', "$R[2]={again:$R[1],later:$R[9]}")
    assert found.containers[-1] == {"again": {"n": 1}, "later": None}
    assert found.complete


def test_code_around_the_values_is_ignored() -> None:
    script = 'self.$R=self.$R||{};function f(a,b){return a==b?{x:1}:[2]}($R=>$R[3]={ok:!0})($R["tsr"]);e(/x/,()=>{})'
    assert {"ok": True} in read(script).dicts


@pytest.mark.parametrize("script", ['$R[0]={a:{b:1},c:"never ends', "$R[0]={a:{b:1},c:[1", "$R[0]={a:{b:1},c:'"])
def test_a_script_that_ends_within_a_value_is_incomplete(script: str) -> None:
    found = read(script)
    assert not found.complete
    assert found.containers[:1] == [{"b": 1}], "complete values are kept"


@pytest.mark.parametrize(
    "script",
    [
        *("[" * 24_000 + "]" * 24_000, "(" * 24_000 + "}" * 24_000, "({a:[1}" * 12_000, "}" * 49_999),
        *('"\\' * 49_999, "$R[" * 9_999, "$R[0]=" * 20_000, "{a:$R[1]=" * 16_000),
    ],
    ids=lambda script: f"{script[:9]} {len(script)}",
)
def test_deep_and_malformed_scripts_do_not_raise(script: str) -> None:
    """The scripts are also read in linear time: otherwise, some of them would take minutes."""
    read(script)


@pytest.mark.parametrize(
    "script", ["[" * 500_000, "(}" * 250_000, "({a:[1}" * 71_000, "$R[0]=!" * 71_000, "'a'," * 125_000]
)
def test_long_malformed_scripts_are_refused(script: str) -> None:
    with pytest.raises(ExtractionFailed, match="50,000 elements or more"):
        read(script)


@given(st.text(max_size=200))
def test_any_text_can_be_parsed(text: str) -> None:
    read(text)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**15), 10**15) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=6), VALUES, max_size=4))
def test_written_values_are_read_back(value: dict[str, Any]) -> None:
    script = _Literal().write(value)
    found = first(f'($R=>{script})($R["tsr"])')
    assert found == value


# Comparison with a parser that reads one token at a time

PIECES = r"""
{ } [ ] ( ) , ; : = => == === != !== + - . ? / ... $R[0] $R[1] $R[2] $R[1]= $R[2]={ $R[3]=[ x:$R[4]= $R $R[
$R[99999999999] !0 !1 !2 =!0 void true false null undefined NaN a b1 $c a: k: 12: "k": ): 12 -5 1.5 1e3 -2.5e-7 1e999
9n 0x1f 1. 12abc ١٢ é "x" 'y' `z` "" "a\"b" "\x3C" "\ud83d\udc3e" "\ud83d" "\u{1F43E}" "\u2028"
"$R[0]={q:1}" "a:b,}" 'it\'s' " ' ` \ //c /*c*/ Date( function(a){ return
"""
CODE = [*PIECES.split(), "void 0", "void 1", "new Date(", " ", "\n", "\u00a0", "\u2028", '"\\\n"']
PLAIN = [
    "!0",
    "!1",
    "null",
    "void 0",
    "12",
    "-1.5",
    "1e3",
    "$R[0]",
    "$R[2]",
    '"x"',
    "'y'",
    '"\\ud83d"',
    '"{a:1},["',
    "f(1)",
    "name",
]


def from_pieces(pick: random.Random) -> str:
    return "".join(pick.choices(CODE, k=pick.randrange(1, 40)))


def literal(pick: random.Random, depth: int = 0) -> str:
    """A well-formed value, with slots, references and spaces."""
    chance, space = pick.random(), pick.choice(["", "", " ", "\n"])
    slots = "".join(f"$R[{pick.randrange(6)}]{space}={space}" for _ in range(pick.choice([0, 1, 1, 2])))
    parts = [literal(pick, depth + 1) for _ in range(pick.randrange(5))] if depth < 4 and chance > 0.4 else []
    if not parts:
        return pick.choice([*PLAIN, "{}", "[]"])
    if chance < 0.7:
        keys = pick.choices(["a", "b", '"c d"', "7", "'e'", "__ref"], k=len(parts))
        pairs = (f"{key}{space}:{space}{part}" for key, part in zip(keys, parts, strict=True))
        return slots + "{" + f",{space}".join(pairs) + "}"
    return f"{slots}[{f',{space}'.join(parts)}]" if chance < 0.9 else f"({parts[0]})"


def from_values(pick: random.Random) -> str:
    return f'($R=>{literal(pick)})($R["tsr"]);e({literal(pick)},{literal(pick)})'


def cut(pick: random.Random) -> str:
    script = from_values(pick)
    return script[: pick.randrange(len(script))]


def damaged(pick: random.Random) -> str:
    script = list(from_values(pick))
    for _ in range(pick.randrange(1, 4)):
        script[pick.randrange(len(script))] = pick.choice(CODE)
    return "".join(script)


def described(found: Any) -> tuple[Any, ...]:
    """Describe everything that a parser has read. Numbers tell shared objects and arrays from equal ones."""
    numbers: dict[int, int] = {}

    def name(value: Any) -> Any:
        container = isinstance(value, dict | list)
        return numbers.setdefault(id(value), len(numbers)) if container else (type(value), value)

    contents = [
        [
            name(each),
            *([(key, name(value)) for key, value in each.items()] if isinstance(each, dict) else map(name, each)),
        ]
        for each in found.containers
    ]
    return found.complete, contents, {slot: name(value) for slot, value in found._slots.items()}


def check_equal(*scripts: str) -> None:
    oracle = js_tokenizer.Literals()
    for script in scripts:
        oracle.read(script)
    assert described(read(*scripts)) == described(oracle), scripts


@pytest.mark.parametrize("number", [200, pytest.param(2_500, marks=pytest.mark.soak)])
@pytest.mark.parametrize("generate", [from_pieces, from_values, cut, damaged])
def test_generated_scripts_are_read_as_token_by_token(generate: Callable[[random.Random], str], number: int) -> None:
    pick = random.Random(number)  # noqa: S311  # the same scripts in each run
    for _ in range(number):
        check_equal(*(generate(pick) for _ in range(pick.choice([1, 1, 2]))))


def page_scripts() -> Iterator[list[str]]:
    """Yield the scripts of each page of the sandbox and of each recorded page."""
    site = Site(light=True)
    pages = [answer(site, "page", handle)[2] for handle in PLANS]
    pages += [path.read_bytes() for path in captures().values() if path.match("microblog/*.html")]
    for page in pages:
        text = page.decode(errors="replace")
        yield re.findall(r"<script\b[^>]*>(.*?)(?:</script>|\Z)", text, re.DOTALL) or [text]


def test_pages_are_read_as_token_by_token() -> None:
    for scripts in page_scripts():
        check_equal(*scripts)
        longest = max(scripts, key=len)
        for end in range(0, len(longest), 4_999):
            check_equal(longest[:end])


def test_scripts_that_take_too_long_to_read_are_refused() -> None:
    found = Literals()
    found.read(repr(" " * (MAX_CHARACTERS - 2)))
    with pytest.raises(ExtractionFailed, match="more than 500,000 characters"):
        found.read("1")
    page = page_of("page", b"<script>$R[0]={a:1};" + b" " * MAX_CHARACTERS + b"</script>")
    with pytest.raises(ExtractionFailed) as raised:
        asyncio.run(page.to_item())
    assert raised.value.reason == "broken_data_block"
    assert raised.value.details


@pytest.mark.parametrize("scripts", [1, 4])
@pytest.mark.parametrize("element", ["[", "a:", "!", "1,"])
def test_scripts_with_too_many_elements_are_refused(element: str, scripts: int) -> None:
    found, script = Literals(), element * (MAX_ELEMENTS // scripts)
    for _ in range(scripts - 1):
        found.read(script)
    with pytest.raises(ExtractionFailed, match="50,000 elements or more"):
        found.read(script * 2)
