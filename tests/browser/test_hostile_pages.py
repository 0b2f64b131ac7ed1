"""Pages that misbehave in the browser: each target has one typed outcome, and nothing of the browser is left."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import crawls
from tests.browser.hostile_pages import AFTER_AN_ANSWER, AT_ONCE, LATER, PAGES, hostile_platform
from tests.browsers import require_chromium

SETTINGS = (
    "BROWSER_SCROLL_PAUSE=0",
    "BROWSER_PAGES=3",
    "DOWNLOAD_TIMEOUT=600",  # a slow machine has the time to load a page that reloads itself all the time
    "RETRY_TIMES=0",
    'PLATFORM_BUDGETS={"shortvideo": {"concurrency": 3}}',
)
OF_EACH_KIND = {
    AT_ONCE: (
        *("reload at once", "waiting room that reloads", "captcha that reloads, document in two parts"),
        *("limited, reloads", "alert", "download"),
    ),
    AFTER_AN_ANSWER: ("null", "UTF-16", "general path", "suggestions first"),
}
ALL = {
    quiet: tuple(n for n, page in PAGES.items() if page.quiet == quiet) for quiet in (AT_ONCE, LATER, AFTER_AN_ANSWER)
}


@pytest.mark.parametrize(
    ("quiet", "names"),
    [
        *(pytest.param(*each, id=f"of each kind, {each[0]} s") for each in OF_EACH_KIND.items()),
        *(pytest.param(*each, id=f"all, {each[0]} s", marks=pytest.mark.soak) for each in ALL.items()),
    ],
)
def test_hostile_pages_have_one_typed_outcome(
    tmp_path: Path, quiet: int, names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    require_chromium()
    targets, profiles = tmp_path / "targets.jsonl", tmp_path / "profiles"
    targets.write_text("".join(json.dumps({"id": name, "keywords": name}) + "\n" for name in names))
    profiles.mkdir()
    monkeypatch.setenv("TMPDIR", str(profiles))
    with hostile_platform() as origin:
        settings = ("SANDBOX=0", f'PLATFORM_ORIGINS={{"shortvideo": "{origin}"}}', f"BROWSER_QUIET={quiet}", *SETTINGS)
        options = [part for each in settings for part in ("-s", each)]
        code, data, failures, log = crawls.crawl(tmp_path, "-a", f"targets={targets}", *options, spider="shortvideo")
    outcomes = [(line["id"], ("OK", "")) for line in data]
    outcomes += [(line["id"], (line["code"], line["upstream"]["reason"])) for line in failures]
    assert dict(outcomes) == {name: PAGES[name].outcome for name in names}, log
    assert len(outcomes) == len(names), "a target has two outcomes"
    assert code == 4
    assert "Traceback" not in log
    assert "open_contexts=0" in [line for line in log.splitlines() if "event=browser_page" in line][-1]
    assert list(profiles.iterdir()) == []
    assert [each for each in command_lines() if str(profiles) in each] == []


def command_lines() -> list[str]:
    """The command lines of all processes. That of a browser names the folder of its profile."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(file.read_bytes().decode(errors="replace"))
        except OSError:
            continue  # the process has just exited
    return found
