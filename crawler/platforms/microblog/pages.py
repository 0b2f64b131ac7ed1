"""Microblog: page object for a profile's public page, which contains the newest posts as script literals. In
some pages, the objects are flat records that refer to each other.
"""

from __future__ import annotations

import binascii
import html
import itertools
import re
from base64 import b64decode, b64encode
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import attrs
from web_poet import field

from crawler.errors import TargetNotFound, TargetRestricted, quoted
from crawler.platforms.microblog.base import MicroblogPage, unavailable_error
from crawler.platforms.microblog.convert import FIELDS, Contradictions, date_text, merged, profile
from crawler.platforms.microblog.embed import DATA_SCRIPT
from crawler.platforms.microblog.js_literals import Literals
from crawler.platforms.microblog.payload import User, WebTimeline, WebUser, WebUsers
from crawler.platforms.microblog.timeline import Row, lacking_parts, owner_of, timeline_of
from crawler.platforms.microblog.urls import NamedQuery, named_queries
from crawler.platforms.page import missing_error
from crawler.reading.contract import Unread, contracts, invalid_error, steps, values
from crawler.reading.documents import dicts, dig, encode, linked_data, nonempty_strings, parsed_html
from crawler.reading.values import count, text

MAX_OBJECTS = 20_000
"""Maximum number of objects and lists in the nested data, in which an object may occur several times. Real pages have
about 500 objects."""
MAX_DEPTH = 60
"""Objects that are nested deeper are left out, so that a post that quotes itself ends. Real pages have up to 25
levels."""
_REF, _REFS = "__ref", "__refs"


class Records:
    """The page's objects. An object with an id (``__id``) is a record, to which other objects refer by this id.

    ``keys``: the keys of objects that ``nested`` keeps.
    """

    def __init__(self, dicts: list[dict[str, Any]], keys: frozenset[str]) -> None:
        self._keys = keys
        self._left = MAX_OBJECTS
        self.by_id: dict[str, dict[str, Any]] = {}
        for each in dicts:
            record_id = each.get("__id")
            if isinstance(record_id, str):
                known = self.by_id.get(record_id)
                self.by_id[record_id] = each if known is None else known | each

    def nested(self, value: Any, depth: int = 0) -> Any:
        """Return a value in which references to records are replaced by the records.

        A reference to a post that the page lacks is replaced by an object with the post's id and no post. Any other
        reference to a missing record is replaced by None.

        Raises:
            ExtractionFailed: the value contains more objects and lists than any real page.
        """
        if type(value) is list:
            self._count()
            return None if depth > MAX_DEPTH else [self.nested(each, depth + 1) for each in value]
        if type(value) is not dict:
            return value
        if _REF in value:
            ref = value[_REF]
            value = self.get(ref) if isinstance(ref, str) else None
            if value is None:
                kind, _, number = plain_id(ref).partition(":") if isinstance(ref, str) else ("", "", "")
                return {"rest_id": number, "result": None} if kind == "TweetResults" else None
        elif _REFS in value:
            return [self.nested({_REF: ref}, depth + 1) for ref in value[_REFS]] if type(value[_REFS]) is list else None
        self._count()
        if depth > MAX_DEPTH:
            return None
        return {key: self.nested(value[key], depth + 1) for key in self._keys.intersection(value)}

    def _count(self) -> None:
        self._left -= 1
        if self._left < 0:
            message = f"The page's data contains more than {MAX_OBJECTS:,} objects and lists."
            raise invalid_error(message, ["script"], "Too many objects", "too_many", reason="too_large")

    def get(self, record_id: str) -> dict[str, Any] | None:
        """Return the page's record with an id, or None. A missing user record is rebuilt from its fields' records."""
        found = self.by_id.get(record_id)
        return found if found is not None else self._rebuilt(record_id)

    def lacking(self, keys: Mapping[str, Sequence[str]]) -> list[Unread]:
        """Return the keys that all records of a type lack. ``keys``: the keys by type.

        A record has each key that its query selects, null if empty. Fewer keys may be selected for a quoted post than
        for a post in the timeline.
        """
        by_type: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for each in self.by_id.values():
            if isinstance(kind := each.get("__typename"), str):
                by_type[kind].append(each)
        return [
            Unread(f"{kind}.{key}", "missing", len(records), len(records))
            for kind, expected in keys.items()
            if (records := [each for each in by_type[kind] if kind != "Tweet" or "details" in each])
            for key in expected
            if not any(key in each for each in records)
        ]

    @cached_property
    def _parts(self) -> dict[str, dict[str, Any]]:
        """The records that are fields of another record, by the other record's id and the field's name.

        Their own ids are ``client:<id>:<field>``.
        """
        parts: dict[str, dict[str, Any]] = defaultdict(dict)
        for record_id, record in self.by_id.items():
            head, _, rest = record_id.partition(":")
            owner, _, field = rest.partition(":")
            if head == "client" and field and ":" not in field:
                parts[owner][field] = record
        return parts

    def _rebuilt(self, record_id: str) -> dict[str, Any] | None:
        kind, _, number = plain_id(record_id).partition(":")
        if kind == "UserResults":
            user_id = b64encode(f"User:{number}".encode()).decode()
            user = self.get(user_id)
            return None if user is None else {"__typename": "UserResults", "result": user}
        if kind == "User" and record_id in self._parts:
            return {"__typename": "User", "rest_id": number, **self._parts[record_id]}
        return None


def plain_id(record_id: str) -> str:
    """Decode a record's id from base64 to a form such as ``Tweet:1``. An id that is not base64 is returned unchanged.

    >>> plain_id("VXNlcjox"), plain_id("TweetResults:1")
    ('User:1', 'TweetResults:1')
    """
    try:
        return b64decode(record_id, validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        return record_id


SLOT = "$R["
"""Text that every script with data contains."""
STREAM = "GraphQLRequestStream."
"""Prefix of the type names of objects that contain the state of one of the page's queries."""
OWN_TIMELINE = "ProfileOriginals"
HANDLE_PATH = ("User", "core", "screen_name")
GONE_MARKS = ("looking for could not be found", "This account doesn’t exist", "This account doesn't exist")
HEAD_CHARACTERS = 200_000
"""The meta tags are within this number of characters. Real pages have them in the first 20,000."""
SUSPENDED_MARK = "Account suspended"

# A script's attributes and contents, or a comment. The contents end at the end tag, or with the page. The expression
# for them is several times faster than a lazy ".*?", which matches each character by itself.
_SCRIPT = re.compile(
    r"<!--(?:-?>|.*?(?:--!?>|\Z))|<(?i:script)\b([^<>]*+)>([^<]*+(?:<(?!/(?i:script)[\s/>])[^<]*+)*)(?:</(?i:script)|\Z)",
    re.DOTALL,
)
_LINKED_TYPE = re.compile(r"""\btype\s*=\s*["']?application/ld\+json""")

RECORD_KEYS = {
    "Tweet": (
        *("article", "counts", "media_entities2", "note_tweet", "quoted_tweet_results", "reply_to_results"),
        *("reply_to_user_results", "url_entities", "views"),
    ),
    "ApiCounts": ("bookmark_count",),
    "UserPrivacy": ("protected",),
    "ViewCountInfo": ("count",),
}
"""Keys of records by type. Each of the six recorded posts has the first ones (capture 15e277c749c3)."""
_KEYS = frozenset(
    step
    for root in (WebTimeline, WebUsers)
    for kind in contracts(root)
    for value in values(kind)
    for path in value.paths
    for step in steps(path)
    if isinstance(step, str)
) | {"__typename"}
"""The keys that are read from the page's objects."""
_ACTIONS = {"FollowAction": "followers_count", "SubscribeAction": "friends_count", "WriteAction": "statuses_count"}


@attrs.define(slots=False)
class ProfilePage(MicroblogPage):
    """A profile's public page: most profile fields and the newest few posts. The page has no cursor to a next page."""

    source: ClassVar[str] = "page"

    @classmethod
    def recognise(cls, body: str) -> bool:
        return body.lstrip().startswith("<") and DATA_SCRIPT not in body

    def validate_input(self) -> None:
        """Raise an error unless the response is the page of the requested profile.

        Raises:
            TargetNotFound: the handle does not exist.
            TargetRestricted: the account is suspended or withheld.
            UpstreamBlocked: a login page, a challenge, or a status that means a block.
            UpstreamRateLimited: the platform's rate limit is reached.
            UpstreamError: the request failed.
            ExtractionFailed: the page contains no data, another profile's data, or only posts that cannot be read.
        """
        self.raise_for_failures()
        if not self._objects and not self._linked:
            self._raise_for_messages(self.response.text)
            raise missing_error(
                "The page contains neither script literals nor linked data.", [f"script {SLOT}"], reason="no_data_block"
            )
        self._raise_for_unavailable_users()
        self._raise_for_broken_literals()
        handle = self.users[0].screen_name if self.users else self._linked_profile["screen_name"]
        self.raise_for_other_profile(handle or "")
        self._raise_for_unfinished_streams()
        self._raise_if_unrecognised()
        if not self.users and not self.records:
            message = "The page contains linked data, but neither a user object nor posts."
            raise missing_error(message, HANDLE_PATH, ["TimelineTimelineEntry"], reason="blind")
        if not handle:
            raise missing_error("The page contains no handle.", HANDLE_PATH, reason="no_user")

    # Fields

    @field
    def profile(self) -> dict[str, Any]:
        contradictions = Contradictions("user")
        found = merged([*(profile(user, contradictions) for user in self.users), self._linked_profile])
        for unnamed in (user for user in self._users if not user.screen_name):
            for name in unnamed.contradictions:
                contradictions.add(unnamed, name)
        self.unread += contradictions.unread()
        if larger := self._linked_profile["profile_image_url_https"]:
            found["profile_image_url_https"] = larger
        if None in (found["statuses_count"], found["profile_image_url_https"]):  # all that meta tags can add
            found = merged([found, self._meta_profile])
        return found if found["screen_name"] else {}

    @cached_property
    def users(self) -> Sequence[User]:
        """The page's user objects of the profile. A user that is only a post's author has fewer fields."""
        named = [each for each in self._users if (each.screen_name or "").casefold() == self.owner.casefold()]
        return named or self.authors[:1]

    @cached_property
    def owner(self) -> str:
        return (
            self.requested_handle
            or text(self._linked_profile["screen_name"])
            or self._meta.get("profile:username", "")
            or owner_of(self.rows)
            or self._only_handle
        )

    @property
    def _only_handle(self) -> str:
        """The handle of the only user on the page, or "" if there are several.

        ``owner`` falls back to this handle if nothing else on the page shows whose profile the page is.
        """
        handles = {(user.screen_name or "").casefold() for user in self._users} - {""}
        return handles.pop() if len(handles) == 1 else ""

    @cached_property
    def rows(self) -> list[Row]:
        if not self._instructions:
            return []
        encoded = encode(self._records.nested({"instructions": self._instructions}), what="timeline")
        timeline = timeline_of(self.payload(WebTimeline, encoded, what="timeline").instructions)
        self.unread += timeline.unread + (lacking_parts(self._instructions) if timeline.has_empty_parts else [])
        self.unread += self._records.lacking(RECORD_KEYS)
        return timeline.rows

    # The script literals

    @cached_property
    def queries(self) -> list[NamedQuery]:
        """The queries that the page's own script sends, with the ids that are valid now."""
        return named_queries(self._streams, self.owner, next((each.id for each in self.users if each.id), ""))

    @cached_property
    def _streams(self) -> list[dict[str, Any]]:
        """The state objects of the page's queries, whose results are streamed into the page."""
        return [each for each in self._objects if "kind" in each and text(each["kind"]).startswith(STREAM)]

    @cached_property
    def _objects(self) -> list[dict[str, Any]]:
        """All objects in the page's scripts, in page order."""
        return self._literals.dicts

    @cached_property
    def _scripts(self) -> list[tuple[str, str]]:
        """The attributes and the contents of each script element. Both are empty for a comment."""
        return _SCRIPT.findall(self.response.text)

    @cached_property
    def _literals(self) -> Literals:
        literals = Literals()
        for _, script in self._scripts:
            if SLOT in script:
                literals.read(script)
        return literals

    @cached_property
    def _records(self) -> Records:
        return Records(self._objects, _KEYS)

    @cached_property
    def _users(self) -> list[WebUser]:
        """The user objects in the page, the most complete one first."""
        found = sorted(self._by_type.get("User", []), key=len, reverse=True)
        encoded = encode(self._records.nested({"users": found}), what="users")
        return self.payload(WebUsers, encoded, what="users").users

    @cached_property
    def _by_type(self) -> dict[str, list[dict[str, Any]]]:
        """The objects by the names of their types."""
        found: dict[str, list[dict[str, Any]]] = {}
        for each in self._objects:
            if isinstance(name := each.get("__typename"), str):
                found.setdefault(name, []).append(each)
        return found

    @cached_property
    def _instructions(self) -> list[dict[str, Any]]:
        """The instructions of the profile's timeline.

        A page with nested objects contains the instructions themselves. From a page with records, the instructions are
        rebuilt: one record contains the list of entries and the ids of pinned entries.
        """
        timelines = self._by_type.get("TimelineTimeline", [])
        own = [each for each in timelines if text(each.get("id")).startswith(OWN_TIMELINE)]
        for timeline in own or timelines:
            refs = nonempty_strings(dig(timeline, "entries", "__refs"))
            pinned = set(nonempty_strings(timeline.get("pinned_entry_ids")))
            entries = [self._entry(ref) for ref in refs]
            pins = [each for each in entries if each["entry_id"] in pinned]
            return [
                *({"__typename": "TimelinePinEntry", "entry": each} for each in pins),
                {"__typename": "TimelineAddEntries", "entries": [each for each in entries if each not in pins]},
            ]
        lists = (dicts(each["instructions"]) for each in self._objects if "instructions" in each)
        return next(filter(None, lists), [])

    @cached_property
    def _entries(self) -> dict[str, dict[str, Any]]:
        """The records of the timeline's entries, by entry id. Of records with the same id, one with content is used."""
        found: dict[str, dict[str, Any]] = {}
        for each in self._by_type.get("TimelineTimelineEntry", []):
            entry_id = text(each.get("entry_id"))
            if entry_id not in found or not found[entry_id].get("content"):
                found[entry_id] = each
        return found

    def _entry(self, ref: str) -> dict[str, Any]:
        """Return the entry that a reference points to. If it has no content, the post is found by the entry's id."""
        entry_id = text((self._records.get(ref) or {}).get("entry_id")) or ref.rpartition(":")[2]
        found = self._entries.get(entry_id, {})
        kind, _, number = entry_id.partition("-")
        if found.get("content") or kind != "tweet" or self._records.get(f"TweetResults:{number}") is None:
            return {**found, "entry_id": entry_id}
        post = {"__typename": "TimelineTweet", "tweet_results": {"__ref": f"TweetResults:{number}"}}
        return {"entry_id": entry_id, "content": {"__typename": "TimelineTimelineItem", "content": post}}

    # Linked data and meta tags

    @cached_property
    def _linked(self) -> dict[str, Any]:
        """The profile from the page's linked data (JSON-LD), empty if the page has none."""
        nodes, _ = linked_data(script for attributes, script in self._scripts if _LINKED_TYPE.search(attributes))
        return next((node for node in nodes if node["@type"] == "ProfilePage"), {})

    @cached_property
    def _linked_profile(self) -> dict[str, Any]:
        person = dig(self._linked, "mainEntity")
        found: dict[str, Any] = dict.fromkeys(FIELDS)
        found["created_at"] = date_text(self._linked.get("dateCreated"))
        for name, path in {
            "description": ("description",),
            "location": ("homeLocation", "name"),
            "name": ("name",),
            "profile_image_url_https": ("image", "contentUrl"),
            "screen_name": ("additionalName",),
        }.items():
            found[name] = html.unescape(text(dig(person, *path))) or None
        found["screen_name"] = (found["screen_name"] or "").removeprefix("@") or None
        same = dig(person, "sameAs")
        found["url"] = text(same) or next(iter(nonempty_strings(same)), None)
        statistics = (dicts(dig(person, name)) for name in ("interactionStatistic", "agentInteractionStatistic"))
        for statistic in itertools.chain.from_iterable(statistics):
            kind = statistic.get("interactionType")
            action = text(kind if isinstance(kind, str) else dig(kind, "@type")).rpartition("/")[2]
            if action in _ACTIONS:
                found[_ACTIONS[action]] = count(statistic.get("userInteractionCount"))
        return found

    @cached_property
    def _meta(self) -> dict[str, str]:
        """The contents of the page's meta tags by name. The first of several with the same name is used."""
        tags = reversed(parsed_html(self.response.text[:HEAD_CHARACTERS]).css("meta[content]"))
        names = ((each.xpath("@property").get() or each.xpath("@name").get(""), each) for each in tags)
        return {name: each.xpath("@content").get("") for name, each in names}

    @cached_property
    def _meta_profile(self) -> dict[str, Any]:
        """The profile fields in the meta tags for link previews. Rounded numbers ("1.2K") are ignored."""
        labels = {self._meta.get(f"twitter:label{n}"): self._meta.get(f"twitter:data{n}") for n in (1, 2)}
        found: dict[str, Any] = dict.fromkeys(FIELDS)
        found["statuses_count"] = count(labels.get("Posts"))
        found["profile_image_url_https"] = self._meta.get("og:image") or None
        return found

    # Validation

    def raise_for_walls(self) -> None:
        """Raise an error for a login page, a challenge, a rate limit, or a message in place of the profile."""
        self._raise_for_messages(self.response.text)

    def _raise_for_messages(self, markup: str) -> None:
        """Raise an error if the page shows a message instead of a profile. The class of the error depends on the
        message.

        The challenge is checked last, because every page has a challenge script.
        """
        words = html.unescape(markup)
        if mark := next((mark for mark in GONE_MARKS if mark in words), None):
            raise TargetNotFound("The profile does not exist.", details=quoted(mark), reason="not_found")
        if SUSPENDED_MARK in words:
            raise TargetRestricted("The account is suspended.", details=quoted(SUSPENDED_MARK), reason="suspended")
        super().raise_for_walls()

    def _raise_for_unavailable_users(self) -> None:
        if self.users or self._linked:
            return
        for each in self._by_type.get("UserUnavailable", []):
            reason = text(each.get("reason")) or text(each.get("unavailable_reason"))
            raise unavailable_error(reason, "UserUnavailable")
        self._raise_for_messages(_SCRIPT.sub("", self.response.text))
        seen = [user.screen_name for user in self._users if user.screen_name]
        if seen:
            self.raise_for_other_profile(seen[0])
        raise missing_error("The page contains no user object.", HANDLE_PATH, reason="no_user")

    def _raise_for_broken_literals(self) -> None:
        """Raise an error if the page ends in the middle of its data."""
        if not self._literals.complete:
            message, place = "The page's data ends in the middle of a value.", [f"script {SLOT}"]
            raise invalid_error(message, place, "Unclosed value", "literal_invalid", reason="broken_data_block")

    def _raise_for_unfinished_streams(self) -> None:
        """Raise an error if the page has no posts because the result of one of its queries is missing."""
        states = {(text(each.get("key")), text(each.get("kind")).removeprefix(STREAM)) for each in self._streams}
        started, completed = ({key for key, state in states if state == kind} for kind in ("Started", "Completed"))
        unfinished = started - completed
        if unfinished and not self.rows:
            paths = ([f"{STREAM}Completed", key[:60]] for key in sorted(unfinished))
            message = "The page ends before the results of its queries arrive."
            raise missing_error(message, *paths, reason="unfinished_stream")

    def _raise_if_unrecognised(self) -> None:
        """Raise an error if the page has posts but no timeline that lists them: the page's structure has changed."""
        posts = [each for each in self._objects if "details" in each and "counts" in each and "views" in each]
        if posts and not self.rows:
            raise missing_error(
                "The page contains posts, but no timeline that lists them.", ["TimelineTimelineEntry"], reason="blind"
            )
        self.raise_if_no_row_is_understood()
