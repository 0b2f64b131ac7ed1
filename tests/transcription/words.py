"""Decides which words of a capture stay unchanged in its fixture: enumerated values, labels of the interface, hosts."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import crawler

MONTHS = "january february march april may june july august september october november december"
DAYS = "mon tue wed thu fri sat sun"
INTERFACE = frozenset(
    f"""{MONTHS} {" ".join(month[:3] for month in MONTHS.split())} sept {DAYS} present
    view views watching waiting subscriber subscribers video videos follower followers connection connections
    streams ago second seconds minute minutes hour hours day days week weeks month months year years
    streamed premieres premiered scheduled joined no comments like likes liked posted shared reposted commented by on
    this reacted thousand million billion lakh crore more options from now was up to play short shorts live upcoming
    metadatabadgerenderer issued credential see recent activity ft pm am utc gmt count polaris hqdefault format
    """.split()
)
"""Interface words in texts that page objects read: units of counts and times, months, actions such as "liked"."""

ID_WORDS = {
    "microblog": frozenset(
        ("client", "root", "urt", "server", "tweet", "tweetresults", "user", "userresults", "cursor")
    )
}
"""Words in the platforms' ids of records and rows. Page objects tell kinds of ids apart by them."""

PHRASES = (
    "Robot or human?",
    "Profile Not Found",
    "could not be found",
    "Before you continue to",
    "Our systems have detected unusual traffic",
    "unusual traffic",
    "Page Not Found",
    "Account suspended",
    "Experience: ",
    "Experience & Education",
    "Age-restricted content",
    "People also viewed",
    "Error 404 (Not Found)!!1",
    "window.onload",
    "ccookie=",
    "Join LinkedIn",
    "Sign Up",
    "Comments are turned off.",
    "This channel has no videos.",
    "The playlist does not exist.",
    "This channel does not exist.",
    "This account has been terminated",
    "This channel was removed because it violated our Community Guidelines.",
    "for a violation of YouTube's Terms of Service.",
    "copyright infringement",
    "Requested entity was not found.",
    "Request contains an invalid argument.",
    "Sign in to view this channel",
    "User is suspended",
    "This Post is from a suspended account.",
    "Learn more",
)
"""Texts by which page objects tell failures and parts of pages apart."""

HOSTS = {
    "microblog": ("x.com", "twitter.com", "twimg.com", "t.co"),
    "photoapp": ("instagram.com", "cdninstagram.com", "fbcdn.net", "facebook.com"),
    "professional": ("linkedin.com", "licdn.com"),
    "retail": ("walmart.com", "walmartimages.com"),
    "shortvideo": ("tiktok.com", "tiktokcdn.com", "tiktokv.com", "tiktokcdn-us.com", "tiktokcdn-eu.com"),
    "videosite": ("youtube.com", "youtu.be", "ytimg.com", "ggpht.com", "googleusercontent.com", "googlevideo.com"),
}
"""The platforms' own hosts. Hosts not in these or ``COMMON_HOSTS`` are replaced by names that end in ``.example``."""
HOST_LABELS = frozenset({"static", "media", "consent", "scontent", "www", "m", "i", "pbs", "abs", "fna", "us"})
"""Subdomains of the platforms' hosts that are kept."""
COMMON_HOSTS = ("schema.org", "w3.org", "google.com", "gstatic.com")

ENUM_KEY = re.compile(
    r"(?:type|typename|kind|style|status|enum|layout|format|mime|lang|language|locale|rel|reason|direction|mode|sort|codec"
    r"|quality|charset|version|routename|panelidentifier)s?$|__is[A-Z]\w+$",
    re.IGNORECASE,
)
"""Matches the names of keys and attributes with enumerated values."""
ENUM_NUMBER = re.compile(rf"(?:{ENUM_KEY.pattern}|code|page|state)$", re.IGNORECASE)
"""Matches the names of keys whose small numbers are enumerated values."""
IDENTITY_KEY = re.compile(
    r"(?:screen_?name|user_?name|full_?name|nick_?name|short_?code|code|unique_?id|handle|name|title|text|caption|desc"
    r"|description|signature|bio|location|city|id|pk|url|uri)$",
    re.IGNORECASE,
)
"""Matches the names of keys whose values name or describe a person. No original text may remain in these values."""
ENUM_VALUE = re.compile(r"[A-Za-z][A-Za-z_./:+-]{0,60}[0-9]{0,2}")
CONSTANT = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|UNKNOWN|RETIRED")
LOCALE = re.compile(r"[a-z]{2}(?:[-_](?:[A-Z]{2}|[a-z]{2}|[A-Z][a-z]{3}))?|[A-Z]{2}")
"""Matches languages, countries and other two-letter codes."""


@cache
def literals(platform: str) -> frozenset[str]:
    """Return the string literals (except docstrings) in the platform's package and in crawler/reading, and the
    platform's ids.

    These are the keys, types, markers and path segments that page objects compare. They are not content.
    """
    root = Path(crawler.__file__).parent
    found: set[str] = set()
    for file in (*(root / "platforms" / platform).glob("*.py"), *(root / "reading").glob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
                found |= {node.value, *re.split(r"[/?=&.|()^$\\]+", node.value)}
    ids = root / "platforms" / platform / "ids.json"
    if ids.exists():
        found |= set(re.findall(r'"([^"\s\\]+)"', ids.read_text(encoding="utf-8")))
    return frozenset(each for each in found if each and not re.search(r"\d{5}", each))


@cache
def numbers(platform: str) -> frozenset[int]:
    """Return the integer literals below 10,000 in the platform's package: codes and types that page objects compare."""
    root = Path(crawler.__file__).parent / "platforms" / platform
    trees = (ast.parse(file.read_text(encoding="utf-8")) for file in root.glob("*.py"))
    return frozenset(
        node.value
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and type(node.value) is int and node.value < 10_000
    )


def is_enumerated(platform: str, key: str, value: str) -> bool:
    """Return whether a text is an enumerated value: by its format, by its key, or because page objects compare it."""
    if re.search(r"\d{5}", value):
        return False
    if CONSTANT.fullmatch(value) or LOCALE.fullmatch(value) or value in literals(platform):
        return True
    return bool(ENUM_KEY.search(key) and ENUM_VALUE.fullmatch(value))


def is_identity(key: str) -> bool:
    """Return whether the values of a key name or describe a person, and are not enumerated values."""
    return bool(IDENTITY_KEY.search(key)) and not ENUM_KEY.search(key)


def is_word_of_platform(platform: str, text: str) -> bool:
    """Return whether a text is a constant, locale or literal of the code, or has only words that fixtures may keep."""
    found = re.findall(r"[^\W\d_]{3,}", text.lower())
    is_code = CONSTANT.fullmatch(text) or LOCALE.fullmatch(text) or text in literals(platform)
    return bool(is_code) or kept_words(platform).issuperset(found)


def is_kept(platform: str, word: str) -> bool:
    """Return whether a word stays unchanged in every text of a fixture.

    Such a word is an interface word, a word of the platform's ids, or a literal in the platform's code that has more
    than five characters and is not in lower case.
    """
    known = len(word) > 5 and not word.islower() and word in literals(platform)
    return known or word.casefold() in INTERFACE | ID_WORDS.get(platform, frozenset())


@cache
def kept_words(platform: str) -> frozenset[str]:
    """Return all words, in lower case, that fixtures may keep in texts."""
    known = (*INTERFACE, *PHRASES, *HOSTS[platform], *COMMON_HOSTS, *HOST_LABELS, *literals(platform), "example")
    known += tuple(ID_WORDS.get(platform, ()))
    return frozenset(word for each in known for word in re.findall(r"[^\W\d_]+", each.lower()))
