"""Convert files to Markdown.

Plain text is decoded here. PDF, DOCX and HTML are read in a process of its own (`reader.py`), one
at a time, with limits of time and memory and without a network: files are hostile, and the
libraries that read them are large.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from simplemem.errors import Invalid, TooLong, Unavailable, Unreadable, install_hint

MAX_BYTES: Final = 10_000_000
_TIMEOUT: Final = 60  # seconds
_MAX_TITLE: Final = 200  # characters
_FORMATS: Final = tomllib.loads(Path(__file__).with_name("forms.toml").read_text(encoding="utf-8"))
_CHARSET: Final = re.compile(_FORMATS["charset"])
_HEADING_LINE: Final = re.compile(r"^#+ +(.+)$", re.MULTILINE)
_READER: Final = "simplemem.features.documents.reader"

_reader_lock: Final = threading.Lock()


class SourceFile(NamedTuple):
    """A file, and what its source says about it. What the source does not say is ""."""

    name: str
    content_type: str  # such as "text/html", without parameters
    charset: str  # the encoding of a text
    data: bytes


class Converted(NamedTuple):
    """A file as Markdown, and the title that it gives itself, "" if it gives none."""

    text: str
    title: str


def form_of(data: bytes, name: str = "", content_type: str = "") -> str:
    """Return the format of a file: "pdf", "docx", "html" or "text".

    The content type decides; if it says nothing, the first bytes do, else the ending of the name.
    Raise TooLong if the file has more than 10,000,000 bytes, Invalid if simplemem cannot read the
    format.
    """
    if len(data) > MAX_BYTES:
        raise TooLong(f"{name[:60] or 'the file'} is larger than {MAX_BYTES:,} bytes")

    if content_type not in _FORMATS["vague"]:
        form = _FORMATS["type"].get(content_type, "")
    elif data.startswith(b"%PDF-"):
        form = "pdf"
    else:
        ending = name.rpartition(".")[2].lower()
        form = _FORMATS["ending"].get(ending, "")

    if not form:
        format_name = content_type or name or "this format"
        raise Invalid(f"simplemem cannot read {format_name[:60]}", hint=_FORMATS["unknown"])
    return str(form)


def convert(data: bytes, form: str, charset: str = "") -> Converted:
    """Return the text of a file as Markdown, and the title that the file gives itself.

    `form` is what `form_of` returns, and `charset` is the encoding that the source states. If the
    properties of the file have no title, the first heading is its title, up to 200 characters.
    Raise Unreadable if the file has no word, cannot be read or takes longer than a minute, and
    Unavailable if a library is missing.
    """
    if form == "text":
        answer = {"text": _decode(data, charset)}
    elif form == "html":
        page = _decode(data, charset).encode("utf-8", "replace")
        answer = _run_reader(page or data, form)
    else:
        answer = _run_reader(data, form)

    if "missing" in answer:
        raise Unavailable(f"{answer['missing']} is not installed", hint=install_hint("documents"))
    text = answer.get("text", "")
    if not re.search(r"\w", text):
        problem = answer.get("error", "it contains no text")
        raise Unreadable(f"the file could not be read: {problem[:200]}")

    title = answer.get("title") or _first_heading(text)
    title_line = " ".join(title.split())
    return Converted(text.strip(), title_line[:_MAX_TITLE])


def _first_heading(text: str) -> str:
    """Return the text of the first heading in Markdown, "" if there is none."""
    heading = _HEADING_LINE.search(text)
    if heading is None:
        return ""
    return heading[1]


def _run_reader(data: bytes, form: str) -> dict[str, str]:
    """Return what the reader process answers: a text and title, an error, or a missing library.

    The keys are `text` and `title`, or `error`, or `missing`. A process that crashes or takes
    longer than a minute is an error. Only one process runs at a time; other threads wait.
    """
    # Only these variables: the others may hold keys and passwords.
    env = {name: os.environ[name] for name in _FORMATS["environment"] if name in os.environ}
    env["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    command = [sys.executable, "-P", "-m", _READER, form]
    with _reader_lock:
        try:
            output = subprocess.check_output(
                command,
                input=data,
                env=env,
                stderr=subprocess.DEVNULL,
                timeout=_TIMEOUT,
            )
            return dict(json.loads(output))
        except subprocess.TimeoutExpired:
            return {"error": f"it took longer than {_TIMEOUT} s"}
        except (ValueError, subprocess.CalledProcessError):
            return {"error": "the reader of this format crashed, perhaps for lack of memory"}


def _decode(data: bytes, charset: str) -> str:
    """Decode a text from the stated encoding, or else from UTF-8, or else from cp1252.

    An encoding that is not in the list of `forms.toml` is ignored.
    """
    for encoding in (*_CHARSET.findall(charset), "utf-8-sig"):
        with suppress(LookupError, ValueError):
            return data.decode(encoding)
    return data.decode("cp1252", "replace")
