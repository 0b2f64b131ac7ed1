"""Simulated platforms: pages with invented data and the real platforms' structure, and each page's expected record.

The expected records are made without the code under test: nothing here imports platforms, reading or spiders.
"""
