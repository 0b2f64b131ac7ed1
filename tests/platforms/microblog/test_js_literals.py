"""The parser of script literals: values, slots, code around them, and malformed input."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.errors import ExtractionFailed
from crawler.platforms.microblog.js_literals import MAX_CHARACTERS, MAX_ELEMENTS, Literals
from crawler.sandbox.microblog.page import _Literal
from tests.microblog_pages import page_of


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
        ("$R[0]={a:/x/,b:2}", {"a": None, "b": 2}),
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
    assert read("$R[1]={n:1}\n$R[2]={m:2}\n$R[3]={again:$R[1]}").containers[-1] == {"again": {"n": 1}}


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
