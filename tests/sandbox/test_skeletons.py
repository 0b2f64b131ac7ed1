"""Skeletons become pages: fields keep their types, absent parts disappear, and a forgotten field is an error."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from crawler.sandbox import skeletons
from crawler.sandbox.skeletons import ABSENT, Fragments, Skeletons

FOLDER = Path(skeletons.__file__).parent


@dataclass(frozen=True)
class Video:
    id: str
    views: int | None


@pytest.fixture
def fill(tmp_path: Path) -> Skeletons:
    (tmp_path / "row.json").write_text(
        """{
  "row": {"link": "/watch?v={video.id}", "views": "{video.views}", "size": "{size[0]}", "config": "{{}}", "fixed": 3,
          "badges": ["{badge}", {"text": "{badge}"}], "menu": "{menu}"}
}"""
    )
    return Skeletons(str(tmp_path / "row.py"))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            {"video": Video("a{b}", 7), "badge": "new", "menu": {"items": []}},
            {"link": "/watch?v=a{b}", "views": 7, "badges": ["new", {"text": "new"}], "menu": {"items": []}},
        ),
        (
            {"video": Video("c", None), "badge": ABSENT, "menu": ABSENT},
            {"link": "/watch?v=c", "views": None, "badges": [{}]},
        ),
    ],
)
def test_fields_keep_their_types_and_absent_parts_disappear(
    fill: Skeletons, fields: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert fill("row", size=(4, 5), **fields) == {"size": 4, "config": "{}", "fixed": 3, **expected}


def test_filled_skeletons_are_independent_of_each_other(fill: Skeletons) -> None:
    fields = {"video": Video("a", 1), "badge": "new", "menu": {}, "size": [1]}
    fill("row", **fields)["badges"].clear()
    assert fill("row", **fields)["badges"]


def test_a_forgotten_field_is_named(fill: Skeletons) -> None:
    with pytest.raises(TypeError, match=r"'row'.*'badge'"):
        fill("row", video=Video("a", 1), size=(1,))


def test_fragments_escape_texts_on_request_and_end_before_the_last_line_break(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(
        "<!-- row -->\n<li>{title!e}{more}\n</li>\n\n<!-- last -->\n<!---->\n{row[name]}\n"
    )
    fill = Fragments(str(tmp_path / "page.py"))
    assert fill("row", title='<"&', more="<br>") == "<li>&lt;&quot;&amp;<br>\n</li>\n"
    assert fill("last", row={"name": "a"}) == "<!---->\na"
    with pytest.raises(TypeError, match=r"'row'.*'more'"):
        fill("row", title="")


FILES = sorted({*FOLDER.rglob("*.json"), *FOLDER.rglob("*.html")})


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}-{file.name}")
def test_each_file_belongs_to_the_module_beside_it(file: Path) -> None:
    module = importlib.import_module(f"crawler.sandbox.{file.parent.name}.{file.stem}")
    assert {"fill", "render", "INVENTED"} & vars(module).keys()
