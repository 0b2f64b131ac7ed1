"""Professional network: the section at the top of a profile: headline, location, counts, company and school."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from crawler.platforms.professional import history
from crawler.platforms.professional.language import counts, is_connections, is_followers
from crawler.platforms.professional.markup import image, line, link
from crawler.reading.markup import Node

HEAD = "section.top-card-layout"
_SUBHEADER = ".profile-info-subheader"
_COUNT = "not-first-middot"
"""The CSS class of a count."""


class Head:
    """The top section of a profile's page. All values are "" or None if the page does not have them."""

    def __init__(self, page: Node) -> None:
        self.node = page.first(HEAD)

    @cached_property
    def headline(self) -> str:
        """The line under the name, "" if it is masked."""
        headline = line(self.node, "h2.top-card-layout__headline")
        return "" if history.is_masked(headline) else headline

    @cached_property
    def location(self) -> str:
        """The member's location."""
        # Excluded are the counts, in any language, and the link to data that only members see.
        spans = (span for span in self._all(f"{_SUBHEADER} > span") if _COUNT not in span.classes and not span.has("a"))
        texts = map(line, spans)
        return next((each for each in texts if each and not is_followers(each) and not is_connections(each)), "")

    @cached_property
    def _counts(self) -> tuple[str, str, list[str]]:
        listed = [line(each) for each in self._all(f"{_SUBHEADER} .{_COUNT} span")]
        return counts(listed or [t for t in map(line, self._all(f"{_SUBHEADER} span")) if t != self.location])

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
        found = next(iter(self._all(f'[data-section="{kind}"]')), None)
        return {"logo": image(found), "name": line(found, ".top-card-link__description"), "url": link(found, "a")}

    def _all(self, css: str) -> list[Node]:
        return self.node.css(css) if self.node else []
