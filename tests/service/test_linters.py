"""The OpenAPI document passes linters and a client generator from the npm registry."""

from __future__ import annotations

import subprocess

import pytest

from tests.service.conftest import ROOT

WITHOUT_NPM = 77


@pytest.mark.soak
def test_linters_and_openapi_typescript_find_no_problem() -> None:
    run = subprocess.run([ROOT / "scripts" / "lint-openapi"], check=False, capture_output=True, text=True)
    if run.returncode == WITHOUT_NPM:
        pytest.skip(run.stderr.splitlines()[-1])
    assert run.returncode == 0, run.stdout + run.stderr
    assert "No results with a severity of 'hint' or higher found" in run.stdout
    assert "Your API description is valid" in run.stdout + run.stderr
