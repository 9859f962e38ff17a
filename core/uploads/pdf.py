"""The text layer of a PDF, its lines joined to paragraphs."""

from __future__ import annotations

import io
import time
from typing import Any

from core.errors import Mistake
from core.uploads.paragraphs import joined_paragraphs
from core.uploads.uploaded import Uploaded

MAX_PAGES = 500
SECONDS = 20.0
"""What is not read by then is left out, and said."""
_ENOUGH = 1_000_000
"""Characters; no more are kept (see core/uploads/uploaded.py)."""


class _Late(Exception):
    """A page took too long."""


def read_pdf(name: str, data: bytes) -> list[Uploaded]:
    pages = _open(name, data)
    if not pages:
        raise Mistake(f"{name} has no pages. Save it again, or paste the text.")
    deadline = time.monotonic() + SECONDS
    texts: list[str] = []
    unread: list[int] = []
    length = 0
    for number in range(1, min(len(pages), MAX_PAGES) + 1):
        if time.monotonic() > deadline or length > _ENOUGH:
            break
        try:
            text = _page_text(pages[number - 1], deadline)
        except _Late:
            break
        except MemoryError:
            raise
        except Exception:  # a damaged page raises anything at all, from KeyError to RecursionError
            unread.append(number)
            continue
        texts.append(text)
        length += len(text)
    read = len(texts) + len(unread)
    if not read:
        raise Mistake(f"{name} takes longer than {SECONDS:.0f} seconds to read. Save it again, or paste the text.")
    if not texts:
        raise _damaged(name)
    if not any(text.strip() for text in texts):
        raise Mistake(
            f"{name} is scanned; no text was found on its {len(pages):,} page{'s' if len(pages) > 1 else ''}. Give it "
            "a text layer with OCR software such as ocrmypdf, or paste the text."
        )
    notes = []
    if read < len(pages):
        notes.append(f"Only the first {read:,} of {len(pages):,} pages were read.")
    if unread:
        notes.append(f"{len(unread):,} damaged page{'s were' if len(unread) > 1 else ' was'} left out.")
    return [Uploaded(name, joined_paragraphs(texts), tuple(notes))]


def _open(name: str, data: bytes) -> list[Any]:
    from pypdf import PasswordType, PdfReader
    from pypdf.errors import DependencyError, FileNotDecryptedError

    try:
        reader = PdfReader(io.BytesIO(data), strict=False)
        # Many files are encrypted only against changes: they open with the empty password.
        if reader.is_encrypted and reader.decrypt("") == PasswordType.NOT_DECRYPTED:
            raise _locked(name)
        count = len(reader.pages)
        pages = [reader.pages[number] for number in range(min(count, MAX_PAGES))]
        return pages + [None] * (count - len(pages))
    except (DependencyError, FileNotDecryptedError) as error:
        raise _locked(name) from error
    except (Mistake, MemoryError):
        raise
    except Exception as error:  # see above
        raise _damaged(name) from error


def _page_text(page: Any, deadline: float) -> str:
    def watch(*_: object) -> None:
        if time.monotonic() > deadline:
            raise _Late

    text: str = page.extract_text(visitor_operand_before=watch)
    return text


def _locked(name: str) -> Mistake:
    return Mistake(f"{name} is encrypted and needs a password. Save it without one, or paste the text.")


def _damaged(name: str) -> Mistake:
    return Mistake(f"{name} is damaged or not a PDF. Save it again, or paste the text.")
