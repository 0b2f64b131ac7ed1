"""The guest token of a process: one request at a time, reuse, invalidation, and the pause after a refusal."""

from __future__ import annotations

import asyncio
import time

import pytest

from crawler.downloads.shared_state import SharedState
from crawler.errors import UpstreamBlocked, UpstreamRateLimited, UpstreamTimeout
from crawler.platforms.microblog.guest import SharedToken


class Platform:
    """Issues tokens, and counts the requests for them."""

    def __init__(self, error: Exception | None = None) -> None:
        self.requests = 0
        self.error = error

    async def fetch(self) -> str:
        self.requests += 1
        number = self.requests
        await asyncio.sleep(0)
        if self.error:
            raise self.error
        return f"token {number}"


def test_concurrent_targets_share_one_request() -> None:
    async def run() -> None:
        platform, token = Platform(), SharedToken(60)
        found = await asyncio.gather(*(token.get(platform.fetch) for _ in range(50)))
        assert (set(found), platform.requests, token.value) == ({"token 1"}, 1, "token 1")

    asyncio.run(run())


def test_a_rejected_token_is_renewed_once_for_all_targets() -> None:
    async def run() -> None:
        platform, token = Platform(), SharedToken(60)
        old = await token.get(platform.fetch)

        async def renew() -> str:
            token.invalidate(old)
            return await token.get(platform.fetch)

        assert set(await asyncio.gather(*(renew() for _ in range(20)))) == {"token 2"}
        assert platform.requests == 2

    asyncio.run(run())


def test_a_token_expires() -> None:
    async def run() -> None:
        platform, token = Platform(), SharedToken(0)
        assert [await token.get(platform.fetch) for _ in range(2)] == ["token 1", "token 2"]
        assert token.value == ""

    asyncio.run(run())


@pytest.mark.parametrize(
    ("error", "requests"), [(UpstreamBlocked("no", reason="token_refused"), 1), (UpstreamTimeout("late"), 3)]
)
def test_only_a_refusal_starts_a_pause(error: Exception, requests: int) -> None:
    async def run() -> None:
        platform, token = Platform(error), SharedToken(60, pause=60)
        for _ in range(3):
            with pytest.raises(type(error)):
                await token.get(platform.fetch)
        assert (platform.requests, token.value) == (requests, "")

    asyncio.run(run())


@pytest.mark.parametrize("stated", [None, 600, 2_000_000_000])
def test_a_rate_limited_token_is_kept_beyond_its_lifetime(stated: int | None) -> None:
    async def run() -> None:
        platform, token = Platform(), SharedToken(0)
        limited = await token.get(platform.fetch)
        token.keep(limited, UpstreamRateLimited("limited", retry_after=stated))
        assert [await token.get(platform.fetch) for _ in range(3)] == [limited] * 3
        assert token._until <= time.monotonic() + 3_600
        token.invalidate(limited)
        assert await token.get(platform.fetch) == "token 2", "a rejection is not a rate limit"

    asyncio.run(run())


def test_only_the_current_token_is_kept() -> None:
    async def run() -> None:
        platform, token = Platform(), SharedToken(60)
        limit = UpstreamRateLimited("limited", retry_after=60)
        token.keep("", limit)
        assert (token.value, await token.get(platform.fetch)) == ("", "token 1")
        token.invalidate("token 1")
        token.keep("token 1", limit)
        assert await token.get(platform.fetch) == "token 2", "a rejected token stays rejected"

    asyncio.run(run())


def test_a_stated_pause_between_token_requests_is_waited_for() -> None:
    async def run() -> None:
        platform, token = Platform(UpstreamRateLimited("limited", retry_after=600)), SharedToken(60, pause=0)
        for _ in range(3):
            with pytest.raises(UpstreamRateLimited):
                await token.get(platform.fetch)
        assert platform.requests == 1

    asyncio.run(run())


def test_each_origin_has_its_own_token() -> None:
    shared = SharedState()
    one = shared.get(SharedToken, "http://one.test", lambda: SharedToken(1))
    assert one is shared.get(SharedToken, "http://one.test", lambda: SharedToken(1))
    assert one is not shared.get(SharedToken, "http://two.test", lambda: SharedToken(1))
