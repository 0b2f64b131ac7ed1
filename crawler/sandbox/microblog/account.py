"""The simulated microblog's accounts and posts, from which both its pages and the expected records are built."""

from __future__ import annotations

import html
import random
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from crawler.sandbox.skeletons import invented

# strftime is not used, because its month names depend on the locale.
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
NEWEST = 1_791_000_000
"""The time at which every account published its newest post, in Unix seconds."""
ID_EPOCH_MS = 1_288_834_974_657
EMBED_SIZE = 100
NEWEST_ON_PAGE = 5
STALE = 3
"""The number by which the follower count in an embed is too low, because embeds are outdated copies."""

INVENTED = invented(__file__)


@dataclass(frozen=True, slots=True)
class Media:
    """A photo, a video or an animation in a post."""

    id: str
    kind: str
    short: str
    files: tuple[tuple[int, str], ...] = ()
    """The bitrate and URL of each file of a video, in the order in which the platform serves them."""

    @property
    def thumbnail(self) -> str:
        """Return the URL of the photo, or of the video's poster."""
        folder = {"photo": "media", "video": "amplify_video_thumb", "animated_gif": "tweet_video_thumb"}[self.kind]
        return f"https://pbs.twimg.com/{folder}/{self.id}.jpg"


@dataclass(frozen=True, slots=True)
class User:
    """The user object of an account, which is also the author of its posts."""

    id: str
    handle: str
    name: str
    about: str
    created: int
    followers: int
    following: int
    posts: int
    likes: int
    lists: int
    media: int
    blue: bool
    kind: str
    location: str
    link: str
    banner: str
    protected: bool = False

    @property
    def picture(self) -> str:
        """Return the URL of the user's profile picture."""
        return f"https://pbs.twimg.com/profile_images/{self.id}/face_normal.jpg"

    @property
    def large_picture(self) -> str:
        """Return the URL of the user's profile picture in the size that the account's page names."""
        return self.picture.replace("_normal", "_400x400")


@dataclass(frozen=True, slots=True)
class Post:
    """A post or repost."""

    id: str
    author: User
    time: int
    text: str
    tags: tuple[str, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    """Pairs of a link's short and expanded URL."""
    media: tuple[Media, ...] = ()
    long: bool = False
    """Whether the payload contains a truncated text, and the whole text in a separate note."""
    replies: int = 0
    likes: int = 0
    saves: int = 0
    shares: int = 0
    quotes: int = 0
    views: int | None = None
    repost_of: Post | None = None
    quote_of: Post | None = None
    quote_id: str = ""
    """The id of the quoted post, even if that post is deleted."""
    reply_handle: str = ""
    reply_id: str = ""
    wrapped: bool = False
    """Whether the payload wraps the post in an object that limits who may reply."""
    carded: bool = False

    @property
    def whole(self) -> str:
        """Return the complete text with hashtags and short links, without the link to the post's media."""
        return self.text + "".join(f" #{tag}" for tag in self.tags) + "".join(f" {short}" for short, _ in self.links)

    @property
    def caption(self) -> str:
        """Return the caption that the record must contain."""
        if self.repost_of:
            return self.repost_of.caption
        return self.text + "".join(f" #{tag}" for tag in self.tags) + "".join(f" {long}" for _, long in self.links)

    @property
    def served(self) -> str:
        """Return the text for payloads: escaped, truncated if ``long``, and with a link to the media."""
        if self.repost_of:
            return html.escape(f"RT @{self.repost_of.author.handle}: {self.repost_of.whole[:110]}…", quote=False)
        shown = self.whole[:270] if self.long else self.whole
        return html.escape(shown, quote=False) + (f" {self.media[0].short}" if self.media else "")

    @property
    def figures(self) -> dict[str, int]:
        """Return the counts for payloads. A repost shows how often its original was shared, and no other counts."""
        if self.repost_of:
            return {"replies": 0, "likes": 0, "saves": 0, "quotes": 0, "shares": self.repost_of.shares}
        return {
            "replies": self.replies,
            "likes": self.likes,
            "saves": self.saves,
            "quotes": self.quotes,
            "shares": self.shares,
        }


@dataclass(frozen=True, slots=True)
class Plan:
    """The properties of an account that determine its pages and API responses."""

    posts: int
    shape: str = "C"
    """The format of the API's responses for this account: B, C (older generations) or D (the newest client)."""
    flat: bool = True
    """Whether the data in the account's page consists of flat records. If not, it consists of nested objects."""
    popular: bool = False
    """Whether the account's timeline is sorted by popularity, as the platform often does for guests."""
    terminated: bool = True
    """Whether the account's timeline has an instruction that marks its end."""
    unlisted: int = 0
    """How many posts more the account states than its timeline contains."""
    protected: bool = False


@dataclass(frozen=True, slots=True)
class Account:
    """An account with its posts."""

    user: User
    plan: Plan
    posts: tuple[Post, ...]
    """The account's posts, newest first."""
    pinned: Post | None
    others: tuple[User, ...]

    @property
    def timeline(self) -> list[Post]:
        """Return the posts in the order in which the API lists them."""
        return sorted(self.posts, key=lambda post: -post.likes) if self.plan.popular else list(self.posts)

    @property
    def newest(self) -> list[Post]:
        """Return the posts that the account's page shows: the newest ones, without reposts and replies."""
        return [post for post in self.posts if not post.repost_of and not post.reply_handle][:NEWEST_ON_PAGE]

    @property
    def embedded(self) -> list[Post]:
        """Return the posts that the account's embed shows."""
        return self.timeline[:EMBED_SIZE]


def date_text(seconds: int) -> str:
    """Format Unix seconds in the platform's date format."""
    moment = datetime.fromtimestamp(seconds, UTC)
    day = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")[moment.weekday()]
    clock = f"{moment.hour:02}:{moment.minute:02}:{moment.second:02}"
    return f"{day} {MONTHS[moment.month - 1]} {moment.day:02} {clock} +0000 {moment.year}"


class Inventor:
    """Invents users and posts. The same seed produces the same users and posts."""

    def __init__(self, seed: str) -> None:
        self.rng = random.Random(seed)  # noqa: S311  # invented data, not a secret
        self._last = 0

    def user(self, handle: str, *, protected: bool = False) -> User:
        """Invent a user with a given handle."""
        rng = self.rng
        bare = rng.random() < 0.2
        return User(
            id=str(rng.randint(10**6, 2 * 10**18)),
            handle=handle,
            name=rng.choice(INVENTED.names),
            about="" if bare else f"{rng.choice(INVENTED.subjects)} · 5 > 4 & counting",
            created=rng.randint(1_180_000_000, 1_600_000_000),
            followers=rng.randint(0, 90_000_000),
            following=rng.randint(0, 9_000),
            posts=rng.randint(300, 90_000),
            likes=rng.randint(0, 90_000),
            lists=rng.randint(0, 9_000),
            media=rng.randint(0, 9_000),
            blue=rng.random() < 0.5,
            kind=rng.choice(("", "", "Business", "Government")),
            location="" if bare else rng.choice(("127.0.0.1", "Zürich", "everywhere")),
            link="" if bare else f"https://t.co/{self._code()}",
            banner="" if bare else f"https://pbs.twimg.com/profile_banners/{rng.randint(10**6, 10**9)}/1690213128",
            protected=protected,
        )

    def post(self, author: User, time: int) -> Post:
        """Invent an author's post that is neither a repost nor a reply."""
        rng = self.rng
        long = rng.random() < 0.12
        text = f"{rng.choice(INVENTED.subjects)} {rng.choice(INVENTED.verbs)} {rng.choice(INVENTED.objects)}"
        if rng.random() < 0.1:
            text += " " + rng.choice(INVENTED.lookalikes)
        if long:
            text += "".join(
                f"\n\n{n}. {rng.choice(INVENTED.subjects)} {rng.choice(INVENTED.verbs)} {rng.choice(INVENTED.objects)}."
                for n in range(12)
            )
        media = self._media() if rng.random() < 0.4 else ()
        made = Post(
            id=self._id(time),
            author=author,
            time=time,
            text=text,
            tags=tuple(rng.sample(INVENTED.tags, rng.choice((0, 0, 1, 2)))),
            links=tuple(self._link() for _ in range(rng.choice((0, 0, 1, 2)))),
            media=media,
            long=long,
            replies=rng.randint(0, 900),
            likes=rng.randint(0, 90_000),
            saves=rng.randint(0, 900),
            shares=rng.randint(0, 9_000),
            quotes=rng.randint(0, 90),
            views=rng.randint(1, 9_000_000) if rng.random() < 0.9 else None,
            wrapped=rng.random() < 0.05,
            carded=rng.random() < 0.2,
        )
        # Only a post of the last minute, which hardly anyone has liked, has no number of views.
        return made if made.views is not None else replace(made, likes=made.likes % 2)

    def _media(self) -> tuple[Media, ...]:
        rng = self.rng
        kind = rng.choice(("photo", "photo", "video", "animated_gif"))
        short = f"https://t.co/{self._code()}"
        count = rng.randint(1, 4) if kind == "photo" else 1
        found = []
        for _ in range(count):
            number = str(rng.randint(10**18, 2 * 10**18))
            files: list[tuple[int, str]] = []
            if kind == "video":
                files = [
                    (rate, f"https://video.twimg.com/{number}/{rate}.mp4?tag=28")
                    for rate in rng.choice(INVENTED.ladders)
                ]
                rng.shuffle(files)
            elif kind == "animated_gif":
                files = [(0, f"https://video.twimg.com/tweet_video/{number}.mp4")]
            found.append(Media(number, kind, short, tuple(files)))
        return tuple(found)

    def _link(self) -> tuple[str, str]:
        return f"https://t.co/{self._code()}", f"https://example.org/{self._code()}?a=1&amp=2"

    def _code(self) -> str:
        letters = "abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"
        return "".join(self.rng.choice(letters) for _ in range(10))

    def _id(self, time: int) -> str:
        """Invent a unique id that contains the post's time, like the platform's ids."""
        self._last += 1
        return str(((time * 1000 - ID_EPOCH_MS) << 22) + self._last)
