"""Files as Markdown. Plain text and Markdown are read here; PDF, DOCX and HTML in a process of its own, one at a time, with
limits of time and memory: files are hostile, and their readers are large. That process runs this module."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, NamedTuple

from simplemem.errors import Invalid, Unavailable, Unreadable

_MOST_SECONDS, _MOST_MEMORY = 60, 1_000_000_000
_INSTALL: Final = "pip install 'simplemem-vault[documents]' brings what reads PDF, DOCX and HTML."
_WORD: Final = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_BY_TYPE: Final = {"application/pdf": "pdf", _WORD: "docx", "text/html": "html", "application/xhtml+xml": "html"} | {
    "text/markdown": "text", "text/x-markdown": "text", "text/plain": "text",
}  # fmt: skip
_BY_NAME: Final = {"pdf": "pdf", "docx": "docx", "html": "html", "htm": "html", "xhtml": "html", "md": "text"} | {
    "markdown": "text", "txt": "text", "text": "text",
}  # fmt: skip
_ONE: Final = threading.Lock()


class Converted(NamedTuple):
    """The text of a file as Markdown, and what it calls itself."""

    text: str
    title: str


def form_of(data: bytes, name: str = "", content_type: str = "") -> str:
    """What a file is: pdf, docx, html or text. Invalid where nothing reads it."""
    ending = name.rpartition(".")[2].lower() if "." in name else ""
    form = _BY_TYPE.get(content_type) or ("" if content_type not in ("", "application/octet-stream") else "unknown")
    if form == "unknown":
        form = "pdf" if data.startswith(b"%PDF-") else _BY_NAME.get(ending, "")
    if not form or (form == "text" and b"\0" in data):
        what = content_type or (f".{ending}" if ending else "a file without an ending")
        raise Invalid(f"nothing here reads {what[:60]}", hint="Text, Markdown, HTML, PDF and DOCX are read.")
    return form


def convert(data: bytes, form: str, charset: str = "") -> Converted:
    """The text of a file. Unreadable says why there is none."""
    if form == "text":
        text = decoded(data, charset).replace("\r\n", "\n")
        heading = re.search(r"^# +(.+)$", text, re.MULTILINE)
        return _with_text(Converted(text, heading[1].strip() if heading else ""))
    command = [sys.executable, "-P", "-m", __name__, form, charset]
    with _ONE:
        try:
            ran = subprocess.run(command, input=data, capture_output=True, timeout=_MOST_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            raise Unreadable(f"the file was not read within {_MOST_SECONDS} s") from None
    try:
        told = json.loads(ran.stdout)
    except ValueError:
        raise Unreadable("the file could not be read: its reader ended, maybe for want of memory") from None
    if "missing" in told:
        raise Unavailable(f"{told['missing']} is not installed", hint=_INSTALL)
    if "error" in told:
        raise Unreadable(f"the file could not be read: {told['error'][:200]}")
    return _with_text(Converted(told["text"], told["title"]))


def _with_text(found: Converted) -> Converted:
    if not re.search(r"\w", found.text):
        raise Unreadable("the file has no text (pictures of text are not read)")
    return found


def decoded(data: bytes, charset: str = "") -> str:
    """Text in the encoding it says, else UTF-8, else cp1252."""
    for encoding in filter(None, (charset, "utf-8-sig", "cp1252")):
        with suppress(UnicodeDecodeError, LookupError):
            return data.decode(encoding)
    return data.decode("utf-8", "replace")


def _pdf(data: bytes, _charset: str) -> tuple[str, str]:
    import pypdfium2

    with pypdfium2.PdfDocument(data) as document:
        pages = [page.get_textpage().get_text_bounded().replace("\r\n", "\n").strip() for page in document]
        return "\n\n".join(filter(None, pages)), str(document.get_metadata_dict().get("Title") or "")


def _docx(data: bytes, _charset: str) -> tuple[str, str]:
    import mammoth
    import markdownify

    html = mammoth.convert_to_html(io.BytesIO(data)).value
    text = markdownify.markdownify(html, heading_style="ATX", bullets="-", table_infer_header=True)
    heading = re.search(r"^#+ +(.+)$", text, re.MULTILINE)
    return text, heading[1].strip() if heading else ""


def _html(data: bytes, charset: str) -> tuple[str, str]:
    import trafilatura

    page = decoded(data, charset)
    text = trafilatura.extract(page, output_format="markdown", include_formatting=True, include_comments=False)
    told: Any = trafilatura.extract_metadata(page)
    return text or "", (told and told.title) or ""


_READERS: Final[dict[str, Callable[[bytes, str], tuple[str, str]]]] = {"pdf": _pdf, "docx": _docx, "html": _html}


def main() -> None:
    """Read a file from standard input, and tell its text as JSON."""
    with suppress(ImportError, ValueError, OSError):  # Windows has no such limits
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    form, charset = sys.argv[1:3]
    try:
        text, title = _READERS[form](sys.stdin.buffer.read(), charset)
        told = {"text": re.sub(r"[\0\f\v]", " ", text).strip(), "title": " ".join(title.split())}
    except ImportError as error:
        told = {"missing": error.name or str(error)}
    except Exception as error:  # noqa: BLE001 - whatever a hostile file makes of its reader
        told = {"error": " ".join(str(error).split()) or type(error).__name__}
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main()
