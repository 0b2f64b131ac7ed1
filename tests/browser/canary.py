"""Crawls a page that tries to reach private networks, and prints the addresses that it reached. ``test_proxy.py`` runs
it.

It runs as root of its own network namespace: ``unshare --net --mount python -m tests.browser.canary open|closed HOST
...``. With ``open``, the page may connect to public addresses, as those of a platform may. All addresses there are
addresses of the loopback interface, and all names are resolved by a stub.
"""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from scrapy.crawler import Crawler

from crawler.browser.handler import BrowserHandler
from tests.crawls import ROOT, command

PORT = 8099
"""The TCP and UDP port on which the canary listens, on all addresses."""
PUBLIC = "1.2.3.4"
"""An address that the proxy considers public. The page must reach it, which shows that the test works."""
OWN_PUBLIC = "5.6.7.8"
PRIVATE = ("10.1.2.3", "172.16.9.9", "192.168.7.7", "100.100.100.200", "169.254.169.254", "168.63.129.16", OWN_PUBLIC)
PRIVATE_V6 = ("fd00::5", "fd00:ec2::254")
NAMES = {"private.test": ["10.1.2.3"], "mixed.test": [PUBLIC, "10.1.2.3"], "public.test": [PUBLIC]}
"""Addresses by name. The addresses of all other names change with each query: first a public one, then loopback."""
REBINDING = "rebinding.test"
HOSTS = (
    "public.test",
    *("127.0.0.1", "127.0.0.2", "localhost", "2130706433", "0.0.0.0", "[::1]", "[::]", "[::ffff:127.0.0.1]"),
    *PRIVATE,
    *(f"[{address}]" for address in PRIVATE_V6),
    *("private.test", "mixed.test", REBINDING),
)
ONE_OF_EACH_KIND = (
    *("public.test", "127.0.0.1", "10.1.2.3", OWN_PUBLIC, "[fd00::5]"),
    *("private.test", "mixed.test", REBINDING),
)


class OpenPages:
    """Extension that lets the pages of a local server connect to public addresses, as those of a platform may."""

    @classmethod
    def from_crawler(cls, _crawler: Crawler) -> OpenPages:
        BrowserHandler.is_closed = staticmethod(lambda *_: False)  # type: ignore[method-assign,assignment]
        return cls()


class Canary:
    """Counts the connections and packets to ``PORT`` by destination. Also serves the page, and answers DNS queries."""

    def __init__(self) -> None:
        self.hits: Counter[str] = Counter()
        self.tried: Counter[str] = Counter()
        self.queries: Counter[str] = Counter()

    async def run(self) -> tuple[int, str]:
        """Crawl the page, and return the crawl's exit code and log."""
        await asyncio.start_server(self.hit, ["0.0.0.0", "::"], PORT)
        loop = asyncio.get_running_loop()
        for port, receive in ((PORT, self.packet), (53, self.query)):
            receiver = socket.socket(socket.AF_INET6 if port == PORT else socket.AF_INET, socket.SOCK_DGRAM)
            receiver.setblocking(False)  # noqa: FBT003  # takes no keyword
            receiver.bind(("::" if port == PORT else "127.0.0.1", port))
            loop.add_reader(receiver, receive, receiver)
        server = await asyncio.start_server(self.page, "127.0.0.1", 0)
        origin = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        with tempfile.TemporaryDirectory() as folder:
            settings = {
                "PLATFORM_ORIGINS": json.dumps({"shortvideo": origin}),
                "EXTENSIONS": json.dumps({"tests.browser.canary.OpenPages": 0} if sys.argv[1] == "open" else {}),
                "BROWSER_BLOCKED_TYPES": "[]",
                "BROWSER_QUIET": 8,
                "RETRY_TIMES": 0,
                "DOWNLOAD_TIMEOUT": 600,  # a slow machine takes minutes to try all hosts in all ways
                "LOG_LEVEL": "DEBUG",
                "FAILURES_FEED": f"{folder}/failures.jsonl",
            }
            start = command("shortvideo", {"keywords": "whales"}, settings, "-O", f"{folder}/out.jsonl")
            crawl = await asyncio.create_subprocess_exec(*start, cwd=ROOT, stderr=subprocess.PIPE)
            _, log = await crawl.communicate()
        assert crawl.returncode is not None
        return crawl.returncode, log.decode()

    async def hit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Count a connection."""
        way = (await reader.read(100)).decode("latin-1").partition(" HTTP/")[0]
        self.hits[f"{writer.get_extra_info('sockname')[0]} {way}"] += 1
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()

    def packet(self, receiver: socket.socket) -> None:
        """Count a UDP packet."""
        self.hits[f"UDP {receiver.recv(100)!r}"] += 1

    def query(self, receiver: socket.socket) -> None:
        """Answer a DNS query."""
        data, client = receiver.recvfrom(2000)
        end, labels = 12, []
        while data[end]:
            labels.append(data[end + 1 : end + 1 + data[end]].decode())
            end += data[end] + 1
        name, kind = ".".join(labels).lower(), int.from_bytes(data[end + 1 : end + 3])
        found: list[str] = []
        if kind == 1:
            self.queries[name] += 1
            found = NAMES.get(name, [])
            if name == REBINDING:
                found = [PUBLIC if self.queries[name] == 1 else "127.0.0.1"]
        counts = b"\x00\x01" + len(found).to_bytes(2) + bytes(4)
        answers = (b"\xc0\x0c\x00\x01\x00\x01" + bytes(4) + b"\x00\x04" + socket.inet_aton(each) for each in found)
        receiver.sendto(data[:2] + b"\x81\x80" + counts + data[12 : end + 5] + b"".join(answers), client)

    async def page(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve the page, its workers, its redirects and its reports."""
        head = await reader.readuntil(b"\r\n\r\n")
        url = urlsplit(head.split()[1].decode())
        status, headers, body = "200 OK", "Content-Type: text/html", b""
        if url.path == "/redirect":
            status, headers = "302 Found", f"Location: {unquote(url.query)}"
        elif url.path == "/report":
            query = parse_qs(url.query)
            self.tried[query["host"][0]] = int(query["ways"][0])
        elif url.path == "/worker.js":
            headers = "Content-Type: text/javascript"
            body = b"const host = location.search.slice(1); fetch(`http://${host}/worker`, {mode: 'no-cors'});"
            body += b"new WebSocket(`ws://${host}/worker`);"
        else:
            page = (Path(__file__).parent / "canary.html").read_text()
            body = page.replace("CANARIES", json.dumps([f"{host}:{PORT}" for host in sys.argv[2:]])).encode()
        writer.write(f"HTTP/1.1 {status}\r\n{headers}\r\nContent-Length: {len(body)}\r\n".encode())
        writer.write(b"Connection: close\r\n\r\n" + body)
        writer.close()


def isolate() -> None:
    """Set up the addresses and name resolution of the namespace."""
    run = lambda *arguments: subprocess.run(["ip", *arguments], check=True)  # noqa: E731, S607
    run("link", "set", "lo", "up")
    for address in PRIVATE:
        run("address", "add", f"{address}/32", "dev", "lo")
    for address in PRIVATE_V6:
        run("address", "add", f"{address}/128", "dev", "lo")
    run("route", "add", "local", PUBLIC, "dev", "lo", "src", "127.0.0.1")  # reachable, but not an address of this host
    with tempfile.TemporaryDirectory() as folder:
        for file, text in (("resolv.conf", "nameserver 127.0.0.1\n"), ("nsswitch.conf", "hosts: files dns\n")):
            own = Path(folder) / file
            own.write_text(text)
            subprocess.run(["mount", "--bind", own, Path("/etc") / file], check=True)  # noqa: S607


if __name__ == "__main__":
    isolate()
    canary = Canary()
    code, log = asyncio.run(canary.run())
    results = {"hits": canary.hits, "tried": canary.tried, "queries": canary.queries, "code": code, "log": log}
    json.dump(results, sys.stdout)
