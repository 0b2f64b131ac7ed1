"""The project's own Scrapy commands, which Scrapy loads by the setting ``COMMANDS_MODULE``."""
