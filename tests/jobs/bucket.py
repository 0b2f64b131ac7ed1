"""A file system like a bucket: a file exists completely or not at all, and some uploads fail."""

from __future__ import annotations

import os
import random
import shutil
import time
from pathlib import Path
from typing import Any, ClassVar

import fsspec
from fsspec.spec import AbstractFileSystem

FAIL = "BUCKET_FAILURES"
"""The environment variable with the share of uploads that fail, about half of them after the file was stored."""
VERSIONS = "versions"
"""The name of the folder, beside a stored file, that keeps each version of it."""


class Bucket(AbstractFileSystem):  # type: ignore[misc]  # fsspec has no types
    """Stores the files below a local folder."""

    protocol: ClassVar[str] = "bucket"
    cachable: ClassVar[bool] = False

    def put_file(self, lpath: str, rpath: str, **_: Any) -> None:
        """Upload a file."""
        chance, share = random.SystemRandom(), float(os.environ.get(FAIL, "0"))
        target = Path(rpath)
        if chance.random() < share / 2:
            raise OSError("the connection was closed")
        versions = target.parent / VERSIONS
        versions.mkdir(parents=True, exist_ok=True)
        version = versions / f"{target.name}.{time.time_ns()}"
        shutil.copyfile(lpath, f"{version}.tmp")
        Path(f"{version}.tmp").rename(version)
        shutil.copyfile(version, f"{target}.tmp")
        Path(f"{target}.tmp").rename(target)
        if chance.random() < share / 2:
            raise OSError("the answer was lost")


fsspec.register_implementation("bucket", Bucket, clobber=True)

IMPORT = f"import {__name__}"
"""Code that registers the file system in a process."""
