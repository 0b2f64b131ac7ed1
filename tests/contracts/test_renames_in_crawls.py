"""Keys that a platform renames between two pages of one crawl: the crawl counts each path that is unread."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.crawls import crawl

RENAMES = {
    "microblog": {"media": "media_v2", "quoted_status_result": "quoted_post_result", "favorite_count": "like_count"}
}


def test_keys_that_are_renamed_in_the_middle_of_a_crawl_are_reported(tmp_path: Path) -> None:
    """The sandbox renames keys after ten pages. Without the keys, the posts of the later pages have no picture or
    quoted post, although all twelve pages have data.
    """
    options = ("-a", "username=quiet_harbor", "-a", "max_pages=12", "-s", f"SANDBOX_RENAMES={json.dumps(RENAMES)}")
    _, feed, failures, log = crawl(tmp_path, *options, spider="microblog")
    unread = re.findall(r"unread/\w+/(\S+)': \d", log)
    assert (len(feed), failures) == (12, [])
    missing = {key for key in ("extended_entities", *RENAMES["microblog"]) if not any(key in path for path in unread)}
    assert missing == set()
