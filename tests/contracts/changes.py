"""Changes that a platform may make to its pages, tried on recorded responses: which of them are silent?

A change of one name is *noticed* if reading the changed response gives an error, or a warning that the unchanged
response does not give. It is *silent* if the answer changes without one. The names that are tried are those that the
platform's code mentions in a text: a reader cannot depend on any other name.

``silent.json`` lists the names for which nothing in a page can speak, each with the reason. ``silent_names`` finds the
names that are silent if they are renamed, or set to null, everywhere in a response.
"""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from typing import Literal, NamedTuple, get_args

from crawler.platforms import platforms
from scripts.captures import ROOT
from tests.contracts.recorded import FOLDER, Answer, Recorded, recorded
from tests.mutations import SUFFIX, Name, changed_json, names, nullify, renamed

Operation = Literal["rename", "null"]
OPERATIONS: tuple[Operation, ...] = get_args(Operation)
LIST = FOLDER / "silent.json"
PROCESSES = 2


class Silent(NamedTuple):
    """A change that was silent in a response."""

    platform: str
    change: str
    """The operation and the name, such as ``rename averageRating``: as in ``silent.json``."""
    response: str


# The names that are tried


@cache
def mentioned(platform: str) -> frozenset[str]:
    """Return the words in the texts of a platform's code, such as keys in paths, and classes in selectors."""
    folder = ROOT / "crawler" / "platforms"
    files = [*(folder / platform).rglob("*.py"), *folder.glob("*.py"), *(ROOT / "crawler" / "reading").glob("*.py")]
    return frozenset(word for file in files for text in _texts(ast.parse(file.read_text())) for word in _words(text))


def _texts(tree: ast.AST) -> Iterator[str]:
    statements = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Expr)}
    for each in ast.walk(tree):
        if isinstance(each, ast.Constant) and isinstance(each.value, str) and id(each) not in statements:
            yield each.value


def _words(text: str) -> list[str]:
    return re.findall(r"[A-Za-z_$][\w$-]*", text)


def tried(response: Recorded) -> list[Name]:
    """Return the names in a response that the platform's code mentions."""
    known = mentioned(response.platform)
    return [each for each in names(response.body) if known.issuperset(_words(each.text))]


# Changed copies of responses


def changed(body: bytes, name: Name, operation: Operation) -> bytes:
    """Return a copy of a response with a name changed. If nothing can be changed, return the body itself."""
    key = name.text.encode()
    if operation == "rename":
        if name.sort != "key":
            return renamed(body, name)
        return re.sub(rb'(?<=")%b(?=\\*"\s*:)' % re.escape(key), key + SUFFIX.encode(), body)
    return changed_json(body, (), name.text, nullify) if name.sort == "key" else body


Effect = Literal["none", "noticed", "silent"]


def effect(original: Answer, answer: Answer) -> Effect:
    """Return whether a change of a response has changed its answer, and if so, whether the answer says so."""
    if answer.data == original.data:
        return "none"
    return "noticed" if answer.error or Counter(answer.warnings) - Counter(original.warnings) else "silent"


# The names that are silent


@cache
def silent_names(platform: str) -> frozenset[Silent]:
    """Return the changes of single names, everywhere in a response, that are silent."""
    with ProcessPoolExecutor(PROCESSES) as pool:
        found = pool.map(_silent_names_of, [platform] * PROCESSES, range(PROCESSES))
        return frozenset(each for part in found for each in part)


def _silent_names_of(platform: str, part: int) -> list[Silent]:
    """Return the silent changes in one part of a platform's responses."""
    found = []
    for response in with_data(platform)[part::PROCESSES]:
        original = response.read()
        for name in tried(response):
            for operation in OPERATIONS:
                body = changed(response.body, name, operation)
                result = effect(original, response.read(body)) if body != response.body else "none"
                if result == "silent":
                    found.append(Silent(platform, f"{operation} {name.text}", response.name))
                if result == "none":
                    break  # the record does not depend on the name
    return found


def with_data(platform: str) -> list[Recorded]:
    """Return the recorded responses with data, each with one scraper per page class."""
    found: dict[tuple[str, str], Recorded] = {}
    for each in recorded(platform):
        if each.read().data is not None:
            found.setdefault((each.name, each.page_class), each)
    return list(found.values())


def listed_names(platform: str) -> dict[str, str]:
    """Return the changes that may be silent on a platform's pages, each with the reason."""
    every: dict[str, dict[str, str]] = json.loads(LIST.read_bytes())
    return every.get(platform, {})


def unlisted(platform: str) -> Iterator[str]:
    """Yield a line for each change that is silent but not in the list: the change, and a response."""
    found = {each.change: each.response for each in silent_names(platform)}
    yield from (
        f"{platform}: {change} is silent in {found[change]}" for change in found.keys() - listed_names(platform)
    )


def wrongly_listed(platform: str) -> Iterator[str]:
    """Yield a line for each change in the list that is noticed now in all responses."""
    found = {each.change for each in silent_names(platform)}
    yield from (f"{platform}: {change} is no longer silent" for change in listed_names(platform).keys() - found)


def write(platform: str) -> None:
    """Write the list of a platform anew. Known reasons are kept, and new entries have the reason ""."""
    changes = sorted({each.change for each in silent_names(platform)})
    found = {each: listed_names(platform).get(each, "") for each in changes}
    every = {each: found if each == platform else listed_names(each) for each in platforms()}
    LIST.write_text(json.dumps(every, indent=1, ensure_ascii=False) + "\n")
