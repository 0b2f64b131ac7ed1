"""Compares the structure of whole recorded pages with that of the sandbox's pages of the same form.

``python -m tests.whole_pages`` prints a table; with the names of forms, also the paths that are missing on either side
(``CONTRIBUTING.md``, *The sandbox's pages*).
"""
