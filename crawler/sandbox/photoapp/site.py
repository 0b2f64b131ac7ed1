"""The simulated photo app: its accounts and posts, their pages, and the expected records."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

from crawler.sandbox.faults import described, is_navigation, target
from crawler.sandbox.photoapp import embed as photoapp_embed
from crawler.sandbox.photoapp import faults as photoapp_faults
from crawler.sandbox.photoapp import media as photoapp_media
from crawler.sandbox.photoapp import page as photoapp_page
from crawler.sandbox.photoapp.expected import record
from crawler.sandbox.photoapp.faults import EMBED_FAULTS, EVERYWHERE, FAULTS, NEWER, SHARE_FAULTS
from crawler.sandbox.photoapp.people import CAROUSEL, PHOTO, VIDEO, Account, Author, Post, id_of, people
from crawler.sandbox.protocol import FakeRequest

if TYPE_CHECKING:
    from crawler.sandbox.protocol import FakeResponse

__all__ = ["FAULTS", "Site"]

EXAMPLE = "DaSandbox01"
"""The shortcode of a post that exists for every seed."""
TIMELINE = 12
"""Number of the owner's posts that a post's page lists."""
SINGLE_POST_ACCOUNT = "one.post.only"
ACCOUNT_WITHOUT_REELS = "reels.forbidden"
"""The owner of the video with the fault ``reels-forbidden``."""

_POST = re.compile(r"/(?:[\w.]+/)?(?:p|reel|reels|tv)/(?P<code>[\w-]+)/(?P<embed>embed/captioned/)?", re.ASCII)
_SHARE = re.compile(r"/share/(?:(?:p|reel|reels|tv)/)?(?P<token>[\w-]+)/?", re.ASCII)
_FAULT = re.compile(r"FAULT\d{3}(?P<fault>\d{3})", re.ASCII)
"""A shortcode or token whose last three digits select a fault. The three digits before them may be any number."""
_REELS = re.compile(r"/(?P<username>[\w.]+)/reels/", re.ASCII)

TARGETS = [
    target("a post", url=f"{photoapp_page.PUBLIC}/p/{EXAMPLE}/"),
    target("a share link to the same post", url=f"{photoapp_page.PUBLIC}/share/p/BASandbox01/"),
]


class Site:
    """The simulated photo app. The same seed produces the same accounts and posts in every process."""

    faults: ClassVar[dict[str, str]] = {
        f"FAULT{n:06d}": name for n, name in enumerate([*sorted(FAULTS.keys() - set(NEWER)), *NEWER], 1)
    }
    """The names of the faults, by the post's shortcode or the share link's token that selects each of them."""

    def __init__(self, seed: int = 1, *, light: bool = False) -> None:
        self.seed = seed
        self.light = light
        rng = random.Random(seed)  # noqa: S311  # invented data, not a secret
        self.accounts = people(rng)
        author = Author(rng, self.accounts)
        first = self.accounts[0]
        made = [author.post(first, PHOTO, pk=id_of(EXAMPLE), layout="wrapped")]
        for account in self.accounts:
            kinds = [PHOTO, VIDEO, CAROUSEL, *(rng.choice((PHOTO, VIDEO, CAROUSEL)) for _ in range(11))]
            made += [
                author.post(account, kind) for kind in (kinds[:1] if account.username == SINGLE_POST_ACCOUNT else kinds)
            ]
        for place in rng.sample(range(len(made)), 6):
            made[place] = replace(made[place], pinned=True)
        self.posts: dict[str, Post] = {post.code: post for post in made}
        self.listed: tuple[str, ...] = tuple(self.posts)
        """The shortcodes of the posts without a fault. Only these are listed in timelines."""
        for code, name in self.faults.items():
            timing = {"embed": "embed", "reels": "manifest"}.get(name.partition("-")[0], "nowhere")
            kind = PHOTO if timing == "nowhere" else VIDEO
            fixed = {"taken_at": 1_790_000_000, "timing": timing, "layout": "wrapped", "coauthors": ()}
            self.posts[code] = author.post(first, kind, pk=id_of(code), **fixed)
            if name == "reels-forbidden":
                owner = replace(first, username=ACCOUNT_WITHOUT_REELS)
                self.posts[code] = replace(self.posts[code], owner=owner)
        self.shares = {f"BA{code[2:]}": code for code in self.listed}
        """The shortcode of the post that each share link leads to, by the link's token."""

    def post(self, code: str) -> Post | None:
        """Return the post with a shortcode, or None if there is none. The shortcode of a fault may contain a number."""
        found = self.posts.get(_unnumbered(code))
        return found and replace(found, pk=str(id_of(code)))

    def timeline(self, account: Account) -> list[Post]:
        """Return an account's newest posts, pinned ones first."""
        own = [self.posts[code] for code in self.listed if self.posts[code].owner is account]
        return sorted(own, key=lambda post: (not post.pinned, -post.taken_at))[:TIMELINE]

    def reels(self, account: Account) -> list[Post]:
        """Return an account's newest reels."""
        own = [self.posts[code] for code in self.listed if self.posts[code].owner is account]
        return sorted((post for post in own if post.is_video), key=lambda post: -post.taken_at)[:TIMELINE]

    # The site

    def fault(self, request: FakeRequest) -> str | None:
        """Return the fault that the post or share link in the path selects, if it affects this kind of page."""
        share, post, reels = (form.fullmatch(request.path) for form in (_SHARE, _POST, _REELS))
        if reels and reels["username"] == ACCOUNT_WITHOUT_REELS:
            return "forbidden"
        found = share["token"] if share else post["code"] if post else ""
        name = self.faults.get(_unnumbered(found))
        if name is None or name == "reels-forbidden" or (name in SHARE_FAULTS) != bool(share):
            return None
        if name == "shell-to-plain" and "sec-ch-ua" in request.headers:  # only browsers send this header
            return None
        of_embed = name.startswith("embed-")
        if post and of_embed != bool(post["embed"]) and name not in {*EVERYWHERE, *EMBED_FAULTS}:
            return None
        return {"embed-down": "server-error", "embed-forbidden": "forbidden"}.get(name, name)

    def limited(self, request: FakeRequest, _: int) -> FakeResponse | None:
        """Build the response to a request above a limit: a page without data, or the login page for an embed page."""
        is_embed = _POST.fullmatch(request.path) and request.path.endswith("/embed/captioned/")
        return self.damaged("login-redirect", request) if is_embed else self._shell(request)

    def refusal(self, request: FakeRequest) -> FakeResponse | None:
        """Build the page without data that clients get whose requests are not a browser's navigation."""
        return None if is_navigation(request) else self._shell(request)

    def _shell(self, request: FakeRequest) -> FakeResponse | None:
        """Build a post's page, or the page of an account's reels, without data. None for other pages."""
        found = _POST.fullmatch(request.path)
        post = self.post(found["code"]) if found and not found["embed"] else None
        if _REELS.fullmatch(request.path):
            return 200, {}, photoapp_page.document(photoapp_page.REELS_ROUTE, (), light=self.light)
        return (200, {}, self.document(post)) if post else None

    def page(self, request: FakeRequest) -> FakeResponse:
        """Build the undamaged response: a post's page or embed page, reels, a redirect or another page."""
        post, share, reels = (form.fullmatch(request.path) for form in (_POST, _SHARE, _REELS))
        if share and share["token"] in self.shares:
            found = self.posts[self.shares[share["token"]]]
            where = f"/{found.owner.username}/{'reel' if found.is_video else 'p'}/{found.code}/?igsh=invented"
            return 302, {"Location": photoapp_page.PUBLIC + where if found.pinned else where}, b""
        if share and _unnumbered(share["token"]) in self.faults:
            return 302, {"Location": f"/p/{EXAMPLE}/"}, b""
        shown = self.post(post["code"]) if post else None
        if post and shown:
            return 200, {}, self._post_page(shown, embedded=bool(post["embed"]))
        named = [each for each in self.accounts if reels and each.username == reels["username"]]
        if named:
            return 200, {}, self.reels_page(named[0])
        return photoapp_faults.other_page(request.path, light=self.light)

    def _post_page(self, post: Post, *, embedded: bool) -> bytes:
        if embedded:
            context = {"gql_data": {"shortcode_media": photoapp_embed.embedded(post)}, "media": None}
            return photoapp_embed.page(context)
        further = photoapp_page.further_results() if post.layout == "item" else []
        return self.document(post, self.block(post), *further)

    def document(self, post: Post, *blocks: bytes) -> bytes:
        """Render a post's page with data blocks."""
        return photoapp_page.document(photoapp_page.POST_ROUTE, blocks, light=self.light, post=post)

    def block(self, post: Post) -> bytes:
        """Build the data block of a post's page."""
        if post.layout == "item":
            video = photoapp_page.fill("extensions") if post.is_video else {}
            return photoapp_page.prefetched("PolarisPostRootQuery", self.data(post, "item"), **video)
        return photoapp_page.prefetched(photoapp_page.POST_QUERY, self.data(post, "page"))

    def data(self, post: Post, form: str) -> dict[str, Any]:
        """Build the data of a query for a post, in the payload format ``page`` or ``item``."""
        if form == "item":
            return {"xdt_api__v1__media__shortcode__web_info": {"items": [photoapp_media.item(post)]}}
        return {"xig_polaris_media": photoapp_media.wrapper(post, self.timeline(post.owner))}

    def reels_page(self, account: Account) -> bytes:
        """Render the page with an account's reels."""
        edges = [photoapp_media.clip(post) for post in self.reels(account)]
        data = {"xig_user_by_username": {"pk": account.pk, "polaris_clips_connection": {"edges": edges}}}
        block = photoapp_page.prefetched("PolarisLoggedOutDesktopWWWProfileReelsTabContentQuery", data)
        return photoapp_page.document(photoapp_page.REELS_ROUTE, (block,), light=self.light)

    def damaged(self, name: str, request: FakeRequest) -> FakeResponse:
        """Build the damaged response for a fault that only this app has. The response is the same for all clients."""
        if name in EMBED_FAULTS and request.path.endswith("/embed/captioned/"):
            return 200, {}, EMBED_FAULTS[name]
        return photoapp_faults.damaged(name, lambda: self.page(FakeRequest(request.path)), self._other_page)

    def _other_page(self) -> FakeResponse:
        """Render the page of another post."""
        post = self.posts[self.listed[1]]
        data = {"xig_polaris_media": photoapp_media.wrapper(post, ())}
        return 200, {}, self.document(post, photoapp_page.prefetched(photoapp_page.POST_QUERY, data))

    def catalogue(self) -> dict[str, Any]:
        """Return the photo app's posts and share links, and the shortcodes and tokens that select its faults."""
        return {
            "targets": TARGETS,
            "posts": {code: {"owner": self.posts[code].owner.username} for code in self.listed},
            "shares": self.shares,
            "faults": described(FAULTS, lambda name: {"url": self.url_of_fault(name)}),
        }

    def url_of_fault(self, name: str) -> str:
        """Return the URL of the target that has a fault."""
        (code,) = (code for code, fault in self.faults.items() if fault == name)
        return f"{photoapp_page.PUBLIC}/{'share/p' if name in SHARE_FAULTS else 'p'}/{code}/"

    # Expected records

    def expected_record(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return the exact record for the post at ``url``. ``plays``: whether the crawl also reads play counts.

        ``form`` (page, item or embed): return the record of a single response in this format.

        Raises:
            KeyError: the URL is missing, or the post does not exist.
        """
        path = urlsplit(params["url"]).path
        share, found = _SHARE.fullmatch(path), _POST.fullmatch(path.rstrip("/") + "/")
        code = self.shares[share["token"]] if share else found["code"] if found else path
        post = self.post(code)
        if post is None:
            raise KeyError(code)
        code = _unnumbered(code)
        served = (
            "embed"
            if self.faults.get(code) in {"page-walled", "null-page"}
            else "item"
            if post.layout == "item"
            else "page"
        )
        expected = record(post, params.get("form") or served, self.timeline(post.owner))
        if post.is_video and "form" not in params:
            if post.timing == "embed" and code not in self.faults:
                expected["video_duration"] = post.duration
            if params.get("plays") and post in self.reels(post.owner) and not post.hidden:
                expected["video_play_count"] = post.plays
        return {"data": {"xdt_shortcode_media": expected}, "success": True}


def _unnumbered(code: str) -> str:
    """Return the shortcode or token of a fault without its number: ``FAULT000001`` for ``FAULT017001``."""
    found = _FAULT.fullmatch(code)
    return f"FAULT000{found['fault']}" if found else code
