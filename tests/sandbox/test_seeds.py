"""The same seed gives the same platforms in every process; another seed gives different ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from tests.crawls import ROOT
from tests.sandbox import test_microblog, test_professional, test_retail, test_videosite

MODULES = (test_microblog, test_professional, test_retail, test_videosite)


def digests(seed: int) -> list[str]:
    return [module.digest(seed) for module in MODULES]


def test_a_seed_gives_the_same_platforms_in_every_process() -> None:
    other = subprocess.run(
        [
            sys.executable,
            "-c",
            "import json; from tests.sandbox import test_seeds; print(json.dumps(test_seeds.digests(1)))",
        ],
        check=True,
        capture_output=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "77", "TZ": "Asia/Tokyo", "LC_ALL": "C"},
    )
    assert json.loads(other.stdout) == digests(1)


def test_another_seed_gives_other_platforms() -> None:
    assert not set(digests(1)) & set(digests(2))
