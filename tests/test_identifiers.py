"""Identifiers and file names use neutral platform names. Brand names occur only in data and origins."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("crawler", "tests", "scripts", "benchmarks", "docs")
BRANDS = ("instagram", "facebook", "tiktok", "youtube", "twitter", "linkedin", "walmart", "whatsapp")

# Keys of the interface specification that contain a brand name.
CONTRACT_KEYS = {"fields_withheld_by_linkedin", "positions_masked_by_linkedin"}


def files() -> list[Path]:
    return [
        path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*")) if "__pycache__" not in path.parts
    ]


def identifiers(path: Path) -> Iterator[tuple[int, str]]:
    """Yield each name that a module defines or uses, with its line. Modules without any brand name are skipped."""
    text = path.read_text()
    if not branded(text):
        return
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                yield node.lineno, name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name
            case ast.arg(arg=name):
                yield node.lineno, name
            case ast.keyword(arg=str(name)):
                yield node.value.lineno, name
            case ast.alias(name=name, asname=asname):
                yield node.lineno, asname or name


def branded(name: str) -> bool:
    return name not in CONTRACT_KEYS and any(brand in name.lower() for brand in BRANDS)


def test_identifiers_are_neutral() -> None:
    modules = [path for path in files() if path.suffix == ".py"]
    assert [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in modules
        for line, name in identifiers(path)
        if branded(name)
    ] == []


def test_file_names_are_neutral() -> None:
    assert [str(path.relative_to(ROOT)) for path in files() if branded(path.name)] == []
