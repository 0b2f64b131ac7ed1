"""Checks of live targets (``scrapy probe``), and reading kept responses again, to repair names of changed payloads."""
