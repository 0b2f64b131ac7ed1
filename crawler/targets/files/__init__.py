"""Targets files. ``source.py`` finds and reads the files; each format has a module of its own."""

from crawler.targets.files.find import read_json_objects
from crawler.targets.files.source import FileSource, Shard
from crawler.targets.files.text import check_encoding

__all__ = ["FileSource", "Shard", "check_encoding", "read_json_objects"]
