"""The text of a Word document; what unpacks to far more than it weighs is refused before anything is unpacked."""

from __future__ import annotations

import io
import zipfile
from pathlib import PurePosixPath
from typing import Any

from core.errors import Mistake
from core.uploads.uploaded import Uploaded

MAX_MEMBERS = 2_000
MAX_UNPACKED = 200_000_000
MAX_XML = 50_000_000
"""Bytes of all XML in it, unpacked: a tree takes some ten times that."""
MAX_RATIO = 200
"""Unpacked to packed. Word's own XML packs 5 to 30 times; a bomb's a thousand times."""
_SMALL = 1_000_000
"""Bytes; an empty table packs well too, and does no harm."""
_OLE = bytes.fromhex("d0cf11e0a1b11ae1")
_DECLARATIONS = (b"<!DOCTYPE", b"<!ENTITY")


def read_docx(name: str, data: bytes) -> list[Uploaded]:
    if data.startswith(_OLE):
        raise Mistake(f"{name} is an old Word file, or has a password. Save it as .docx without one.")
    import docx

    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            _refuse_bombs(name, archive)
        document = docx.Document(io.BytesIO(data))
        return [Uploaded(name, _text(document.element.body))]
    except (Mistake, MemoryError):
        raise
    except Exception as error:  # a damaged file raises anything at all, from KeyError to lxml's own
        raise Mistake(
            f"{name} is damaged or not a Word document. Save it again as .docx, or paste the text."
        ) from error


def _refuse_bombs(name: str, archive: zipfile.ZipFile) -> None:
    """By what the archive's directory says; Python unpacks no more of a member than that."""
    members = archive.infolist()
    unpacked = sum(member.file_size for member in members)
    xml = [member for member in members if member.filename.lower().endswith((".xml", ".rels"))]
    if (
        len(members) > MAX_MEMBERS
        or unpacked > MAX_UNPACKED
        or sum(member.file_size for member in xml) > MAX_XML
        or any(member.file_size > max(_SMALL, MAX_RATIO * member.compress_size) for member in members)
    ):
        raise Mistake(
            f"{name} unpacks to far more than a Word document should ({unpacked / 1e6:,.0f} MB), so it was not read."
        )
    if any(_leads_out(member.filename) for member in members):
        raise Mistake(f"{name} contains paths that point outside it, so it was not read.")
    for member in xml:
        # No Word writes a document type; entities that multiply need one. The zeros are UTF-16's.
        plain = archive.read(member).replace(b"\0", b"").upper()
        if any(declaration in plain for declaration in _DECLARATIONS):
            raise Mistake(f"{name} declares entities of its own, which no Word document does, so it was not read.")


def _leads_out(path: str) -> bool:
    plain = PurePosixPath(path.replace("\\", "/"))
    return plain.is_absolute() or ".." in plain.parts or ":" in path


def _text(body: Any) -> str:
    """Paragraphs in order, those of tables, text boxes and tracked insertions too; nothing that was deleted.

    From the XML itself: python-docx's own ``paragraph.text`` leaves out insertions and content controls.
    """
    from docx.oxml.ns import qn

    pieces = {qn("w:tab"): "\t", qn("w:br"): "\n", qn("w:cr"): "\n", qn("w:noBreakHyphen"): "-", qn("w:p"): "\n"}
    letters = qn("w:t")
    again = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
    skipped = {element for fallback in body.iter(again) for element in fallback.iter()}  # said twice, for older Words
    found = []
    for element in body.iter():
        if element in skipped:
            continue
        if element.tag == letters:
            found.append(element.text or "")
        elif element.tag in pieces:
            # A tab stop in a paragraph's settings has the same name as a tab in its text.
            found.append("" if _is_setting(element) else pieces[element.tag])
    return "".join(found).strip("\n")


def _is_setting(element: Any) -> bool:
    parent = element.getparent()
    return parent is not None and str(parent.tag).endswith("}tabs")
