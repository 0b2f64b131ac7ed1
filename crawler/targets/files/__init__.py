"""Targets files. ``source.py`` finds the files, and selects the module that reads their format."""
