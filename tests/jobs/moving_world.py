"""A world that moves by a seeded script, day by day, and what a comparison of two days must report.

Each record is that of the sandbox for a target, with rows and values that the script changes. The script keeps its own
books: when a row was made and deleted, and each value of each day. ``World.expected`` reads only these books.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from crawler.errors import TargetNotFound, UpstreamBlocked, quoted
from crawler.jobs.job import Claim, Finished, Followup, InputLine
from crawler.registry import find_scraper
from crawler.sandbox.microblog.site import Site as Microblog
from crawler.sandbox.photoapp.site import Site as PhotoApp
from crawler.sandbox.professional.site import Site as Professional
from crawler.sandbox.retail.site import Site as Shop
from crawler.sandbox.videosite.site import Site as VideoSite
from crawler.targets.target import followup_key, target_key

DAY = 86_400
NOW = 1_790_000_000
RENAMED: dict[str, Any] = {"source": "listing", "code": "EXTRACTION_FAILED", "reason": "unread"}
RENAMED |= {"path": "items[].averageRating", "cause": "missing", "rows": 1, "of": 1, "loses_rows": False, "names": []}
RATING = "rating.average"
Path = str
Expected = set[tuple[Any, ...]]
"""(change, id of the target, baseline day, key of the row, path of the value or code, old, new)."""


def put(data: dict[str, Any], path: Path, value: Any) -> None:
    """Set a value at a dotted path, whose numbers are positions in lists."""
    *parents, last = path.split(".")
    found: Any = data
    for each in parents:
        found = found[int(each) if isinstance(found, list) else each]
    found[last] = value


def at(data: dict[str, Any], path: Path) -> Any:
    """Return the value at a dotted path."""
    found: Any = data
    for each in path.split("."):
        found = found[int(each) if isinstance(found, list) else each]
    return found


@dataclass
class Thing:
    """A record or a row: values that the script changes, counts that wobble, and values without a meaning."""

    key: str
    shape: dict[str, Any]
    values: Mapping[Path, Callable[[random.Random], Any]]
    counts: tuple[Path, ...]
    noise: tuple[Path, ...]
    also: Mapping[Path, tuple[Path, ...]] = field(default_factory=dict)
    """The path of a value -> further paths with the same value."""
    made: int = 0
    """The day on which the thing was made."""
    deleted: int | None = None
    time: int = 0
    days: dict[int, dict[str, Any]] = field(default_factory=dict)
    """Day -> the values and counts as they were shown on this day."""
    truth: dict[Path, Any] = field(default_factory=dict)

    def move(self, day: int, chance: random.Random, *, often: float) -> None:
        """Change some values, let some counts grow by half, and note the values of the day."""
        for path, invent in self.values.items():
            if path not in self.truth or chance.random() < often:
                self.truth[path] = invent(chance)
        for path in self.counts:
            if path not in self.truth:
                self.truth[path] = chance.randint(1_000, 900_000)
            elif chance.random() < often:
                self.truth[path] += self.truth[path] // 2
        self.days[day] = {path: self._shown(path, chance) for path in (*self.values, *self.counts)}

    def _shown(self, path: Path, chance: random.Random) -> Any:
        value = self.truth[path]
        return round(value * chance.uniform(0.98, 1.02)) if path in self.counts else value

    def show(self, day: int, chance: random.Random, *, without: tuple[Path, ...] = ()) -> dict[str, Any]:
        """Return the data of a day, with other noise each time."""
        data = deepcopy(self.shape)
        for path, value in self.days[day].items():
            for each in (path, *self.also.get(path, ())):
                put(data, each, None if path in without else value)
        for path in self.noise:
            put(data, path, f"https://cdn.example/{chance.getrandbits(64):x}?signature={chance.getrandbits(64):x}")
        return data

    def changes(self, before: int, now: int, unread: dict[Path, int | None]) -> Iterator[tuple[Any, ...]]:
        """Yield what changed between two days. ``unread``: path -> another day to compare with, None for no day."""
        for path, new in self.days[now].items():
            base = unread.get(path, before)
            if base is not None and base in self.days:
                old = self.days[base][path]
                is_changed = abs(new - old) > 0.2 * max(new, old) if path in self.counts else new != old
                if is_changed:
                    for each in (path, *self.also.get(path, ())):
                        yield base, each, old, new


@dataclass
class Place:
    """A target: its record, and its rows."""

    id: str
    scraper: str
    params: dict[str, Any]
    record: Thing
    rows: list[Thing]
    """The newest first."""
    path: str = ""
    """The dotted path of the list of rows in the record. "": the scraper has no rows."""
    make: Callable[[int, random.Random], Thing] | None = None
    """Makes a new row."""
    shown: int = 1_000
    """The number of rows that the record shows."""
    is_search: bool = False
    """Whether the platform chooses the rows that it shows."""
    pages: int = 1
    states: dict[int, str] = field(default_factory=dict)
    """Day -> data, gone, or the code of a failure. A day on which the file does not name the target has no state."""
    views: dict[int, list[Thing]] = field(default_factory=dict)
    """Day -> the rows that the record shows."""

    @property
    def key(self) -> bytes:
        return target_key(self.scraper, self.params)

    @property
    def platform(self) -> str:
        return find_scraper(self.scraper).platform

    def move(self, day: int, chance: random.Random) -> None:
        """Change the record and its rows, and make and delete rows."""
        self.record.move(day, chance, often=0.2)
        alive = [each for each in self.rows if each.deleted is None]
        if day and self.make:
            for each in chance.sample(alive, k=min(len(alive) - 12, chance.randint(0, 3))):
                each.deleted = day
            pinned, others = self.rows[:1], self.rows[1:]
            new = [self.make(day, chance) for _ in range(chance.randint(0, 2))][::-1]
            self.rows = pinned + new + others if self.path == "data.main" else new + self.rows
        for each in self.rows:
            if each.deleted is None:
                each.move(day, chance, often=0.05)
        alive = [each for each in self.rows if each.deleted is None]
        self.views[day] = chance.sample(alive, self.shown) if self.is_search else alive[: self.shown]

    def data(self, day: int, chance: random.Random, page: int, *, renamed: bool) -> dict[str, Any]:
        """Return the record of a page."""
        data = self.record.show(day, chance)
        if self.path:
            size = -(-len(self.views[day]) // self.pages)
            shown = self.views[day][page * size : (page + 1) * size]
            rows = [each.show(day, chance, without=(RATING,) if renamed else ()) for each in shown]
            if self.scraper.startswith("videosite"):
                for row in rows[15:]:
                    row["published_date"] = None
            if self.is_search and rows:  # an advertisement of a product that is also a row, and one of another product
                rows.insert(2, rows[-1] | {"is_sponsored": True, "name": "Buy now"})
                rows.append(rows[0] | {"is_sponsored": True, "item_id": f"{chance.getrandbits(30)}"})
            put(data, self.path, rows)
        return data

    def expected(self, day: int, kept: list[int], renamed: set[int]) -> Iterator[tuple[Any, ...]]:
        """Yield what a comparison of a day with the kept days, the newest first, must report."""
        none = ("", "", None, None)
        state, named = self.states.get(day), [each for each in kept if each in self.states]
        if state is None:
            if kept[0] in self.states:
                yield "removed", self.id, kept[0], *none
            return
        good = [each for each in named if self.states[each] == "data"]
        known = next((each for each in named if self.states[each] in {"data", "gone"}), None)
        if not named:
            yield "added", self.id, None, *none
        elif state not in {"data", "gone"} or known is None:
            codes = {"data": "no_baseline", "gone": TargetNotFound.code}
            yield "not_compared", self.id, None, "", codes.get(state, state), None, None
        elif state == "gone":
            if self.states[known] == "data":
                yield "target_gone", self.id, known, *none
        else:
            if self.states[known] == "gone":
                yield "target_back", self.id, known, *none
            if good:
                yield from self._expected(day, good, renamed)

    def _expected(self, day: int, good: list[int], renamed: set[int]) -> Iterator[tuple[Any, ...]]:
        before = good[0]
        readable = next((each for each in good if each not in renamed), None) if day not in renamed else None
        unread: dict[Path, int | None] = {RATING: readable} if day in renamed or before in renamed else {}
        for base, path, old, new in self.record.changes(before, day, {}):
            yield "changed", self.id, base, "", path, old, new
        then, now = self.views[before], self.views[day]
        for each in now:
            if each in then:
                for base, path, old, new in each.changes(before, day, unread):
                    if each in self.views[base]:
                        yield "changed", self.id, base, each.key, path, old, new
            elif self.is_search or each.made > before:
                yield "appeared", self.id, before, each.key, "", None, None
        for each in self._deleted(day) if not self.is_search else ():
            if each in then:
                yield "gone", self.id, before, each.key, "", None, None

    def _deleted(self, day: int) -> list[Thing]:
        """Return the deleted rows that the listing of a day would show."""
        oldest = min((row.time for row in self.views[day][1:]), default=0)
        deleted = [each for each in self.rows if each.deleted is not None and each.deleted <= day]
        return [each for each in deleted if self.pages > 1 or each.time > oldest]


def prices(chance: random.Random) -> float:
    return round(chance.uniform(1, 500), 2)


def stock(chance: random.Random) -> str:
    return chance.choice(["IN_STOCK", "OUT_OF_STOCK", "PRE_ORDER"])


def words(chance: random.Random) -> str:
    return f"text {chance.getrandbits(40)}"


class World:
    """The targets of two jobs, and their states by day."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)  # noqa: S311  # a script, not a secret
        self.renamed: set[int] = set()
        """The days on which the shop has renamed a key."""
        shop = Shop(light=True)
        listing = shop.expected_record({"cat_id": "976759"})
        self.product = next(each for each in listing["products"] if not each["is_sponsored"])
        search = shop.expected_record({"query": "mustard"})
        self.categories = [self._category(f"c{n}", listing) for n in range(3)]
        self.mixed = [
            *(self._search(f"s{n}", search) for n in range(3)),
            *(self._timeline(f"m{n}") for n in range(3)),
            *(self._channel(f"v{n}") for n in range(3)),
            *(self._post(f"p{n}") for n in range(3)),
            *(self._member(f"l{n}") for n in range(2)),
        ]

    def _new_product(self, day: int, chance: random.Random) -> Thing:
        key = str(chance.getrandbits(40))
        values = {"price.current_price": prices, "availability.status": stock, RATING: prices, "name": words}
        counts, also = ("rating.review_count",), {"price.current_price": ("price.min_price",)}
        return Thing(key, deepcopy(self.product) | {"item_id": key}, values, counts, (), also, made=day)

    def _category(self, own_id: str, listing: dict[str, Any]) -> Place:
        params = {"cat_id": f"97{own_id[1:]}"}
        rows = [self._new_product(0, self.chance) for _ in range(40)]
        record = Thing("", listing, {"heading": words}, ("total_results",), ())
        return Place(own_id, "retail-category-v4", params, record, rows, "products", self._new_product, pages=3)

    def _search(self, own_id: str, listing: dict[str, Any]) -> Place:
        rows = [self._new_product(0, self.chance) for _ in range(40)]
        record = Thing("", listing, {}, ("total_results",), ())
        place = Place(own_id, "retail-search-v4", {"query": own_id}, record, rows, "products", self._new_product)
        place.shown, place.is_search = 12, True
        return place

    def _timed(self, own_id: str, shape: dict[str, Any], key: str, time: str, **how: Any) -> Callable[..., Thing]:
        made = iter(range(10_000))

        def new(day: int, chance: random.Random, seconds: int | None = None) -> Thing:
            name, number = str(chance.getrandbits(50)).zfill(16)[:11], next(made)
            seconds = NOW + day * DAY + number if seconds is None else seconds
            return Thing(name, deepcopy(shape) | {key: name, time: seconds}, made=day, time=seconds, **how)

        return new

    def _timeline(self, own_id: str) -> Place:
        found = Microblog().expected_record({"username": "relay_station"})
        how = {"values": {"caption": words}, "counts": ("like_count", "view_count"), "noise": ("thumbnail_url",)}
        shape = next(each for each in found["data"]["main"] if not each["quoted_post"])
        new = self._timed(own_id, shape, "post_id", "upload_timestamp", **how)
        profile = "data.additional.profile_demographics."
        record = Thing("", found, {f"{profile}description": words}, (f"{profile}followers_count",), ("nextCursor",))
        rows = [new(0, self.chance, NOW - DAY * n) for n in range(60)]
        rows.insert(0, new(0, self.chance, NOW - 900 * DAY))  # pinned
        return Place(own_id, "microblog-profile", {"username": own_id}, record, rows, "data.main", new, shown=20)

    def _channel(self, own_id: str) -> Place:
        found = VideoSite().expected_record({"username": "@harborlights"})
        found["pagination"]["has_more"] = True
        how = {"values": {"caption": words}, "counts": ("view_count",), "noise": ("thumbnail_image",)}
        new = self._timed(own_id, found["posts"][0], "content_id", "published_date", **how)
        noise = ("pagination.cursor",)
        record = Thing("", found, {"profile.biography": words}, ("profile.follower_count",), noise)
        rows = [new(0, self.chance, NOW - DAY * n) for n in range(1, 80)]
        return Place(own_id, "videosite-profile-v3", {"username": own_id}, record, rows, "posts", new, shown=30)

    def _post(self, own_id: str) -> Place:
        url = "https://www.instagram.com/p/DaSandbox01/"
        found = PhotoApp().expected_record({"url": url})
        post = "data.xdt_shortcode_media."
        values = {f"{post}comments_disabled": lambda chance: chance.choice([True, False])}
        noise = (f"{post}display_url", f"{post}owner.profile_pic_url")
        record = Thing("", found, values, (f"{post}edge_media_preview_like.count",), noise)
        return Place(own_id, "photoapp-post-v4", {"url": f"{url}?{own_id}"}, record, [])

    def _member(self, own_id: str) -> Place:
        url = "https://www.linkedin.com/in/mara-lindqvist"
        found = Professional().expected_record({"url": url})
        record = Thing("", found, {"headline": words, "about": words}, (), ("profile_photo",))
        return Place(own_id, "professional-profile", {"url": f"{url}?{own_id}"}, record, [])

    def move(self, day: int) -> None:
        """Let a day pass: the world moves, and some targets cannot be collected."""
        chance = self.chance
        if chance.random() < 0.2 and day:
            self.renamed.add(day)
        blocked = chance.choice(["microblog", "videosite", ""]) if day and chance.random() < 0.3 else ""
        for each in (*self.categories, *self.mixed):
            each.move(day, chance)
            former = each.states.get(day - 1)
            if former != "data" and day and chance.random() < 0.5:
                each.states |= {} if former is None else {day: former}
            elif day and (each.platform == blocked or chance.random() < 0.06):
                each.states[day] = "UPSTREAM_BLOCKED"
            elif day and not each.rows and chance.random() < 0.2:
                each.states[day] = "gone"
            elif day and chance.random() < 0.1:
                continue  # the file does not name the target on this day
            else:
                each.states[day] = "data"

    def lines(self, places: list[Place], day: int) -> Iterator[InputLine]:
        """Yield the lines of a day's file."""
        for row, each in enumerate(each for each in places if day in each.states):
            work = {"id": each.id, "scraper": each.scraper, "params": each.params, "hop": 0}
            yield InputLine(row, each.id, each.key, each.platform, work)

    def answer(self, places: list[Place], day: int) -> Callable[[Claim], Finished]:
        """Return the function that finishes the targets of a day."""
        of = {each.key: each for each in places}
        further: dict[bytes, tuple[Place, int]] = {}

        def finish(claim: Claim) -> Finished:
            place, page = further.get(claim.key) or (of[claim.key], 0)
            state, renamed = place.states[day], day in self.renamed and place.scraper.startswith("retail")
            if state == "data":
                outcome = {"warnings": [RENAMED] * renamed, "contract": "1", "fetched_at": "2026-11-26T00:00:00+00:00"}
                data = place.data(day, self.chance, page, renamed=renamed)
                found = tuple(self._page(claim, place, n, further) for n in range(1, place.pages)) if page == 0 else ()
                return Finished(claim, "done", "OK", outcome, data, found)
            error = UpstreamBlocked("blocked") if state != "gone" else TargetNotFound("gone", details=quoted("No post"))
            return Finished(claim, "failed", error.code, {"error": error.as_dict() | {"retryable": False}})

        return finish

    def _page(self, claim: Claim, place: Place, page: int, further: dict[bytes, tuple[Place, int]]) -> Followup:
        key = followup_key(claim.key, str(page))
        further[key] = (place, page)
        params = place.params | {"page": page + 1}
        work = {"id": key.hex(), "scraper": place.scraper, "params": params, "parent": place.id, "hop": page}
        return Followup(key, place.platform, work)

    def expected(self, places: list[Place], day: int, kept: list[int]) -> Expected:
        """Return what a comparison of a day with the kept days, the newest first, must report."""
        return {change for each in places for change in each.expected(day, kept, self.renamed)}
