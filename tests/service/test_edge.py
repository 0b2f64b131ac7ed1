"""A connection without a reverse proxy: how long and how large requests may be, with a simulated clock."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
from twisted.internet.task import Clock
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request

from crawler.service.edge import (
    ARRIVAL_SECONDS,
    LINGER_SECONDS,
    UNREAD_SECONDS,
    UPLOAD_SECONDS,
    BodyLimits,
    Channel,
    EdgeSite,
)
from crawler.service.envelope import Answer
from crawler.service.route import MAX_BODY_BYTES
from tests.service.conftest import Service, running
from tests.service.in_process import Transport
from tests.soak.attacks import SLOW, Victim, slow_connections

GET = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
POST = b"POST /x HTTP/1.1\r\nHost: x\r\n"
UPLOAD = b"POST /upload HTTP/1.1\r\nHost: x\r\n"
MAX_UPLOAD_BYTES = 1_000_000


class Slow(Resource):
    """Responds to nothing before it is told to."""

    isLeaf = True

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[Request] = []

    def render(self, request: Request) -> int:
        self.requests.append(request)
        return NOT_DONE_YET


OPENED: list[Connection] = []


@pytest.fixture(autouse=True)
def all_closed() -> Iterator[None]:
    """Close the connections of a test: the bodies that have arrived are in temporary files."""
    yield
    while OPENED:
        OPENED.pop().channel.connectionLost()


@dataclass
class Connection:
    """A connection to the service's site, with a simulated clock."""

    admit: Callable[..., object] | None = None
    clock: Clock = field(default_factory=Clock)
    resource: Slow = field(default_factory=Slow)
    transport: Transport = field(default_factory=Transport)
    max_connections: int = 10

    def __post_init__(self) -> None:
        upload = BodyLimits(MAX_UPLOAD_BYTES, UPLOAD_SECONDS, self.admit)  # type: ignore[arg-type]
        OPENED.append(self)
        self.site = EdgeSite(self.resource, self.max_connections, {(b"POST", b"/upload"): upload})
        self.channel = self.connect(self.transport)

    def connect(self, transport: Transport) -> Channel:
        channel: Channel = self.site.buildProtocol(None)
        channel.callLater = self.clock.callLater  # type: ignore[assignment, method-assign]
        channel.makeConnection(transport)
        return channel

    def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.channel.dataReceived(piece)

    def closed_after(self, drip: bytes = b"", most: float = 1_000) -> float:
        """Let the time pass in steps of half a second, and send ``drip`` in each. Return when the connection closed."""
        while not self.transport.has_ended:
            if drip:
                self.send(drip)
            assert self.clock.seconds() < most, "the connection is still open"
            self.clock.advance(0.5)
        return self.clock.seconds()

    @property
    def refusal(self) -> tuple[int, str]:
        """The status and the error code that the client received."""
        return refusal_of(self.transport.value())


def refusal_of(received: bytes) -> tuple[int, str]:
    """Return the status and the code of the only response in some bytes, which must be an error envelope."""
    head, _, body = received.partition(b"\r\n\r\n")
    assert received.count(b"HTTP/1.1 ") == 1
    assert b"Content-Type: application/json" in head
    return int(head.split()[1]), json.loads(body)["error"]["code"]


@pytest.mark.parametrize(
    ("first", "drip"),
    [
        pytest.param(b"GET / HTTP/1.1\r\n", b"A: b\r\n", id="headers"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\nA: ", b"a", id="a header"),
        pytest.param(POST + b"Content-Length: 60000\r\n\r\n{", b" ", id="a body"),
        pytest.param(POST + b"Content-Length: 60000\r\n\r\n{", b"", id="a body that stops"),
        pytest.param(POST + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n", id="a chunked body without an end"),
        pytest.param(POST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"A: b\r\n", id="trailers without an end"),
    ],
)
def test_head_and_body_must_arrive_within_one_time(first: bytes, drip: bytes) -> None:
    client = Connection()
    client.send(first)
    assert client.closed_after(drip) == ARRIVAL_SECONDS + LINGER_SECONDS
    assert client.refusal == (400, "INVALID_REQUEST")


@pytest.mark.parametrize("drip", [b"", b"G"])
def test_a_connection_without_a_request_is_closed(drip: bytes) -> None:
    client = Connection()
    assert client.closed_after(drip) == ARRIVAL_SECONDS
    assert client.transport.value() == b""


def test_a_head_does_not_give_its_body_more_time() -> None:
    client = Connection()
    client.send(b"POST /x HTTP/1.1\r\n")
    client.clock.advance(ARRIVAL_SECONDS - 1)
    client.send(b"Host: x\r\nContent-Length: 2\r\n\r\n{")
    client.clock.advance(1)
    assert client.refusal == (400, "INVALID_REQUEST")


def test_a_call_may_take_longer_than_its_arrival_and_the_next_one_has_the_full_time() -> None:
    client = Connection()
    client.send(GET)
    client.clock.advance(10 * ARRIVAL_SECONDS)
    client.resource.requests[0].finish()
    client.clock.advance(ARRIVAL_SECONDS - 1)
    client.send(GET)
    client.clock.advance(10 * ARRIVAL_SECONDS)
    assert len(client.resource.requests) == 2
    assert not client.transport.disconnecting
    client.resource.requests[1].finish()
    assert client.closed_after() == 10 * ARRIVAL_SECONDS + 10 * ARRIVAL_SECONDS + ARRIVAL_SECONDS - 1 + ARRIVAL_SECONDS


# Responses that are not read: the transport pauses its producer, the channel, while its buffer is full


def test_an_unread_response_closes_the_connection_and_no_further_request_is_parsed() -> None:
    client = Connection()
    client.send(GET * 3)
    client.channel.pauseProducing()
    client.resource.requests[0].write(b"large")
    client.resource.requests[0].finish()
    client.channel.pauseProducing()  # as the transport does for each further piece: the clock must not start again
    assert len(client.resource.requests) == 1
    assert client.closed_after() == UNREAD_SECONDS


def test_a_response_that_is_read_late_is_followed_by_the_next_one() -> None:
    client = Connection()
    client.send(GET * 2)
    client.channel.pauseProducing()
    client.resource.requests[0].finish()
    client.clock.advance(UNREAD_SECONDS - 1)
    client.channel.resumeProducing()
    client.clock.advance(10 * UNREAD_SECONDS)
    assert len(client.resource.requests) == 2
    assert not client.transport.disconnecting


def test_the_rest_of_a_last_response_must_be_read_in_time() -> None:
    """The part that fits into the transport's buffer does not pause the channel."""
    client = Connection()
    client.send(GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    client.resource.requests[0].finish()
    assert client.transport.disconnecting, "closed as soon as the client has read the rest"
    client.clock.advance(UNREAD_SECONDS)
    assert not client.transport.disconnected
    client.clock.advance(LINGER_SECONDS)
    assert client.transport.disconnected


def test_a_last_request_after_others_may_take_its_time() -> None:
    client = Connection()
    client.send(GET + GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    client.resource.requests[0].finish()
    client.clock.advance(10 * UNREAD_SECONDS)
    assert len(client.resource.requests) == 2
    assert not client.transport.disconnecting


# Bodies


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        pytest.param(POST + b"Content-Length: %d\r\n\r\n" % (MAX_BODY_BYTES + 1), 413, id="a declared length"),
        pytest.param(POST + b"Content-Length: %s\r\n\r\n" % (b"9" * 18), 413, id="a length of 18 digits"),
        pytest.param(POST + b"Content-Length: %s\r\n\r\n" % (b"9" * 19), 400, id="a length of 19 digits"),
        pytest.param(POST + b"Content-Length: %s\r\n\r\n" % (b"0" * 5_000), 400, id="a length of 5,000 digits"),
        pytest.param(
            POST + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n" % (MAX_BODY_BYTES + 1, bytes(MAX_BODY_BYTES + 1)),
            413,
            id="a chunk",
        ),
        pytest.param(
            POST + b"Transfer-Encoding: chunked\r\n\r\n" + b"8000\r\n%s\r\n" % bytes(0x8000) * 3, 413, id="three chunks"
        ),
        pytest.param(
            UPLOAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"8000\r\n%s\r\n" % bytes(0x8000) * 31, 413, id="an upload"
        ),
    ],
)
def test_a_body_above_the_limit_of_its_route_is_refused(sent: bytes, status: int) -> None:
    client = Connection()
    for start in range(0, len(sent), 1_000):
        client.send(sent[start : start + 1_000])
    assert client.refusal == (status, "PAYLOAD_TOO_LARGE" if status == 413 else "INVALID_REQUEST")
    assert client.closed_after() == LINGER_SECONDS
    assert client.resource.requests == []


@pytest.mark.parametrize(
    ("head", "size"),
    [(POST, MAX_BODY_BYTES), (UPLOAD, MAX_UPLOAD_BYTES)],
    ids=["a call", "an upload"],
)
def test_a_body_of_the_largest_size_arrives_with_both_codings(head: bytes, size: int) -> None:
    for sent in (
        b"Content-Length: %d\r\n\r\n%s" % (size, bytes(size)),
        b"Transfer-Encoding: chunked\r\n\r\n" + b"%x\r\n%s\r\n" % (size // 2, bytes(size // 2)) * 2 + b"0\r\n\r\n",
    ):
        client = Connection()
        client.send(head + sent)
        (request,) = client.resource.requests
        assert request.content is not None
        assert len(request.content.read()) == size


CHUNKED = b"Transfer-Encoding: chunked\r\n"
BODY = b'{"cat_id": "976759"}'
WRONG_LINES = {
    "an asterisk as the target": b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
    "an authority as the target": b"CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n",
    "a relative target": b"GET healthz HTTP/1.1\r\nHost: x\r\n\r\n",
    "a target without a path": b"OPTIONS ? HTTP/1.1\r\nHost: x\r\n\r\n",
    "a URL of another protocol": b"GET ftp://x/healthz HTTP/1.1\r\nHost: x\r\n\r\n",
    "a path of 100 KB": b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
    "spaces in the path": b"GET /health z HTTP/1.1\r\n\r\n",
    "a NUL in the path": b"GET /\x00 HTTP/1.1\r\n\r\n",
    "no version": b"GET /healthz\r\n\r\n",
    "another protocol": b"GET /healthz SIP/2.0\r\n\r\n",
    "HTTP/2 before TLS": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "TLS": bytes.fromhex("16030100a5010000a10303") + b"\x00\r\n\r\n",
    "one long line": b"a" * 60_000,
    "two hosts in HTTP/1.0": b"GET /healthz HTTP/1.0\r\nHost: x\r\nHost: x\r\n\r\n",
}
WRONG_HEADERS = {
    "no host": b"\r\n",
    "two hosts": b"Host: x\r\nHost: x\r\n\r\n",
    "a folded header": b"Host: x\r\nX: y\r\n z\r\n\r\n",
    "a folded host": b"Host:\r\n\tx\r\n\r\n",
    "a header without a colon": b"Host x\r\n\r\n",
    "a header without a name": b": x\r\n\r\n",
    "a header with a NUL": b"X: a\x00b\r\n\r\n",
    "a header with a bare line feed": b"X: a\nY: b\r\n\r\n",
    "a header with a bare return": b"X: a\rY: b\r\n\r\n",
    "a header name of 20 KB": b"a" * 20_000 + b": x\r\n\r\n",
    "501 headers": b"X: y\r\n" * 501 + b"\r\n",
}
WRONG_BODIES = {
    "length and chunked": CHUNKED + b"Content-Length: 4\r\n\r\n0\r\n\r\n",
    "chunked and length": b"Content-Length: 4\r\n" + CHUNKED + b"\r\n0\r\n\r\n",
    "two lengths": b"Content-Length: 20\r\nContent-Length: 0\r\n\r\n" + BODY,
    "the same length twice": b"Content-Length: 20\r\nContent-Length: 20\r\n\r\n" + BODY,
    "a list of lengths": b"Content-Length: 20, 20\r\n\r\n" + BODY,
    "a length with a sign": b"Content-Length: +20\r\n\r\n" + BODY,
    "a negative length": b"Content-Length: -1\r\n\r\n" + BODY,
    "a hexadecimal length": b"Content-Length: 0x14\r\n\r\n" + BODY,
    "a length in other digits": "Content-Length: ٢٠\r\n\r\n".encode() + BODY,
    "an empty length": b"Content-Length: \r\n\r\n" + BODY,
    "a space before the colon": b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "an unknown encoding": b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "two encodings": b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "two headers of encodings": CHUNKED + b"Transfer-Encoding: identity\r\n\r\n",
    "identity first": b"Transfer-Encoding: identity\r\n" + CHUNKED + b"\r\n",
    "identity and a length": b"Transfer-Encoding: identity\r\nContent-Length: 20\r\n\r\n" + BODY,
    "chunked twice": CHUNKED + CHUNKED + b"\r\n0\r\n\r\n",
    "a control character in the encoding": b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
    "a chunk of negative size": CHUNKED + b"\r\n-1\r\nx\r\n0\r\n\r\n",
    "a chunk size with a prefix": CHUNKED + b"\r\n0x14\r\n" + BODY + b"\r\n0\r\n\r\n",
    "a chunk size with an underscore": CHUNKED + b"\r\n1_4\r\n" + BODY + b"\r\n0\r\n\r\n",
    "an endless chunk size": CHUNKED + b"\r\n" + b"f" * 40_000,
    "a chunk without an end": CHUNKED + b"\r\n2\r\n{}XX0\r\n\r\n",
}
FORBIDDEN = {
    **WRONG_LINES,
    **{name: b"GET /healthz HTTP/1.1\r\n" + sent for name, sent in WRONG_HEADERS.items()},
    **{name: POST + sent for name, sent in WRONG_BODIES.items()},
}


@pytest.mark.parametrize("sent", FORBIDDEN.values(), ids=FORBIDDEN)
def test_a_request_that_http_forbids_is_refused_and_nothing_after_it_is_parsed(sent: bytes) -> None:
    client = Connection()
    client.send(sent + GET)
    assert client.refusal == (400, "INVALID_REQUEST")
    assert client.closed_after() == LINGER_SECONDS
    assert client.resource.requests == []


@pytest.mark.parametrize(
    ("target", "path"), [(b"http://x:1/healthz?a=b", b"/healthz?a=b"), (b"HTTPS://x", b"/"), (b"http://x?a", b"/?a")]
)
def test_a_url_is_a_valid_target(target: bytes, path: bytes) -> None:
    client = Connection()
    client.send(b"GET " + target + b" HTTP/1.1\r\nHost: x\r\n\r\n")
    (request,) = client.resource.requests
    assert request.uri == path


# Uploads, which are admitted before their body


@dataclass
class Admission:
    """Admits or refuses an upload when it is told to."""

    answer: Answer | None = None
    released: int = 0
    queries: list[bytes] = field(default_factory=list)
    decides: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, request: Request, query: bytes) -> Answer | Callable[[], None]:
        self.queries.append(query)
        await self.decides.wait()
        return self.answer or self.release

    def release(self) -> None:
        self.released += 1


async def decided(admission: Admission) -> None:
    admission.decides.set()
    for _ in range(3):
        await asyncio.sleep(0)


HEAD_OF_UPLOAD = b"POST /upload?name=a HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 900000\r\n\r\n"
REFUSED = Answer(
    401, {"Content-Type": "application/json"}, b'{"error": {"code": "INVALID_API_KEY"}}', "INVALID_API_KEY"
)


def begun_upload(answer: Answer | None = None) -> tuple[Admission, Connection]:
    """Send the head of an upload."""
    admission = Admission(answer)
    client = Connection(admission)
    client.send(HEAD_OF_UPLOAD)
    return admission, client


async def test_an_upload_is_refused_before_its_body() -> None:
    admission, client = begun_upload(REFUSED)
    await asyncio.sleep(0)
    assert admission.queries == [b"name=a"]
    assert client.transport.producerState == "paused", "the body is not read before the upload is admitted"
    await decided(admission)
    assert client.refusal == (401, "INVALID_API_KEY")
    assert client.closed_after() == LINGER_SECONDS


async def test_an_upload_may_take_longer_but_not_forever() -> None:
    admission, client = begun_upload()
    await decided(admission)
    assert client.transport.value() == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert client.transport.producerState == "producing"
    client.transport.clear()
    assert client.closed_after(b"x") == UPLOAD_SECONDS + LINGER_SECONDS
    assert client.refusal == (400, "INVALID_REQUEST")
    client.channel.connectionLost()
    assert admission.released == 1


async def test_the_time_of_an_upload_is_not_that_of_the_next_request() -> None:
    admission, client = begun_upload()
    await decided(admission)
    client.send(bytes(900_000))
    assert admission.released == 1
    client.resource.requests[0].finish()
    assert client.closed_after() == ARRIVAL_SECONDS


async def test_an_upload_that_is_never_admitted_is_closed_in_time() -> None:
    admission, client = begun_upload()
    assert client.closed_after() == ARRIVAL_SECONDS + LINGER_SECONDS
    await decided(admission)
    assert admission.released == 1, "its place is free"


async def test_a_client_that_leaves_frees_the_place_of_its_upload() -> None:
    admission, client = begun_upload()
    await decided(admission)
    client.channel.connectionLost()
    assert admission.released == 1


# Numbers of connections


def test_connections_above_the_limit_are_refused_and_closed_ones_are_not_counted() -> None:
    client = Connection(max_connections=1)
    transport = Transport()
    second = client.connect(transport)
    assert refusal_of(transport.value()) == (503, "OVERLOADED")
    assert transport.disconnecting
    for channel in (client.channel, second):
        channel.connectionLost()
    assert client.site.connections == 0


# A real service, whose times are short


@pytest.fixture(scope="module")
def hurried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    short = "from crawler.service import edge; edge.ARRIVAL_SECONDS = edge.UNREAD_SECONDS = 1.0"
    with running(tmp_path_factory.mktemp("hurried") / "log", before=short) as service:
        yield service


def test_no_slow_connection_stays_open_and_each_refusal_has_an_envelope(hurried: Service) -> None:
    report = slow_connections(Victim(hurried.url, hurried.pid), seconds=2, idle=100)
    assert report.notes["open"] == 0
    late, wrong_key = (400, "INVALID_REQUEST"), (401, "INVALID_API_KEY")
    refusals = {
        kind: {refusal_of(each) for each in received if each} for kind, received in report.notes["received"].items()
    }
    assert refusals == {
        "dripped heads": {late},
        "dripped bodies": {late},
        "chunked bodies without an end": {late},
        "stalled uploads with a wrong key": {wrong_key},
        "unread pipelines": set(),
        "unread last responses": set(),
        "idle connections": set(),
    }
    assert refusals.keys() == SLOW.keys()
    assert "Traceback" not in hurried.logged()
