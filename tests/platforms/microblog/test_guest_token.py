"""A token for all of a process: asked for once at a time, kept, forgotten when refused, not asked for in vain."""

from __future__ import annotations

import asyncio

import pytest

from crawler.downloads.shared import SharedState
from crawler.errors import UpstreamBlocked, UpstreamTimeout
from crawler.platforms.microblog.guest_token import SharedToken


class Platform:
    """Hands out tokens, and counts them."""

    def __init__(self, error: Exception | None = None) -> None:
        self.asked = 0
        self.error = error

    async def ask(self) -> str:
        self.asked += 1
        number = self.asked
        await asyncio.sleep(0)
        if self.error:
            raise self.error
        return f"token {number}"


def test_many_wait_for_one() -> None:
    async def run() -> None:
        platform, token = Platform(), SharedToken(60)
        found = await asyncio.gather(*(token.get(platform.ask) for _ in range(50)))
        assert (set(found), platform.asked, token.value) == ({"token 1"}, 1, "token 1")

    asyncio.run(run())


def test_a_refused_token_is_renewed_once_for_all_who_had_it() -> None:
    async def run() -> None:
        platform, token = Platform(), SharedToken(60)
        old = await token.get(platform.ask)

        async def again() -> str:
            token.refused(old)
            return await token.get(platform.ask)

        assert set(await asyncio.gather(*(again() for _ in range(20)))) == {"token 2"}
        assert platform.asked == 2

    asyncio.run(run())


def test_it_ages() -> None:
    async def run() -> None:
        platform, token = Platform(), SharedToken(0)
        assert [await token.get(platform.ask) for _ in range(2)] == ["token 1", "token 2"]
        assert token.value == ""

    asyncio.run(run())


@pytest.mark.parametrize(
    ("error", "asked"), [(UpstreamBlocked("no", reason="token_refused"), 1), (UpstreamTimeout("late"), 3)]
)
def test_a_refusal_is_believed_for_a_while_and_an_accident_is_not(error: Exception, asked: int) -> None:
    async def run() -> None:
        platform, token = Platform(error), SharedToken(60, pause=60)
        for _ in range(3):
            with pytest.raises(type(error)):
                await token.get(platform.ask)
        assert (platform.asked, token.value) == (asked, "")

    asyncio.run(run())


def test_one_for_each_origin() -> None:
    shared = SharedState()
    one = shared.get(SharedToken, "http://one.test", lambda: SharedToken(1))
    assert one is shared.get(SharedToken, "http://one.test", lambda: SharedToken(1))
    assert one is not shared.get(SharedToken, "http://two.test", lambda: SharedToken(1))
