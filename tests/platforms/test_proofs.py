"""Each param that selects what a response contains declares how a response proves it."""

from __future__ import annotations

from typing import Annotated, ClassVar

import pytest

from crawler.platforms.model import Params, Selects
from crawler.registry import find_scraper, scraper_names
from crawler.targets.parser import check_params

ECHOED = {"url": "echo"}
PROOFS = {
    "microblog-profile-v4": {**ECHOED, "username": "echo", "cursor": None},
    "photoapp-post-v4": ECHOED,
    "professional-profile": ECHOED,
    "professional-profile-v4": {**ECHOED, "username": "echo"},
    "retail-category-v4": {
        **ECHOED, "cat_id": "echo", "page": "echo", "sort": "echo", "min_price": "rows", "max_price": "rows",
    },
    "retail-search-v4": {
        **ECHOED, "query": "echo", "page": "echo", "sort": "echo", "min_price": "rows", "max_price": "rows",
    },
    "shortvideo-photo-search-v4": {"keywords": "request", "url": "request", "cursor": "here", "count": "here"},
    "videosite-profile": {**ECHOED, "username": "echo", "type": "echo", "cursor": None},
    "videosite-profile-v3": {**ECHOED, "username": "echo", "type": "echo", "cursor": None},
}  # fmt: skip


@pytest.mark.parametrize("name", PROOFS)
def test_the_proofs_of_a_scrapers_params(name: str) -> None:
    model = find_scraper(name).params
    assert issubclass(model, Params)
    assert {param: each.proof for param, each in model.selects().items()} == PROOFS[name]


def test_every_param_of_every_scraper_is_declared() -> None:
    for name in scraper_names():
        model = find_scraper(name).params
        assert issubclass(model, Params)
        selecting = model.selects()
        assert selecting.keys() | model.further == model.model_fields.keys()
        assert not selecting.keys() & model.further
        for each in selecting.values():
            assert bool(each.reason) is (each.proof is None), name


def test_a_model_with_an_undeclared_param_cannot_be_defined() -> None:
    with pytest.raises(TypeError, match="annotate brand with Selects"):

        class Wrong(Params):
            brand: str = ""
            query: Annotated[str, Selects("echo")] = ""
            details: bool = False
            further: ClassVar = frozenset({"details"})


@pytest.mark.parametrize(
    ("name", "given", "sentences"),
    [
        ("retail-category-v4", {"cat_id": "1", "min_price": 2.0}, ""),
        (
            "shortvideo-photo-search-v4",
            {"keywords": "x", "count": 99},
            "count=30 was used instead of 99: it is the limit.",
        ),
    ],
)
def test_a_proven_param_has_no_note(name: str, given: dict[str, object], sentences: str) -> None:
    assert check_params(find_scraper(name), given).note() == sentences


def test_an_unproven_param_has_a_note_if_it_is_given() -> None:
    class Rows(Params):
        cursor: Annotated[str, Selects(None, "a further page does not repeat it")] = ""

    assert Rows().note() == ""
    assert Rows(cursor="7").note() == ("The platform does not confirm cursor: a further page does not repeat it.")
