"""Checks of live targets (``scrapy probe``), and reading saved responses again, to suggest changed declarations."""
