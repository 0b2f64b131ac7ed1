"""The words of captures that fixtures keep, by rule: enumerated values, interface words, the platforms' hosts."""

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
    metadatabadgerenderer issued credential see activity ft pm am utc gmt count polaris hqdefault format
    """.split()
)
"""Words of the platforms' interfaces in texts that are read: units of counts and times, months, what a member did."""

ID_WORDS = {
    "microblog": frozenset(
        ("client", "root", "urt", "server", "tweet", "tweetresults", "user", "userresults", "cursor")
    )
}
"""Words in the platforms' own ids of records and rows, by which page objects tell them apart."""

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
"""Messages of the platforms by which failures are told apart (the notes on each platform list them)."""

HOSTS = {
    "microblog": ("x.com", "twitter.com", "twimg.com", "t.co"),
    "photoapp": ("instagram.com", "cdninstagram.com", "fbcdn.net", "facebook.com"),
    "professional": ("linkedin.com", "licdn.com"),
    "retail": ("walmart.com", "walmartimages.com"),
    "shortvideo": ("tiktok.com", "tiktokcdn.com", "tiktokv.com", "tiktokcdn-us.com", "tiktokcdn-eu.com"),
    "videosite": ("youtube.com", "youtu.be", "ytimg.com", "ggpht.com", "googleusercontent.com", "googlevideo.com"),
}
"""The platforms' own hosts. All other hosts become invented names below ``.example``."""
HOST_LABELS = frozenset({"static", "media", "consent", "scontent", "www", "m", "i", "pbs", "abs", "fna", "us"})
"""Names below the platforms' hosts that are kept."""
COMMON_HOSTS = ("schema.org", "w3.org", "google.com", "gstatic.com")

ENUM_KEY = re.compile(
    r"(?:type|typename|kind|style|status|enum|layout|format|mime|lang|language|locale|rel|reason|direction|mode|sort|codec"
    r"|quality|charset|version|routename|panelidentifier)s?$|__is[A-Z]\w+$",
    re.IGNORECASE,
)
"""Names of keys and attributes whose values are enumerated."""
ENUM_NUMBER = re.compile(rf"(?:{ENUM_KEY.pattern}|code|page|state)$", re.IGNORECASE)
"""Names of keys whose small numbers are enumerated."""
IDENTITY_KEY = re.compile(
    r"(?:screen_?name|user_?name|full_?name|nick_?name|short_?code|code|unique_?id|handle|name|title|text|caption|desc"
    r"|description|signature|bio|location|city|id|pk|url|uri)$",
    re.IGNORECASE,
)
"""Names of keys whose values name or describe somebody. No text of a capture may remain there."""
ENUM_VALUE = re.compile(r"[A-Za-z][A-Za-z_./:+-]{0,60}[0-9]{0,2}")
CONSTANT = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|UNKNOWN|RETIRED")
LOCALE = re.compile(r"[a-z]{2}(?:[-_](?:[A-Z]{2}|[a-z]{2}|[A-Z][a-z]{3}))?|[A-Z]{2}")
"""Languages, countries and other codes of two letters."""


@cache
def literals(platform: str) -> frozenset[str]:
    """The string literals of the platform's package and of the shared reading helpers, without docstrings, and its ids.

    They are the keys, types, marks and path segments that a page object compares: content has none of them.
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
    """The integer literals of the platform's package: codes and kinds that a page object compares."""
    root = Path(crawler.__file__).parent / "platforms" / platform
    trees = (ast.parse(file.read_text(encoding="utf-8")) for file in root.glob("*.py"))
    return frozenset(
        node.value
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and type(node.value) is int and node.value < 10_000
    )


def is_enumerated(platform: str, key: str, value: str) -> bool:
    """Whether a text is an enumerated word: by its form, by its key, or because the page objects know it."""
    if re.search(r"\d{5}", value):
        return False
    if CONSTANT.fullmatch(value) or LOCALE.fullmatch(value) or value in literals(platform):
        return True
    return bool(ENUM_KEY.search(key) and ENUM_VALUE.fullmatch(value))


def is_identity(key: str) -> bool:
    """Whether a key's values name or describe somebody, rather than a type."""
    return bool(IDENTITY_KEY.search(key)) and not ENUM_KEY.search(key)


def is_word_of_platform(platform: str, text: str) -> bool:
    """Whether a text has no other words than those of the platform and its interface, or is a constant."""
    found = re.findall(r"[^\W\d_]{3,}", text.lower())
    is_code = CONSTANT.fullmatch(text) or LOCALE.fullmatch(text) or text in literals(platform)
    return bool(is_code) or kept_words(platform).issuperset(found)


def is_kept(platform: str, word: str) -> bool:
    """Whether a word is kept in any text: a word of the interface, or a name that the page objects compare."""
    known = len(word) > 5 and not word.islower() and word in literals(platform)
    return known or word.casefold() in INTERFACE | ID_WORDS.get(platform, frozenset())


@cache
def kept_words(platform: str) -> frozenset[str]:
    """All words that texts of fixtures may keep, in lower case."""
    known = (*INTERFACE, *PHRASES, *HOSTS[platform], *COMMON_HOSTS, *HOST_LABELS, *literals(platform), "example")
    known += tuple(ID_WORDS.get(platform, ()))
    return frozenset(word for each in known for word in re.findall(r"[^\W\d_]+", each.lower()))
