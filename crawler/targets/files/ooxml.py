"""Reads the parts of Office Open XML files in bounded memory: a zip archive whose parts are XML.

``expat`` parses a part in pieces, and no tree is built. Libraries do not keep these bounds for uploads of strangers:

- openpyxl builds trees, even in its read-only mode: for a workbook of 24 kB with five million cells outside of rows, it
  needs 44 s and 522 MB.
- python-calamine (0.9.1) is fast, but stores a sheet as a full table of all cells between the first and the last one.
  A workbook of 5 kB with a value in column 100 and one in row 1,048,576 takes 3,200 MB. With a value in the last
  column, it needs 550 GB, and ends the process (``abort()``, which Python cannot catch). It also reads a cell of 300 MB
  with 573 MB, and returns neither the rows' numbers nor formulas without a result.
"""

from __future__ import annotations

import posixpath
import struct
from collections.abc import Iterator, Mapping
from typing import IO, NamedTuple, NoReturn
from xml.parsers import expat
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

from crawler.targets.files.rows import UnreadableFileError

MAX_PART_BYTES = 128 * 1024**2
"""Maximum bytes of the XML of a part, unless its reader allows more."""
MAX_ELEMENTS = 48 * 1024**2
"""Maximum number of XML elements in a part."""
MAX_DEPTH = 64
MAX_TAG_BYTES = 1024**2
MAX_DIRECTORY_BYTES = 4 * 1024**2
"""Maximum bytes of the archive's list of parts, which ``zipfile`` reads at once. A workbook has a few dozen parts."""
CHUNK_BYTES = 64 * 1024

DAMAGED = "the workbook is damaged or truncated: save it again, or save the sheet as CSV (UTF-8)."
_OTHER_FORMAT = "the file is not an Excel workbook (.xlsx): save the spreadsheet as .xlsx or as CSV (UTF-8)."
_OLD_OR_LOCKED = (
    "the file is an Excel workbook of the old format (.xls), or protected by a password: save it as .xlsx without a "
    "password, or as CSV (UTF-8)."
)
_OLE = b"\xd0\xcf\x11\xe0"
_END_OF_DIRECTORY = struct.Struct("<4s8xI6x")
"""Matches the record at the end of a zip archive: its mark, and the size of the directory in bytes."""
_END_MARK = b"PK\x05\x06"
_ZIP64_MARK = b"PK\x06\x07"
"""The mark of a second record, 20 bytes before the end record. Its sizes replace the sizes in the end record."""


class Relation(NamedTuple):
    """A reference from one part to another: its id, the last word of its type (``worksheet``), and the path."""

    id: str
    kind: str
    part: str


class Handler:
    """The base class of handlers of a part's elements, which ignores them. Names have no namespaces.

    The pronunciation of Japanese texts (``rPh``) is left out.
    """

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Handle the start of an element."""

    def end(self, name: str) -> None:
        """Handle the end of an element."""

    def text(self, text: str) -> None:
        """Handle a piece of the text in an element."""


class Package:
    """The parts of a file, which must be seekable and stay open."""

    def __init__(self, file: IO[bytes]) -> None:
        """Read the list of parts.

        Raises:
            UnreadableFileError: the file is not Office Open XML, is protected by a password, is damaged, or has too
                many parts.
        """
        _check_directory(file)
        try:
            self._archive = ZipFile(file)
        except (BadZipFile, struct.error, ValueError, NotImplementedError):
            refuse(DAMAGED)

    def relations(self, part: str) -> list[Relation]:
        """Return the references of a part, or of the whole file (``part=""``)."""
        folder, name = posixpath.split(part)
        relations = _Relations(folder)
        self.read(posixpath.join(folder, "_rels", f"{name}.rels"), relations)
        return relations.found

    def read(self, part: str, handler: Handler) -> None:
        """Pass all elements of a part to a handler. Arguments and exceptions are those of ``parse``."""
        for _ in self.parse(part, handler):
            pass

    def parse(self, part: str, handler: Handler, max_bytes: int = MAX_PART_BYTES) -> Iterator[None]:
        """Pass the elements of a part to a handler. Yield after each piece. A missing part has no elements.

        Raises:
            UnreadableFileError: the part is too large, is protected by a password, is not valid XML, or is not stored
                as Office Open XML.
        """
        try:
            info = self._archive.getinfo(part)
        except KeyError:
            return
        if info.flag_bits & 1:
            refuse("the workbook is protected by a password: save it without one, or as CSV (UTF-8).")
        if info.file_size > max_bytes:
            size = f"{info.file_size:,} bytes uncompressed, of at most {max_bytes:,}"
            refuse(f"the workbook is too large: {part} has {size}. Save the sheet as CSV (UTF-8).")
        if info.compress_type not in {ZIP_STORED, ZIP_DEFLATED}:
            refuse(_OTHER_FORMAT)
        try:
            with self._archive.open(info) as stream:  # zipfile reads no more bytes than the list of parts states
                yield from _parse(stream, handler)
        except (expat.ExpatError, BadZipFile):
            refuse(DAMAGED)


def refuse(problem: str, line: int = 1) -> NoReturn:
    """Raise ``UnreadableFileError``."""
    raise UnreadableFileError(line, problem) from None


def _check_directory(file: IO[bytes]) -> None:
    """Check the end of a file before ``zipfile`` reads the directory there.

    Raises:
        UnreadableFileError: the file is not a zip archive, or its directory is too large.
    """
    file.seek(0)
    head = file.read(4)
    if head == _OLE:
        refuse(_OLD_OR_LOCKED)
    if head != b"PK\x03\x04":
        refuse(_OTHER_FORMAT)
    size = file.seek(0, 2)
    file.seek(max(0, size - 2**16 - _END_OF_DIRECTORY.size))
    tail = file.read()
    end = tail.rfind(_END_MARK)
    if end < 0 or len(tail) - end < _END_OF_DIRECTORY.size:
        refuse(DAMAGED)
    _, directory_bytes = _END_OF_DIRECTORY.unpack_from(tail, end)
    if directory_bytes > MAX_DIRECTORY_BYTES or tail[max(0, end - 20) :].startswith(_ZIP64_MARK):
        refuse("the workbook has too many parts: save the sheet as CSV (UTF-8).")


def _parse(stream: IO[bytes], handler: Handler) -> Iterator[None]:
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    depth = elements = spoken = 0  # ``spoken``: the depth in the pronunciation of a Japanese text, which is left out

    def start(name: str, attributes: Mapping[str, str]) -> None:
        nonlocal depth, elements, spoken
        depth += 1
        elements += 1
        if depth > MAX_DEPTH or elements > MAX_ELEMENTS:
            refuse("the workbook has too many elements: save the sheet as CSV (UTF-8).")
        name = name.rpartition(" ")[2]
        if spoken or name == "rPh":
            spoken += 1
            parser.CharacterDataHandler = None
        else:
            handler.start(name, attributes)

    def end(name: str) -> None:
        nonlocal depth, spoken
        depth -= 1
        if spoken:
            spoken -= 1
            parser.CharacterDataHandler = None if spoken else handler.text
        else:
            handler.end(name.rpartition(" ")[2])

    def doctype(*_: object) -> None:  # only a DOCTYPE can define entities, and workbooks do not have one
        refuse(DAMAGED)

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = handler.text
    parser.StartDoctypeDeclHandler = doctype
    read = 0
    while chunk := stream.read(CHUNK_BYTES):
        parser.Parse(chunk)
        read += len(chunk)
        if read - parser.CurrentByteIndex > MAX_TAG_BYTES:  # expat buffers a tag until it is complete
            refuse(DAMAGED)
        yield
    parser.Parse(b"", True)  # noqa: FBT003  # the argument isfinal, which is positional only
    yield


class _Relations(Handler):
    """Collects the references in a ``.rels`` part."""

    def __init__(self, folder: str) -> None:
        self.found: list[Relation] = []
        self._folder = folder

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "Relationship" and attributes.get("TargetMode") != "External":
            part = posixpath.normpath(posixpath.join("/", self._folder, attributes.get("Target", ""))).lstrip("/")
            kind = attributes.get("Type", "").rpartition("/")[2]
            self.found.append(Relation(attributes.get("Id", ""), kind, part))
