"""Professional network: the spider for members' profiles. The spider requests one page for each target."""

from __future__ import annotations

from typing import Any

from scrapy import Request

from crawler.items import ProfessionalProfileItem, ProfessionalProfileV4Item
from crawler.platforms.professional.pages import ContentPage, ProfilePage
from crawler.platforms.professional.schema import MemberContent, MemberParams, Profile, ProfileParams
from crawler.platforms.professional.urls import profile_request, slug_of_username
from crawler.spiders.base import Data, First, PlatformSpider
from crawler.targets.target import Scraper, Target


class ProfessionalSpider(PlatformSpider):
    """Scrapes members' profiles on the professional network."""

    name = "professional"
    can_use_browser = False
    metadata = {"title": "Professional network", "description": "Members' public profiles."}  # noqa: RUF012
    scrapers = (
        Scraper(
            name="professional-profile",
            platform="professional",
            summary="A member's public profile: positions, schools, and every other section shown to visitors.",
            params=ProfileParams,
            data=Profile,
            item=ProfessionalProfileItem,
            example={"url": "https://www.linkedin.com/in/mara-lindqvist"},
            pages=(ProfilePage,),
            requests=1,
        ),
        Scraper(
            name="professional-profile-v4",
            platform="professional",
            summary="A member with articles and recent activity, and their numbers of reactions and comments.",
            params=MemberParams,
            data=MemberContent,
            item=ProfessionalProfileV4Item,
            example={"username": "mara-lindqvist"},
            pages=(ContentPage,),
            requests=1,
        ),
    )

    def request(self, target: Target) -> Request:
        assert isinstance(target.params, ProfileParams | MemberParams)
        (page,) = target.scraper.pages
        return self.for_page(page, profile_request(target.params.slug))

    @classmethod
    def page_params(cls, scraper: Scraper, arguments: dict[str, str]) -> dict[str, Any]:
        params = super().page_params(scraper, arguments)
        name = params.get("username") or params.get("url")
        return {"slug": slug_of_username(name)} if name else {}

    async def scrape(self, target: Target, first: First) -> Data:
        """Scrape a member's profile. The first response contains all data; no browser is needed."""
        (page,) = target.scraper.pages
        return await (await first.page(page)).to_item()
