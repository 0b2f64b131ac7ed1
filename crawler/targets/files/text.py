"""Decodes text files: detects their encoding, reads their lines up to a maximum length, and reads plain lists: one id,
handle, URL or search text per line.
"""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import IO, NamedTuple, Self

from pydantic import ValidationError

from crawler.errors import InvalidRequest
from crawler.platforms.links import LinkError, cleaned, is_host, is_link, read_link
from crawler.platforms.model import Params
from crawler.targets.files.rows import COMMAND, MAX_LINE_CHARACTERS, Row, UnreadableFileError, Words, replaced_value
from crawler.targets.parser import TargetParser, required_params
from crawler.targets.target import Scraper

HEAD_BYTES = 64 * 1024
"""Bytes at the start of a file from which its format and encoding are determined."""
CHUNK_BYTES = 16 * 1024
"""Bytes of a JSON array that are read at once."""

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_LINE_END = re.compile("\r\n?|\n")
_MARK = "crawler.targets.mark"
"""Name of the error handler that turns undecodable bytes into marks (``rows.UNDECODABLE``), in all encodings."""


def _mark(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "".join(chr(0xDC00 + byte) for byte in error.object[error.start : error.end]), error.end


codecs.register_error(_MARK, _mark)


def check_encoding(name: str) -> str:
    """Return the canonical name of a text encoding.

    Raises:
        ValueError: Python has no text encoding with this name, or it is UTF-32.
    """
    try:
        "".encode(name)  # LookupError also for codecs that do not decode to text, such as zlib
        canonical = codecs.lookup(name).name
    except (LookupError, UnicodeError):
        raise ValueError(f"{name!r} is not an encoding: write a name such as cp1252, latin-1 or shift_jis") from None
    if canonical.startswith("utf-32"):
        raise ValueError("UTF-32 is not read: save the file as UTF-8")
    return "utf-8" if canonical == "utf-8-sig" else canonical


class Line(NamedTuple):
    """A line with its line end. ``is_cut``: it was longer than the limit, and the rest was skipped."""

    number: int
    text: str
    is_cut: bool


@dataclass(frozen=True)
class TextFile:
    """A file of text and its encoding. Bytes that are not valid in the encoding become marks (``rows.UNDECODABLE``)."""

    file: IO[bytes]
    head: bytes
    """The first bytes of the file, without its byte order mark."""
    encoding: str
    bom: bytes
    encoding_is_given: bool
    words: Words = COMMAND

    @classmethod
    def of(cls, file: IO[bytes], encoding: str | None, words: Words = COMMAND) -> Self:
        """Detect the encoding of a file: the encoding of its byte order mark, else the given encoding, else UTF-8.

        The byte order mark takes precedence, because the files of a glob may have different encodings.

        Raises:
            UnreadableFileError: the file is UTF-32, or is probably UTF-8 and not in the given encoding.
        """
        head = file.read(HEAD_BYTES)
        if head.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):  # the first begins with the mark of UTF-16
            raise UnreadableFileError(1, "the file is UTF-32, which is not read: save it as UTF-8.")
        for bom, name in _BOMS:
            if head.startswith(bom):
                return cls(file, head[len(bom) :], name, bom, encoding_is_given=False, words=words)
        text = cls(file, head, encoding or "utf-8", b"", encoding_is_given=encoding is not None, words=words)
        if text.encoding_is_given and text._is_utf8_instead():
            raise UnreadableFileError(1, f"the file is UTF-8, not {text.encoding.upper()}: leave out {words.encoding}")
        return text

    @property
    def start(self) -> str:
        """The text at the start of the file, or an empty text for a file without content."""
        return self._decode_head(_MARK).lstrip()

    def _decode_head(self, errors: str, encoding: str | None = None) -> str:
        decoder = codecs.getincrementaldecoder(encoding or self.encoding)(errors)
        return decoder.decode(self.head, final=len(self.head) + len(self.bom) < HEAD_BYTES)

    def check(self) -> None:
        """Check that the start of the file is text in its encoding.

        Raises:
            UnreadableFileError: the start is not such text. The message suggests what to do.
        """
        name = self.encoding.upper()
        if not self._is_wide and self.head.count(b"\0") * 4 > len(self.head):
            raise UnreadableFileError(
                1,
                f"not {name}, but perhaps UTF-16 without a byte order mark: name its encoding, "
                f"{self.words.encoding}utf-16-le.",
            )
        try:
            self._decode_head("strict")
        except UnicodeDecodeError as error:
            before = error.object[: error.start].decode(self.encoding, "ignore")
            example = f"name its encoding, such as {self.words.encoding}cp1252"
            hint = "name another encoding" if self.encoding_is_given else example
            byte = error.object[error.start]
            raise UnreadableFileError(
                len(_LINE_END.findall(before)) + 1,
                f"not valid {name} (byte 0x{byte:02x}). Save the file as UTF-8, or {hint}.",
            ) from None

    @property
    def _is_wide(self) -> bool:
        """Whether the encoding is UTF-16, in which line ends contain null bytes."""
        return b"\0" in "\n".encode(self.encoding)

    def _is_utf8_instead(self) -> bool:
        """Whether the file is probably UTF-8, which the given encoding would decode to "MÃ¼sli" instead of "Müsli"."""
        if self._is_wide:
            possible = b"\0" not in self.head
        else:  # a multi-byte encoding such as GBK may have the same bytes for other characters
            one_byte_per_character = len(bytes(range(256)).decode(self.encoding, "replace")) == 256
            possible = one_byte_per_character and not self.head.isascii()
        try:
            self._decode_head("strict", "utf-8")
        except UnicodeDecodeError:
            return False
        return possible and self.encoding != "utf-8"

    def lines(self) -> Iterator[Line]:
        r"""Yield the lines, which end with ``\n``, ``\r\n`` or ``\r``."""
        self.file.seek(len(self.bom))
        is_mac = b"\r" in self.head and b"\n" not in self.head  # line ends of old Macintosh programs
        newline, ends = ("", ("\n", "\r")) if self._is_wide or is_mac else ("\n", ("\n",))
        text = io.TextIOWrapper(self.file, self.encoding, _MARK, newline=newline)
        number = 0
        try:
            while line := text.readline(MAX_LINE_CHARACTERS):
                number += 1
                is_cut = len(line) == MAX_LINE_CHARACTERS and not line.endswith(ends)
                yield Line(number, line, is_cut)
                while is_cut and (rest := text.readline(MAX_LINE_CHARACTERS)) and not rest.endswith(ends):
                    pass
        finally:
            with suppress(ValueError):  # the caller closes the file, perhaps before this generator is closed
                text.detach()

    def chunks(self) -> Iterator[str]:
        """Yield the text in pieces."""
        self.file.seek(len(self.bom))
        decoder = codecs.getincrementaldecoder(self.encoding)(_MARK)
        while chunk := self.file.read(CHUNK_BYTES):
            yield decoder.decode(chunk)
        yield decoder.decode(b"", final=True)


_COMMENT = re.compile(r"#(?:\s|#|$)")  # "#cats" is a hashtag, which may be searched for
_LINK_IN_BRACKETS = re.compile(r"[<\[(]+(?:https?:|www\.|[\w-]+(?:\.[\w-]+)+/)", re.IGNORECASE)
_ANY_TEXT = "Any text: 1 + 1?"
"""A text that is neither an id nor a handle nor a URL. A param that accepts it accepts any text."""


def read_list(text: TextFile) -> Iterator[Row]:
    """Yield the lines, cleaned (``links.cleaned``). Empty lines and comments, which begin with ``# ``, are left out.

    Raises:
        UnreadableFileError: the file is not text. Raised before the first row.
    """
    text.check()
    for line in text.lines():
        entry = cleaned(line.text)
        if line.is_cut:
            yield Row(line.number, None, entry, f"is longer than {MAX_LINE_CHARACTERS} characters")
        elif problem := _problem(entry):
            yield Row(line.number, None, entry, problem)
        elif entry and not _COMMENT.match(entry):
            yield Row(line.number, entry, entry)


def _problem(entry: str) -> str | None:
    if "\t" in entry or "\r" in entry:
        return "contains a tab or a line end: a table needs a header of column names"
    if entry.startswith(("{", "[", "<")) and not _LINK_IN_BRACKETS.match(entry):
        return "is JSON or HTML in a plain list: write one id, handle, URL or search text per line"
    return replaced_value([entry])


def params_of(entry: str, parser: TargetParser) -> dict[str, str]:
    """Return the scraper that accepts an entry, and the entry as its param: ``{"scraper": ..., "cat_id": "976759"}``.

    A param that accepts any text, such as the words of a search, is used only if no other scraper fits. If several
    scrapers of one platform accept the entry, the first of them is used.

    A link is never used as search words: its params are those of the linked page, for a scraper that reads this page.

    Raises:
        InvalidRequest: the entry has the form of no param, or of params of several platforms, or is a link that no
            scraper reads. The message continues a sentence that begins with the entry's line.
    """
    scrapers = parser.candidates
    if is_link(entry) or is_host(entry):
        return _params_of_link(entry, scrapers)
    found: dict[str, dict[str, str]] = {}
    for scraper in scrapers:
        for name in _single_params(scraper.params):
            if scraper.platform in found or (len(scrapers) > 1 and _takes_any_text(scraper.params, name)):
                continue
            if _accepts(scraper.params, name, entry):
                found[scraper.platform] = {"scraper": scraper.name, name: entry}
    if len(found) > 1:
        names = ", ".join(each["scraper"] for each in found.values())
        raise InvalidRequest(f"can be a target of {names}: name the scraper (scraper=)")
    if not found:
        forms = [f"{each.name} ({', '.join(_single_params(each.params))})" for each in scrapers]
        raise InvalidRequest(f"is not an id, handle or URL of {', '.join(forms)}{_hint(scrapers)}")
    return next(iter(found.values()))


def _params_of_link(entry: str, scrapers: tuple[Scraper, ...]) -> dict[str, str]:
    try:
        link = read_link(entry)
    except LinkError as error:
        raise InvalidRequest(f"is not a link to a target: {error}") from None
    found = next((each for each in scrapers if each.name in link.scrapers), None)
    if found is None:
        raise InvalidRequest(f"is a link to {link}, and not to a target of {', '.join(s.name for s in scrapers)}")
    return {"scraper": found.name} | {key: link.params[key] for key in link.params if key in found.params.model_fields}


def _hint(scrapers: tuple[Scraper, ...]) -> str:
    free = [s.name for s in scrapers if any(_takes_any_text(s.params, name) for name in _single_params(s.params))]
    return f"; for words to search for, name the scraper: scraper={free[0]}" if free and len(scrapers) > 1 else ""


def _accepts(params: type[Params], name: str, entry: str) -> bool:
    """Whether an entry is valid as the only param."""
    try:
        params.model_validate_strings(params.clean({name: entry}))
    except ValidationError:
        return False
    return True


@cache
def _takes_any_text(params: type[Params], name: str) -> bool:
    return _accepts(params, name, _ANY_TEXT)


@cache
def _single_params(params: type[Params]) -> list[str]:
    """Return the params that are sufficient as a target's only param."""
    return [name for needed in required_params(params) if len(needed) == 1 for name in needed]
