"""Each skeleton of a page belongs to the module that fills it."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from crawler.sandbox import skeletons

FOLDER = Path(skeletons.__file__).parent


FILES = sorted({*FOLDER.rglob("*.json"), *FOLDER.rglob("*.html")})


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}-{file.name}")
def test_each_file_belongs_to_the_module_beside_it(file: Path) -> None:
    module = importlib.import_module(f"crawler.sandbox.{file.parent.name}.{file.stem}")
    assert {"fill", "render", "INVENTED"} & vars(module).keys()
