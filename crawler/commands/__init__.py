"""The project's own Scrapy commands, found by Scrapy through the setting ``COMMANDS_MODULE``."""
