"""Mistakes in copies of the project's modules, which the tests should notice. See ``__main__.py``."""
