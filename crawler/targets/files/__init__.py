"""Targets files. ``source.py`` finds and reads the files; each format has a module of its own."""
