"""The project's Scrapy commands. The setting ``COMMANDS_MODULE`` makes Scrapy load them."""
