"""The arguments of a crawl: which ones fit together, and the sentence for each that does not."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from crawler.platforms.model import first_problem
from crawler.targets.arguments import CrawlArguments


@pytest.mark.parametrize(
    ("arguments", "given"),
    [
        ({"_job": "added by Scrapyd"}, {}),
        ({"source": object(), "shared": object()}, {}),
        ({"targets": "a.csv", "shard": "2/3", "encoding": "cp1252"}, None),
        ({"job": "a", "run": "1"}, {"job": "a", "run": 1}),
        ({"max_pages": "1"}, {"max_pages": 1}),
    ],
    ids=["of Scrapyd", "of the project", "of targets files", "of a job", "the smallest limit"],
)
def test_arguments_that_fit_together(arguments: dict[str, Any], given: dict[str, Any] | None) -> None:
    found = CrawlArguments.model_validate(arguments).model_dump(exclude_unset=True)
    assert found == (arguments if given is None else given)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"targtes": "a"}, "no argument is called targtes; did you mean targets?"),
        (
            {"source": "text"},
            "no argument is called source; the arguments are scraper, targets, encoding, explode, shard, job, run",
        ),
        (
            {"resume": "1"},
            "the argument resume was replaced by jobs: scrapy collect FILE -O OUT continues an interrupted",
        ),
        ({"queue": "a"}, "the argument queue was replaced by jobs: scrapy jobs push NAME FILE, then scrapy work"),
        ({"wait": "1"}, "the argument wait was replaced by jobs: scrapy work waits for further targets"),
        ({"shard": "1/2"}, "shard selects a part of targets files: add targets=, or remove shard="),
        ({"encoding": "cp1252"}, "encoding is that of targets files: add targets=, or remove encoding="),
        ({"targets": "a", "shard": "3/2"}, "'3/2' is not a shard: write 3/16 for the third of sixteen parts"),
        ({"targets": "a", "encoding": "utf-9"}, "encoding: 'utf-9' is not an encoding: "),
        ({"run": "1"}, "run is the number of a run of a job: add job=, or remove run="),
        ({"job": "a", "run": "0"}, "run: Input should be greater than or equal to 1"),
        ({"job": ""}, "job: String should have at least 1 character"),
        ({"job": "a", "targets": "b"}, "a job has its own targets and arguments: remove targets=, or remove job="),
        ({"max_pages": "0"}, "max_pages: Input should be greater than or equal to 1"),
    ],
)
def test_arguments_that_are_refused(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError) as refused:
        CrawlArguments.model_validate(arguments)
    assert first_problem(refused.value).startswith(sentence)
