"""Simulated platforms: invented data in the real page structure, with the expected record of each page.

The records are an independent check: nothing here imports the packages that read pages (platforms, reading, spiders).
"""
