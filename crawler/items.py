"""The item classes and data models of all scrapers: ``from crawler.items import RetailCategoryV4Item``.

For the scraper ``retail-category-v4``, spiders yield items of the class ``RetailCategoryV4Item``. A pipeline validates
their data with the pydantic model ``RetailCategoryV4Data``. A data model is imported when its name is first used, so
that a crawl imports only the schema of its own platform.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy.utils.misc import load_object

from crawler.targets.target import Record

if TYPE_CHECKING:
    from crawler.platforms.microblog.schema import Profile as MicroblogProfileData
    from crawler.platforms.photoapp.schema import PostData as PhotoappPostV4Data
    from crawler.platforms.professional.schema import MemberContent as ProfessionalProfileV4Data
    from crawler.platforms.professional.schema import Profile as ProfessionalProfileData
    from crawler.platforms.retail.schema import Listing as RetailCategoryV4Data
    from crawler.platforms.retail.schema import SearchListing as RetailSearchV4Data
    from crawler.platforms.shortvideo.schema import PhotoSearch as ShortvideoPhotoSearchV4Data
    from crawler.platforms.videosite.schema import ChannelRecord as VideositeProfileData
    from crawler.platforms.videosite.schema import ChannelRecord as VideositeProfileV3Data

__all__ = [
    "MicroblogProfileData",
    "MicroblogProfileItem",
    "PhotoappPostV4Data",
    "PhotoappPostV4Item",
    "ProfessionalProfileData",
    "ProfessionalProfileItem",
    "ProfessionalProfileV4Data",
    "ProfessionalProfileV4Item",
    "RetailCategoryV4Data",
    "RetailCategoryV4Item",
    "RetailSearchV4Data",
    "RetailSearchV4Item",
    "ShortvideoPhotoSearchV4Data",
    "ShortvideoPhotoSearchV4Item",
    "VideositeProfileData",
    "VideositeProfileItem",
    "VideositeProfileV3Data",
    "VideositeProfileV3Item",
]

DATA_MODELS = {
    "MicroblogProfileData": "microblog.schema.Profile",
    "PhotoappPostV4Data": "photoapp.schema.PostData",
    "ProfessionalProfileData": "professional.schema.Profile",
    "ProfessionalProfileV4Data": "professional.schema.MemberContent",
    "RetailCategoryV4Data": "retail.schema.Listing",
    "RetailSearchV4Data": "retail.schema.SearchListing",
    "ShortvideoPhotoSearchV4Data": "shortvideo.schema.PhotoSearch",
    "VideositeProfileData": "videosite.schema.ChannelRecord",
    "VideositeProfileV3Data": "videosite.schema.ChannelRecord",
}
"""Name of a data model -> its module and name in ``crawler.platforms``."""


class MicroblogProfileItem(Record):
    """A profile of the microblog, with a page of its posts."""


class PhotoappPostV4Item(Record):
    """A post or reel of the photo app."""


class ProfessionalProfileItem(Record):
    """A member's public profile on the professional network."""


class ProfessionalProfileV4Item(Record):
    """A member of the professional network, with articles and recent activity."""


class RetailCategoryV4Item(Record):
    """A page of a category listing."""


class RetailSearchV4Item(Record):
    """A page of search results of the shop."""


class ShortvideoPhotoSearchV4Item(Record):
    """The photo posts in the results of a keyword search."""


class VideositeProfileItem(Record):
    """A channel of the video site, from its page alone."""


class VideositeProfileV3Item(Record):
    """A channel of the video site, with a page of its videos, shorts or live streams."""


def __getattr__(name: str) -> Any:
    if name in DATA_MODELS:
        return load_object(f"crawler.platforms.{DATA_MODELS[name]}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
