"""The accounts and posts that the simulated photo app invents."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from crawler.sandbox.skeletons import invented

EPOCH_MS = 1_314_220_021_721
"""The time, in Unix milliseconds, from which the time stamps in numeric ids are counted."""
_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

PHOTO, VIDEO, CAROUSEL = 1, 2, 8

INVENTED = invented(__file__)


@dataclass(frozen=True, slots=True)
class Account:
    """An account of the app."""

    pk: str
    app_id: str
    username: str
    full_name: str
    verified: bool
    picture: str
    small_picture: str


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment on a post."""

    pk: str
    author: Account
    text: str
    at: int
    likes: int


@dataclass(frozen=True, slots=True)
class Sound:
    """The sound that a reel plays: original audio or licensed music."""

    artist: str
    title: str
    id: str
    original: bool
    muted: bool

    @property
    def muted_reason(self) -> str:
        """Return the text with which the app explains why the sound is muted, or "" if it is not muted."""
        return "This song is not available" if self.muted else ""


@dataclass(frozen=True, slots=True)
class Post:
    """A post, from which both its pages and its expected record are built."""

    pk: str
    owner: Account
    kind: int
    product: str
    taken_at: int
    caption: str | None
    alt: str
    height: int
    width: int
    likes: int
    hidden: bool
    comment_count: int
    comments: tuple[Comment, ...]
    tags: tuple[tuple[Account, float, float], ...]
    coauthors: tuple[Account, ...]
    place: tuple[str, str, str] | None
    sound: Sound | None
    audio: bool
    duration: float
    timing: str
    """Where a video's duration can be read: ``manifest``, ``label`` (in the file's URL), ``embed`` or ``nowhere``."""
    plays: int
    views: int
    slides: int
    pinned: bool
    paid: bool
    closed: bool
    """Whether the owner has disabled comments."""
    layout: str = field(default="wrapped")
    """Format of the post in its page: ``wrapped``, ``dict`` (with another type name) or ``item`` (an older page)."""

    @property
    def code(self) -> str:
        """Return the shortcode, which is the id in base 64."""
        return code_of(int(self.pk))

    @property
    def is_video(self) -> bool:
        """Return whether the post is a video or reel."""
        return self.kind == VIDEO

    def image(self, size: str, host: str = "scontent.cdninstagram.com") -> str:
        """Return the URL of the picture or the video's cover, as long as real URLs, which fill most of a page."""
        key = hash_of(self.pk + size)
        return (
            f"https://{host}/v/t51.82787-15/{self.pk[-9:]}_{self.pk[:17]}_n.jpg?stp=dst-jpg_{size}&_nc_cat=1&ccb=7-5"
            f"&_nc_sid=18de74&efg=eyJlZmdfdGFnIjoiRkVFRC5iZXN0X2ltYWdlX3VybGdlbi5DMyJ9&_nc_ohc=S{key[:22]}"
            f"&_nc_oc=Ad{key}{key[:25]}&_nc_zt=23&_nc_ht={host}&_nc_gid={key[9:31]}&_nc_ss=70689&oh=00_AQ{key}&oe=6AC7C933"
        )


def code_of(number: int) -> str:
    """Encode a numeric id as a shortcode."""
    code = ""
    while number:
        number, digit = divmod(number, 64)
        code = _DIGITS[digit] + code
    return code


def id_of(code: str) -> int:
    """Decode a shortcode to its numeric id."""
    number = 0
    for letter in code:
        number = number * 64 + _DIGITS.index(letter)
    return number


def hash_of(text: str) -> str:
    """Invent a signature for a URL. The same text always gets the same signature."""
    return f"{random.Random(text).getrandbits(160):040x}"  # noqa: S311  # an invented signature, not a secret


def account(rng: random.Random, username: str, full_name: str, *, verified: bool) -> Account:
    """Invent an account."""
    pk = str(rng.randrange(10**6, 6 * 10**10))
    base = f"https://scontent.cdninstagram.com/v/t51.82787-19/{pk}_n.jpg?stp=dst-jpg_s"
    return Account(
        pk=pk,
        app_id=f"17841{rng.randrange(10**11, 10**12)}",
        username=username,
        full_name=full_name,
        verified=verified,
        picture=f"{base}150x150_tt6&oe=6AC7EBEB",
        small_picture=f"{base}34x34_tt6&oe=6AC7EBEB",
    )


def people(rng: random.Random) -> list[Account]:
    """Invent the accounts that own posts."""
    return [account(rng, name, shown, verified=verified) for name, shown, verified in INVENTED.people]


def crowd(rng: random.Random) -> list[Account]:
    """Invent the accounts that only write comments."""
    return [account(rng, name, "", verified=False) for name in INVENTED.commenters]


class Author:
    """Invents posts with one random generator."""

    def __init__(self, rng: random.Random, accounts: list[Account]) -> None:
        self.rng = rng
        self.accounts = accounts
        self.crowd = crowd(rng)

    def moment(self) -> tuple[int, int]:
        """Invent an id, which contains a time, and a publication time, which is near that time or 21 hours later."""
        milliseconds = self.rng.randrange(1_728_000_000_000, 1_791_000_000_000)
        pk = ((milliseconds - EPOCH_MS) << 23) | self.rng.getrandbits(23)
        return pk, milliseconds // 1000 + self.rng.choice((-1, 3, 196, 479, 75_600))

    def post(self, owner: Account, kind: int, *, pk: int | None = None, **fixed: object) -> Post:
        """Invent a post of the given kind. ``fixed`` sets some of its fields; the others are random."""
        rng = self.rng
        own, taken_at = self.moment()
        product = {
            PHOTO: "feed",
            VIDEO: rng.choice(("clips", "clips", "clips", "igtv")),
            CAROUSEL: "carousel_container",
        }
        written = rng.choice((0, 0, 1, 3, 11))
        others = [each for each in self.accounts if each is not owner]
        made: dict[str, object] = {
            "pk": str(own if pk is None else pk),
            "owner": owner,
            "kind": kind,
            "product": product[kind],
            "taken_at": taken_at,
            "caption": None if owner.username == "_.no_caption._" else rng.choice(INVENTED.captions),
            "alt": self._alt(owner, kind),
            "height": rng.choice((1080, 1350, 1688, 1920)),
            "width": rng.choice((1080, 1350, 1440)),
            "likes": rng.choice((0, 3, rng.randrange(10**6))),
            "hidden": rng.random() < 0.15,
            "comment_count": written + rng.choice((0, rng.randrange(9_000))),
            "comments": tuple(self._comment(taken_at) for _ in range(written)),
            "tags": tuple(
                (tagged, rng.choice((0.0, 0.5, 0.25)), round(rng.random(), 6))
                for tagged in rng.sample(others, rng.choice((0, 0, 1, 3)))
            ),
            "coauthors": tuple(rng.sample(others, rng.choice((0, 0, 0, 1, 2)))),
            "place": rng.choice((None, None, None, *INVENTED.places)),
            "sound": self._sound(owner) if kind == VIDEO else None,
            "audio": rng.random() < 0.8,
            "duration": round(rng.uniform(3, 5_400 if product[kind] == "igtv" else 90), 3),
            "timing": rng.choice(("manifest", "manifest", "label", "embed", "nowhere")),
            "plays": rng.randrange(1, 10**7),
            "views": rng.choice((0, rng.randrange(1, 10**6))),
            "slides": rng.randint(2, 10) if kind == CAROUSEL else 0,
            "pinned": False,
            "paid": rng.random() < 0.1,
            "closed": rng.random() < 0.1,
            "layout": rng.choice(("wrapped",) * 6 + ("dict", "item")),
        }
        return Post(**{**made, **fixed})  # type: ignore[arg-type]  # the keys are names of Post's fields

    def _alt(self, owner: Account, kind: int) -> str:
        if self.rng.random() < 0.1:
            return ""
        shown = self.rng.choice(INVENTED.things)
        what = "Video" if kind == VIDEO else "Photo"
        return f"{what} by {owner.full_name} on October 02, 2026. May be an image of {shown}."

    def _comment(self, after: int) -> Comment:
        rng = self.rng
        return Comment(
            pk=str(rng.randrange(17 * 10**15, 18 * 10**15)),
            author=rng.choice(self.crowd),
            text=rng.choice(INVENTED.comments),
            at=after + rng.randrange(10**6),
            likes=rng.choice((0, rng.randrange(500))),
        )

    def _sound(self, owner: Account) -> Sound | None:
        rng = self.rng
        kind = rng.choice(("own", "own", "licensed", None))
        if kind is None:
            return None
        if kind == "own":
            return Sound(owner.username, "Original audio", str(rng.randrange(10**16)), original=True, muted=False)
        artist, title, sound_id = rng.choice(INVENTED.songs)
        return Sound(artist, title, sound_id, original=False, muted=rng.random() < 0.3)
