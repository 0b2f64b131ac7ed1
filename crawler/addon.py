"""The Scrapy add-on that gives this project's spiders their settings and components, also in other projects.

Spiders of other projects keep their own settings and Scrapy's components.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy.exceptions import UsageError
from scrapy.settings import default_settings
from scrapy_poet import Addon as PageObjects  # type: ignore[attr-defined]  # the package has no __all__
from scrapy_poet import InjectionMiddleware  # type: ignore[attr-defined]  # the package has no __all__

from crawler import settings as project
from crawler.components import install, stay_local
from crawler.settings import Settings
from crawler.spiders.base import PlatformSpider

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

OF_THE_PROJECT = frozenset(
    {
        *("ADDONS", "BOT_NAME", "COMMANDS_MODULE", "SPIDER_LOADER_CLASS", "SPIDER_MODULES"),
        *("ASYNCIO_EVENT_LOOP", "EXTENSIONS_BASE", "LOG_LEVEL", "REMOTE_CONTROL_ENABLED", "TELNETCONSOLE_ENABLED"),
    }
)
"""Settings in ``crawler/settings.py`` that the add-on does not set: they concern the project or the whole process."""


class Addon:
    """Gives this project's spiders the settings and components that they need: ``ADDONS = {"crawler.Addon": 500}``.

    Settings of the user's project, of the spider and of the command line override those of the add-on.
    """

    def __init__(self, spider: type[Spider]) -> None:
        self.spider = spider

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler.spidercls)

    @classmethod
    def update_pre_crawler_settings(cls, settings: BaseSettings) -> None:
        """Set the defaults of settings that Scrapy does not have. Spiders read them before ``update_settings()``."""
        for name, value in _settings().items():
            if not hasattr(default_settings, name):
                settings.set(name, value, priority="addon")

    def update_settings(self, settings: BaseSettings) -> None:
        """Set the spider's settings and components, if it is a spider of this project or a subclass of one.

        With ``SANDBOX`` or ``PLATFORM_ORIGINS``, set the download handlers of any spider.
        """
        if issubclass(self.spider, PlatformSpider):
            self._update_own(settings)
        if settings.getbool("SANDBOX") or settings.getdict("PLATFORM_ORIGINS"):
            stay_local(settings)

    @staticmethod
    def _update_own(settings: BaseSettings) -> None:
        for_spiders = {name: Settings.model_fields[name].default for name in Settings.only_for_spiders}
        settings.setdict(_settings() | for_spiders, priority="addon")
        install(settings)
        PageObjects().update_settings(settings)
        # PlannedInjection replaces InjectionMiddleware. Because of None, scrapy-poet's add-on does not add it later.
        settings.set_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", InjectionMiddleware, None)
        _use_zyte(settings)


def _settings() -> dict[str, Any]:
    """Return the settings in ``crawler/settings.py`` that this project's spiders need in any project."""
    return {name: value for name, value in vars(project).items() if name.isupper() and name not in OF_THE_PROJECT}


def _use_zyte(settings: BaseSettings) -> None:
    """Let Zyte API download the pages if ``ZYTE_API_KEY`` is set, so that platforms do not see this machine's address.

    With ``SANDBOX``, no request is sent to it.

    Raises:
        UsageError: the key is set, but the extra ``zyte`` is not installed, or ``PLATFORM_ORIGINS`` is set, too.
    """
    if not settings.get("ZYTE_API_KEY") or settings.getbool("SANDBOX"):
        return
    if settings.getdict("PLATFORM_ORIGINS"):
        raise UsageError("ZYTE_API_KEY and PLATFORM_ORIGINS exclude each other: Zyte API reaches no local servers")
    try:
        from scrapy_zyte_api import Addon as ZyteApi  # noqa: PLC0415  # slow, needs the extra "zyte"

        ZyteApi().update_settings(settings)
        settings["DOWNLOAD_HANDLERS"]["http"] = "crawler.downloads.zyte.HttpHandler"
        settings["DOWNLOAD_HANDLERS"]["https"] = "crawler.downloads.zyte.HttpsHandler"
    except ImportError as error:
        raise UsageError("ZYTE_API_KEY needs scrapy-zyte-api[provider]: install the extra 'zyte'") from error
    settings["DOWNLOADER_MIDDLEWARES"]["crawler.downloads.zyte.Refusals"] = (
        989  # only ThrottleMiddleware is nearer to the network than this middleware
    )
