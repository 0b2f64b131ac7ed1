"""Photo app: page object for a share link."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar
from urllib.parse import urlsplit

import attrs
from web_poet import field

from crawler.errors import TargetNotFound, UpstreamBlocked
from crawler.platforms.photoapp import blocks
from crawler.platforms.photoapp.link import HOSTS, link_of_path
from crawler.platforms.photoapp.pages import PhotoPage
from crawler.reading.values import absolute_url


@attrs.define(slots=False)
class SharePage(PhotoPage):
    """The response to a share link: a redirect to a post's URL. Only the shortcode in that URL is used.

    Such a response has no body, so it is never saved, and ``recognise`` is not implemented.
    """

    source: ClassVar[str] = "share"

    def validate_input(self) -> None:
        """Raise an error unless the share link leads to a post.

        Raises:
            TargetNotFound: the share link does not exist, or leads to another kind of page.
            UpstreamBlocked: the link leads to the login page, a challenge or another host.
            UpstreamRateLimited, UpstreamError: the HTTP status means this error.
            ExtractionFailed: the response is a page without a redirect and without a post.
        """
        if 300 <= (self.response.status or 0) < 400 and self._location is not None:
            self._raise_for_wrong_redirect(self._location)
            return
        self.raise_for_blocks()
        if not self._shortcode:
            blocks.raise_for_shell(self.response, None, "Location")

    @field
    def shortcode(self) -> str | None:
        return self._shortcode

    @cached_property
    def _location(self) -> str | None:
        target = self.response.headers.get("Location")
        return absolute_url(str(self.response.url), target) or None

    @cached_property
    def _shortcode(self) -> str | None:
        # If the browser loaded the link, it has followed the redirect, and the response is the post's page.
        link = link_of_path(urlsplit(self._location or str(self.response.url)).path)
        if link and link.shortcode:
            return link.shortcode
        return None if self._location else blocks.preview_shortcode(self.response.body)

    def _raise_for_wrong_redirect(self, location: str) -> None:
        source, target = urlsplit(str(self.response.url)), urlsplit(location)
        if target.netloc != source.netloc and target.netloc.lower() not in HOSTS:
            raise UpstreamBlocked(
                f"The platform redirected to another host: {target.netloc[:100]}",
                reason="foreign_redirect",
            )
        blocks.raise_for_blocked_path(target.path)
        if target.path in {"", "/"}:
            blocks.raise_for_login()
        if not self._shortcode:
            raise TargetNotFound("The share link does not lead to a post.", reason="wrong_page_kind")
