"""The parts of the benchmarks that prepare the programs and data to be measured."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from benchmarks.reading import block_of, found_block, parsed_literals

DATA: dict[str, Any] = {"a": [{"b": "x"}]}
BLOCK = orjson.dumps(DATA)


@pytest.mark.parametrize(
    ("page", "mark"),
    [
        pytest.param(b'<script>1</script><script id="DATA">%b</script>', "DATA", id="in a script with an id"),
        pytest.param(b"<script>var data = %b;</script>", "var data", id="assigned to a variable"),
        pytest.param(b"<p>{<script>{}</script><script>%b</script>}", '"b"', id="beside another block"),
        pytest.param(b"<script>data({})</script><script>data = %b</script>", "data", id="the longest script"),
    ],
)
def test_sp_5_the_floor_of_a_block_is_its_json_alone(page: bytes, mark: str) -> None:
    assert block_of(page % BLOCK, mark) == BLOCK


def test_sp_5_the_second_floor_finds_the_block() -> None:
    _, find_and_decode = found_block(b'"b"')(b"<script>{}</script><script type=x>%b</script>" % BLOCK)
    assert find_and_decode() == DATA


def test_sp_5_the_floor_of_script_literals_has_all_of_their_data() -> None:
    page = b"<script>($R=>$R[0]={a:$R[1]=[{b:'x'}],c:!0})($R)</script><script>other()</script>"
    name, decode = parsed_literals(page)
    assert (name, decode()) == ("orjson", [{**DATA, "c": True}])
