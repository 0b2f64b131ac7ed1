"""Simulated platforms: pages with invented data and the real platforms' structure, and each page's expected record.

The expected records are built without the code under test: no module here imports the packages that read pages.
"""
