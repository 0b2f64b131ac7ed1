"""The simulated short-video site's invented posts and search results."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import lru_cache

from crawler.sandbox.skeletons import invented

LONG = "long list"
LONG_ROWS = 130
"""Number of results of the search ``long list``, for which more than ten responses of the search API are needed."""
TOP_ID = 7_480_000_000_000_000_000

INVENTED = invented(__file__)


@dataclass(frozen=True, slots=True)
class Person:
    """An account of the site."""

    id: str
    handle: str
    name: str
    about: str
    private: bool = False


@dataclass(frozen=True, slots=True)
class Sound:
    """The sound that a post plays."""

    id: str
    title: str
    author: str
    album: str
    seconds: int
    original: bool


@dataclass(frozen=True, slots=True)
class Post:
    """A post of the site, from which both responses and expected records are built."""

    id: str
    kind: str
    """The kind of post: ``photo``, ``video``, ``live`` or ``empty`` (a photo post without pictures)."""
    person: Person
    caption: str
    language: str
    created: int
    pictures: tuple[tuple[str, int, int], ...]
    """For each picture: its storage key, width and height."""
    covered: bool
    """Whether the post has its own cover; if not, its first picture is the cover."""
    rendered: bool
    """Whether the platform rendered a video from the post's pictures."""
    sound: Sound | None
    figures: tuple[int, ...]
    """How often the post was collected, commented on, liked, played, shared, reposted, downloaded and sent, in this
    order."""
    ad: bool
    paid: bool | None
    comments: int
    anchored: bool
    hidden: bool


class Posts:
    """The posts of the site. The same seed produces the same posts on every machine."""

    def __init__(self, seed: int, *, light: bool) -> None:
        self.seed = seed
        self.light = light

    @lru_cache(maxsize=64)  # noqa: B019  # sites exist until their process ends
    def posts(self, keyword: str) -> tuple[Post, ...]:
        """Return all results of a search, in the platform's order, including items that are not photo posts."""
        rng = random.Random(f"{self.seed}{keyword}")  # noqa: S311  # invented data, not a secret
        size = 5 if self.light else LONG_ROWS if keyword == LONG else rng.randint(30, 46)
        return tuple(self._post(rng, number, keyword) for number in range(size))

    def _post(self, rng: random.Random, number: int, keyword: str) -> Post:
        who = rng.randrange(len(INVENTED.handles))
        created = rng.randint(1_600_000_000, 1_790_000_000)
        # The first result is always a photo post that is not hidden.
        kind = rng.choices(("photo", "video", "live", "empty"), (88, 8, 2, 2))[0] if number else "photo"
        hidden = bool(number) and rng.random() < 0.03
        likes = round(rng.lognormvariate(8, 2))
        return Post(
            id=str(TOP_ID - rng.getrandbits(52) * 64 - number),
            kind=kind,
            person=Person(
                id=str(6_600_000_000_000_000_000 + rng.getrandbits(58)),
                handle=INVENTED.handles[who],
                name=INVENTED.names[who],
                about=rng.choice(("", "📍 somewhere\nmail me", "she/her")),
                private=hidden and number % 2 == 1,
            ),
            caption=rng.choice(INVENTED.captions).format(word=keyword.replace(" ", "")),
            language=rng.choice(("un", "en", "de", "zh-Hans", "un")),
            created=created,
            pictures=tuple(
                (f"{rng.getrandbits(128):032x}", rng.choice((1080, 1170, 720)), rng.choice((1440, 1920, 720)))
                for _ in range(rng.choice((1, 2, 3, 7) if self.light else (1, 2, 3, 5, 7, 12, 35)))
            ),
            covered=rng.random() < 0.8,
            rendered=rng.random() < 0.2,
            sound=self._sound(rng) if rng.random() < 0.94 else None,
            figures=tuple(round(likes * share) for share in (0.2, 0.02, 1, 14, 0.1, 0.01, 0.03, 0.005)),
            ad=rng.random() < 0.05,
            paid=rng.choice((None, None, True, False)),
            comments=rng.choice((0, 0, 0, 1, 3, 0)),
            anchored=rng.random() < 0.3,
            hidden=hidden,
        )

    @staticmethod
    def _sound(rng: random.Random) -> Sound:
        title = rng.choice(INVENTED.sounds)
        original = "original" in title or title == "原聲"
        return Sound(
            id=str(6_700_000_000_000_000_000 + rng.getrandbits(58)),
            title=title,
            author=rng.choice(("hoomy", "blipstudio", "Santo E Johnny", "𝐙")),
            album="" if original else rng.choice(("", "Delirium - Deluxe")),
            seconds=rng.randint(5, 59),
            original=original,
        )
