"""Simulated platforms: invented data with the page structure of the real ones, and the expected record of each page.

The records are an independent check: nothing here imports the packages that read pages (platforms, reading, spiders).
"""
