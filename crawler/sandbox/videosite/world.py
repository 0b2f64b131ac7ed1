"""The simulated video site's data: channels and their items. The same seed always produces the same data."""

from __future__ import annotations

import random
import string
from dataclasses import dataclass, field

from crawler.sandbox.skeletons import invented
from crawler.sandbox.videosite.parts import mark, uuid

NOW = 1_790_000_000
"""The time, in Unix seconds, at which all pages are supposed to be rendered."""
INVENTED = invented(__file__)
"""``shapes``: the handle, the numbers of videos, shorts and streams, and the formats of each ordinary channel.
``special``: the name, the kind and these numbers of the other channels."""
_IDS = string.ascii_letters + string.digits + "-_"
CODES = tuple(sorted({a + b for a in string.ascii_uppercase for b in "ACEGIKMOQSU"}))[:249]
PAGE = {"videos": 30, "shorts": 48, "streams": 30}


@dataclass(frozen=True, slots=True)
class Item:
    """A video, a short or a live stream of a channel."""

    id: str
    tab: str
    title: str
    description: str
    tags: tuple[tuple[str, ...], tuple[str, ...]]
    """The hashtags in the title, and the hashtags in the description."""
    friends: tuple[tuple[str, ...], tuple[str, ...]]
    """The handles mentioned in the title, and the handles mentioned in the description."""
    views: int
    likes: int | None
    published: int
    seconds: int
    state: str
    """``done``, ``live`` or ``upcoming``; or ``members`` or ``premium`` if the list shows no views."""
    together: bool
    charity: bool

    @property
    def picture(self) -> str:
        """Return the URL of the item's picture in lists, with the placeholders ``{w}`` and ``{h}`` for its size."""
        return f"https://i.ytimg.com/vi/{self.id}/hqdefault.jpg?sqp=-oaymwE{self.id}&w={{w}}&h={{h}}"

    @property
    def token(self) -> str:
        """Return the meaningless tracking token that the item's parts in pages contain."""
        return mark(self.id)


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel of the site, and the formats of its pages."""

    id: str
    handle: str
    name: str
    description: str = ""
    keywords: str = ""
    subscribers: int | None = None
    created: int = 1_400_000_000
    country: str = ""
    links: tuple[str, ...] = ()
    badge: str = ""
    banner: str = ""
    avatar: str = ""
    codes: tuple[str, ...] = CODES
    safe: bool = True
    views: int = 0
    total: int = 0
    pronouns: bool = False
    lower: bool = False
    shape: str = "lockup"
    """Format of the channel's lists: ``lockup`` (the newest), ``rich`` or ``grid`` (the oldest)."""
    ending: str = "renderer"
    """Format of the row that leads to the next page: ``renderer``, ``view`` or ``button``."""
    kind: str = "normal"
    """Kind of channel: ``normal``, ``gated`` (age-restricted), ``topic`` (no tabs), ``game`` or ``sport``."""
    legacy: str = ""
    short_first: bool = False
    repeats: bool = False
    feed_ones: bool = False
    fault: str = ""
    items: dict[str, list[Item]] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """Return the path of the channel's page."""
        return f"/@{self.handle}" if self.handle else f"/channel/{self.id}"

    @property
    def token(self) -> str:
        """Return the meaningless tracking token that all parts of the channel's page contain."""
        return mark(self.id)

    @property
    def uuid(self) -> str:
        """Return the meaningless tracking token with the format of a UUID."""
        return uuid(self.id)

    @property
    def vanity(self) -> str:
        """Return the canonical URL of the channel."""
        return f"http://www.youtube.com{self.path}"

    @property
    def tabs(self) -> list[str]:
        """Return the tabs of the channel's page, in the order in which the page shows them."""
        if self.kind == "topic":
            return ["featured", "playlists"]
        lists = [tab for tab in PAGE if tab in self.items]
        return lists if self.shape == "grid" and len(lists) == 1 else ["featured", *lists, "playlists", "posts"]

    def sizes(self, tab: str) -> list[int]:
        """Return the number of items on each page of a tab's list."""
        left, size = len(self.items.get(tab, [])), PAGE[tab]
        if self.kind in {"gated", "topic"}:
            size = 100
        sizes = [1] if self.short_first and left > 1 else []
        left -= sum(sizes)
        return sizes + [min(size, left - start) for start in range(0, left, size)]


def new_id(rng: random.Random, size: int) -> str:
    """Return a random id with ``size`` characters."""
    return "".join(rng.choices(_IDS, k=size))


def items(rng: random.Random, tab: str, number: int) -> list[Item]:
    """Invent ``number`` items for a tab, newest first."""
    moment = NOW - 7_200
    made: list[Item] = []
    for index in range(number):
        moment -= rng.randrange(3_600, 1_500_000)
        state = "done"
        if tab == "streams" and index < 2 and number > 2:
            state = ("upcoming", "live")[index]
        elif tab == "videos":
            state = rng.choices(("done", "members", "premium", "upcoming" if index == 0 else "done"), (90, 4, 3, 3))[0]
        made.append(_item(rng, tab, index, state, moment if state != "upcoming" else NOW + 90_000))
    return made


def _item(rng: random.Random, tab: str, index: int, state: str, published: int) -> Item:
    phrase = f"{rng.choice(INVENTED.subjects)} {rng.choice(INVENTED.scenes)}".format(n=index + 1)
    title_tags = tuple(dict.fromkeys(rng.choices(INVENTED.tags, k=rng.choice((0, 0, 1, 2)))))
    title_friends = (rng.choice(INVENTED.friends),) if rng.random() < 0.2 else ()
    title = phrase + "".join(f" #{tag}" for tag in title_tags) + "".join(f" with @{name}" for name in title_friends)
    description_tags = tuple(dict.fromkeys(rng.choices(INVENTED.tags, k=rng.choice((0, 1, 2)))))
    description_friends = (rng.choice(INVENTED.friends),) if rng.random() < 0.3 else ()
    described = f"{phrase} & more.\nhttps://pier.example/a#top or mail@pier.example\n"
    described += " ".join([*(f"#{tag}" for tag in description_tags), *(f"(@{name})" for name in description_friends)])
    if rng.random() < 0.01:
        title, title_tags, title_friends = "", (), ()
    views = int(10 ** rng.uniform(0, 7)) if rng.random() < 0.97 else rng.choice((0, 1, 1_234_567_890))
    return Item(
        id=new_id(rng, 11) if index % 9 else "-" + new_id(rng, 10),
        tab=tab,
        title=title,
        description=described,
        tags=(title_tags, description_tags),
        friends=(title_friends, description_friends),
        views=views,
        likes=None if rng.random() < 0.1 else views // 30 + 1,
        published=published,
        seconds=rng.randrange(8, 60) if tab == "shorts" else rng.randrange(20, 15_000),
        state=state,
        together=rng.random() < 0.05,
        charity=rng.random() < 0.05,
    )


def channel(seed: int, name: str, numbers: tuple[int, int, int], **shown: object) -> Channel:
    """Invent a channel with the given numbers of videos, shorts and streams. ``shown`` overrides random values."""
    rng = random.Random(f"{seed}/{name}/{shown.get('kind', '')}/{shown.get('legacy', '')}")  # noqa: S311  # invented data
    picture = f"https://yt3.googleusercontent.com/{new_id(rng, 60)}"
    drawn: dict[str, object] = {
        "id": "UC" + new_id(rng, 22),
        "handle": name,
        "name": name if shown.get("kind") else f"{name or 'Old Timer'} {rng.choice(INVENTED.suffixes)}",
        "description": f"All about {name}.\n\nSecond paragraph, {rng.random()}: {'and so on, ' * 30}and on.",
        "keywords": rng.choice(('"slow tv" harbor ferry', "", "single")),
        "subscribers": int(10 ** rng.uniform(0, 8)),
        "created": rng.randrange(1_130_000_000, NOW - 50_000_000),
        "country": rng.choice(INVENTED.countries),
        "links": INVENTED.links[: rng.choice((1, 2, 4))],
        "banner": f"{picture}=w{{w}}-fcrop64=1",
        "avatar": f"{picture}=s900-c-k-c0x00ffffff-no-rj",
        "codes": CODES[: rng.choice((249, 248))],
        "views": int(10 ** rng.uniform(3, 11)),
        "total": sum(numbers),
        "items": {tab: items(rng, tab, number) for tab, number in zip(PAGE, numbers, strict=True) if number},
    }
    return Channel(**(drawn | shown))  # type: ignore[arg-type]  # the keys are names of Channel's fields


def channels(seed: int, faults: list[str]) -> list[Channel]:
    """Invent all channels of a site: ordinary ones, special ones, and one for each fault."""
    made = [channel(seed, name, numbers, **shown) for name, numbers, shown in INVENTED.shapes]
    made += [channel(seed, name, numbers, handle="", kind=kind) for name, kind, numbers in INVENTED.special]
    for fault in faults:
        long = fault in {"loop", "stale-token", "lost-page", "page-error", "blank-page", "blank-page-once"}
        shown: dict[str, object] = {"kind": "gated"} if fault == "no-playlist" else {}
        made.append(channel(seed, fault, (70 if long else 20, 3, 0), fault=fault, **shown))
    return made


class Channels:
    """The channels of a seed. ``light``: pages omit the parts from which spiders read nothing."""

    def __init__(self, seed: int, faults: list[str], *, light: bool) -> None:
        self.heavy = not light
        self.channels = channels(seed, faults)
        self.by_id = {channel.id: channel for channel in self.channels}
        self.by_handle = {channel.handle.lower(): channel for channel in self.channels if channel.handle}
        self.by_legacy = {channel.legacy.lower(): channel for channel in self.channels if channel.legacy}

    def named(self, name: str) -> Channel:
        """Return the channel with a handle, an id or a legacy name.

        Raises:
            KeyError: the channel does not exist.
        """
        bare = name.removeprefix("@")
        found = self.by_id.get(bare) or self.by_handle.get(bare.lower()) or self.by_legacy.get(bare.lower())
        if found is None:
            raise KeyError(name)
        return found
