"""Professional network: the section at the top of a profile: headline, location, counts, company and school."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from parsel import Selector

from crawler.platforms.professional import history
from crawler.platforms.professional.language import counts, is_connections, is_followers
from crawler.platforms.professional.markup import image, line, link

HEAD = "section.top-card-layout"
_SUBHEADER = ".profile-info-subheader"

# CSS: excludes the counts, in any language, and the link to data that only members see.
_NOT_COUNT_OR_LINK = ":not(.not-first-middot):not(:has(a))"


class Head:
    """The top section of a profile's page. All values are "" or None if the page does not have them."""

    def __init__(self, page: Selector) -> None:
        found = page.css(HEAD)
        self.node = found[0] if found else Selector("", type="html")

    @cached_property
    def headline(self) -> str:
        """The line under the name, "" if it is masked."""
        headline = line(self.node, "h2.top-card-layout__headline")
        return "" if history.is_masked(headline) else headline

    @cached_property
    def location(self) -> str:
        """The member's location."""
        spans = (line(each) for each in self.node.css(f"{_SUBHEADER} > span{_NOT_COUNT_OR_LINK}"))
        return next((each for each in spans if each and not is_followers(each) and not is_connections(each)), "")

    @cached_property
    def _counts(self) -> tuple[str, str, list[str]]:
        listed = [line(each) for each in self.node.css(f"{_SUBHEADER} .not-first-middot span")]
        return counts(listed or [t for t in map(line, self.node.css(f"{_SUBHEADER} span")) if t != self.location])

    @property
    def followers(self) -> str:
        """The platform's text about the number of followers."""
        return self._counts[0]

    @property
    def connections(self) -> str:
        """The platform's text about the number of connections."""
        return self._counts[1]

    @property
    def unknown_counts(self) -> list[str]:
        """Counts in a language in which followers and connections cannot be told apart."""
        return self._counts[2]

    @property
    def cover(self) -> str:
        """The URL of the cover image."""
        return image(self.node, "img.cover-img__image") or ""

    @property
    def photo(self) -> str | None:
        """The URL of the photo."""
        photos = '[data-section="picture"] img.top-card-layout__entity-image, [data-section="picture"] img'
        return image(self.node, photos)

    def affiliation(self, kind: str) -> dict[str, Any]:
        """Return the company or school whose element has this ``data-section``."""
        found = self.node.css(f'[data-section="{kind}"]')[:1]
        return {"logo": image(found), "name": line(found, ".top-card-link__description"), "url": link(found, "a")}
