"""``scrapy newscraper``: adds a scraper to a platform, with a page object and simulated pages of its own."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, ClassVar

from scrapy.exceptions import UsageError

from crawler.commands import scaffold
from crawler.commands.insertion import Insertion
from crawler.configuration.command import CheckedCommand
from crawler.platforms import platforms

MODULES = ("schema", "payload", "requests")
DOCUMENTATION = "\n## Failures\n"
"""The heading before which the scraper's section is added to the platform's page."""


class Command(CheckedCommand):
    """Write a new scraper of a platform: page object, contract, sandbox, tests and documentation.

    Exit codes: 0 for success, 2 for wrong use, before any file is written. Also 2 if the files were written, but a
    program that formats or documents them has failed.
    """

    default_settings: ClassVar[dict[str, Any]] = {"LOG_ENABLED": False}
    arguments = "<name> --platform PLATFORM"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--platform", help="the platform, such as retail")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if len(args) != 1 or opts.platform is None:
            raise UsageError("Expected a name and a platform: scrapy newscraper <name> --platform <platform>")
        (name,), platform = args, opts.platform
        root = scaffold.checkout()
        scaffold.check_name(name, "scraper")
        if platform not in platforms():
            raise UsageError(f"Unknown platform {platform!r}; known platforms are {', '.join(platforms())}.")
        words = scraper_words(platform, name)
        new = scaffold.rendered("scraper", words)
        taken = [path for path in new if (root / path).exists() or (root / path.removesuffix(".py")).is_dir()]
        if taken:
            raise UsageError(f"{name!r} is taken: {taken[0]} exists. Choose another name.")
        scaffold.write(root, new, changed_files(root, words), words)


def scraper_words(platform: str, name: str) -> dict[str, str]:
    """Return the replacements for the words in templates. The names of its modules end with the scraper's name."""
    modules = {module: f"{module}_{name}" for module in MODULES}
    origin, source = platforms()[platform].origin, f"{platform}_{name}"
    return scaffold.words(platform, name, origin, pages=name, source=source, **modules)


def changed_files(root: Path, words: dict[str, str]) -> scaffold.Files:
    """Return the platform's files with the scraper added.

    Raises:
        UsageError: one of the files already uses the name, or has no place for the scraper.
    """
    platform = words["platform"]
    changes = {
        f"crawler/platforms/{platform}/__init__.py": _in_platform,
        f"crawler/spiders/{platform}.py": _in_spider,
        f"crawler/sandbox/{platform}/site.py": _in_sandbox,
        f"docs/platforms/{platform}.md": _in_documentation,
    }
    changed = {path: change(path, (root / path).read_text(encoding="utf-8"), words) for path, change in changes.items()}
    return changed | scaffold.with_scraper(root, words)


def _in_platform(path: str, text: str, words: dict[str, str]) -> str:
    module = Insertion(path, text)
    module.append(module.keyword("scrapers"), f'"{words["scraper"]}"')
    return module.text


def _in_spider(path: str, text: str, words: dict[str, str]) -> str:
    """Add a scraper to a spider. The spider's methods then pass the scraper's targets and pages to new functions."""
    module = Insertion(path, text)
    thing, page = words["thing"], f"{words['Thing']}Page"
    parts = scaffold.rendered("spider", words)
    module.refuse_taken(page, f"{words['Thing']}Params", words["Thing"], f"{thing}_request", f"{thing}_id")
    module.add_import(parts["imports"])
    spider = module.find_class("PlatformSpider")
    module.append(module.assigned(spider, "scrapers"), parts["declaration"].rstrip())
    for method in ("request", "scrape"):
        module.prepend(module.method(spider, method), parts[method])
    for method in ("page_params", "read_item"):
        if module.has_method(spider, method):
            module.prepend(module.method(spider, method), parts[method])
    return module.text


def _in_sandbox(path: str, text: str, words: dict[str, str]) -> str:
    """Add the simulated pages of a scraper to the simulated platform."""
    module = Insertion(path, text)
    parts = scaffold.rendered("site", words)
    module.refuse_taken(f"{words['platform']}_{words['thing']}")
    module.add_import(parts["imports"])
    site = module.find_class("Site")
    for method in ("fault", "page", "expected_record"):
        module.prepend(module.method(site, method), parts[method])
    module.extend(module.item(module.method(site, "catalogue"), "targets"), parts["targets"].strip())
    return module.text


def _in_documentation(path: str, text: str, words: dict[str, str]) -> str:
    rows, heading, rest = text.partition("\nSpider: ")
    before, failures, after = rest.partition(DOCUMENTATION)
    if not heading or not failures:
        raise UsageError(f"{path} lacks the line 'Spider: ...' or the heading{DOCUMENTATION.rstrip()}.")
    parts = scaffold.rendered("documentation", words)
    return f"{rows}{parts['row']}{heading}{before}{parts['section']}{failures}{after}"
