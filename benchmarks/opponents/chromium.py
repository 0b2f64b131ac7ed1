"""Loads pages in Chromium with Playwright alone: a fresh context for each page, and the same waits as this project.

Usage: python -m benchmarks.opponents.chromium EXECUTABLE PATH USER_AGENT

Each line of the standard input is a JSON array: a URL, and for how many responses to requests for PATH to wait. After
each response but the last, the page is scrolled to its end. Each line of the output is the number of received bytes.
"""

from __future__ import annotations

import asyncio
import json
import sys
from urllib.parse import urlsplit

from playwright.async_api import Browser, Response, async_playwright

RENDER_SECONDS = 0.05
"""Seconds in which the page renders a response before it is scrolled: those of this project."""
TIMEOUT_SECONDS = 30
LOOPBACK_ONLY = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"
SCROLL = """() => {
    for (const element of [document.scrollingElement, ...document.querySelectorAll("main")]) {
        element?.scrollTo(0, element.scrollHeight);
    }
}"""


async def load(browser: Browser, url: str, path: str, responses: int, user_agent: str) -> int:
    """Load a page and wait for its responses. Return the number of bytes of the responses and of the page."""
    received: asyncio.Queue[Response] = asyncio.Queue()

    def on_response(response: Response) -> None:
        if urlsplit(response.url).path == path:
            received.put_nowait(response)

    context = await browser.new_context(locale="en-US", user_agent=user_agent)
    page = await context.new_page()
    page.on("response", on_response)
    await page.goto(url, wait_until="commit")
    size = 0
    for number in range(responses):
        if number:
            await asyncio.sleep(RENDER_SECONDS)
            await page.evaluate(SCROLL)
        response = await asyncio.wait_for(received.get(), TIMEOUT_SECONDS)
        size += len(await response.body())
    size += len(await page.content())
    await context.close()
    return size


async def main(executable: str, path: str, user_agent: str) -> None:
    """Load the pages of the standard input."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=executable, args=[LOOPBACK_ONLY])
        while line := await asyncio.to_thread(sys.stdin.readline):
            url, responses = json.loads(line)
            print(await load(browser, url, path, responses, user_agent), flush=True)
        await browser.close()


asyncio.run(main(*sys.argv[1:]))
