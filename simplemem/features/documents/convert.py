"""Files as Markdown. Plain text is read here; PDF, DOCX and HTML in a process of its own, one at a time, with limits of
time and memory and no network: files are hostile, and their readers are large. That process runs this module."""

from __future__ import annotations

import html
import io
import json
import os
import re
import subprocess
import sys
import threading
import tomllib
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from simplemem.errors import Invalid, TooLong, Unavailable, Unreadable, install_hint

MOST_BYTES: Final = 10_000_000
_MOST_SECONDS, _MOST_MEMORY, _MOST_CHARACTERS = (
    60,
    1_000_000_000,
    1_000_001,
)  # one more than a document may have
_FORMS: Final = tomllib.loads(Path(__file__).with_name("forms.toml").read_text(encoding="utf-8"))
_ONE: Final = threading.Lock()
_HEADLESS, _UNREADABLE, _CHARSET = (
    re.compile(str(_FORMS[name])) for name in ("headless", "unreadable", "charset")
)
_MOST_PROPERTIES: Final = 100_000  # bytes of the properties of a Word file
_WORD_STYLES: Final = """\
p[style-name='Title'] => h1.document-title:fresh
p[style-name='Subtitle'] => h2:fresh
"""
_WORD_TITLE: Final = re.compile(r'<h1 class="document-title">(.*?)</h1>', re.DOTALL)
_DOCX_TITLE: Final = re.compile(r"<dc:title\b[^>]*>([^<]*)</dc:title>")
_PAGE_TITLE: Final = re.compile(r"<title\b[^>]*>([^<]*)</title", re.IGNORECASE)
_MAIN_HEADING: Final = re.compile(r"<h1\b[^>]*>(.*?)</h1\s*>", re.IGNORECASE | re.DOTALL)
_HEADING_LINE: Final = re.compile(r"^#+ +(.+)$", re.MULTILINE)


class SourceFile(NamedTuple):
    """A file, and what is said of it: what it is called, its type, its encoding."""

    name: str
    content_type: str
    charset: str
    data: bytes


def form_of(data: bytes, name: str = "", content_type: str = "") -> str:
    """What a file is: pdf, docx, html or text. Invalid where nothing reads it."""
    if len(data) > MOST_BYTES:
        raise TooLong(f"{name[:60] or 'the file'} is larger than {MOST_BYTES:,} bytes")
    by_name = (
        "pdf"
        if data.startswith(b"%PDF-")
        else _FORMS["ending"].get(name.rpartition(".")[2].lower(), "")
    )
    form = by_name if content_type in _FORMS["vague"] else _FORMS["type"].get(content_type, "")
    if not form:
        raise Invalid(
            f"simplemem cannot read {(content_type or name or 'this format')[:60]}",
            hint=_FORMS["unknown"],
        )
    return str(form)


def convert(data: bytes, form: str, charset: str = "") -> tuple[str, str]:
    """The text of a file, and what it calls itself. Unreadable says why there is none."""
    text = _decoded(data, charset) if form in ("text", "html") else ""
    told = (
        {"text": text} if form == "text" else _told(text.encode("utf-8", "replace") or data, form)
    )
    if "missing" in told:
        raise Unavailable(f"{told['missing']} is not installed", hint=install_hint("documents"))
    if not re.search(r"\w", told.get("text", "")):
        raise Unreadable(
            f"the file could not be read: {told.get('error', 'it contains no text')[:200]}"
        )
    heading = _HEADING_LINE.search(told["text"])
    return told["text"].strip(), " ".join(
        (told.get("title") or (heading[1] if heading else "")).split()
    )[:200]


def _told(data: bytes, form: str) -> dict[str, str]:
    """What the process says that reads the file."""
    env = {
        key: os.environ[key] for key in _FORMS["environment"] if key in os.environ
    }  # no key, no password
    env["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    command, silence, most = (
        [sys.executable, "-P", "-m", __name__, form],
        subprocess.DEVNULL,
        _MOST_SECONDS,
    )
    with _ONE:
        try:
            return dict(
                json.loads(
                    subprocess.check_output(
                        command, input=data, env=env, stderr=silence, timeout=most
                    )
                )
            )
        except subprocess.TimeoutExpired:
            return {"error": f"it took longer than {_MOST_SECONDS} s"}
        except (ValueError, subprocess.CalledProcessError):
            return {"error": "the reader of this format crashed, perhaps for lack of memory"}


def _decoded(data: bytes, charset: str) -> str:
    """Text in the encoding it says, else UTF-8, else cp1252."""
    text = data.decode("cp1252", "replace")
    for encoding in ("utf-8-sig", *_CHARSET.findall(charset)):
        with suppress(LookupError, ValueError):
            text = data.decode(encoding)
    return text


def _read(data: bytes, form: str) -> dict[str, str]:
    """The text of a file, and what its header calls it."""
    if form == "pdf":
        import pypdfium2

        with pypdfium2.PdfDocument(data) as document:
            pages = [page.get_textpage().get_text_bounded() for page in document]
            title = str(document.get_metadata_dict().get("Title") or "")
        text = re.sub(
            r"[\x02\ufffe]\n?", "", "\n\n".join(pages).replace("\r\n", "\n")
        )  # words divided at lines' ends
    elif form == "docx":
        import mammoth
        import markdownify

        converted = mammoth.convert_to_html(
            io.BytesIO(data), convert_image=lambda _: [], style_map=_WORD_STYLES
        )
        page = _with_heads(converted.value)
        text = markdownify.markdownify(page, heading_style="ATX", bullets="-")
        title = _first_text(_WORD_TITLE, page) or _title_of_docx(data)
    else:
        text, title = _read_html(data.decode())
    text = re.sub(r"(?<=\w)\\_(?=\w)", "_", _UNREADABLE.sub(" ", text))
    return {"text": text[:_MOST_CHARACTERS], "title": title or ""}


def _read_html(page: str) -> tuple[str, str]:
    """The text of a page with its headings, and what it calls itself."""
    import trafilatura
    from trafilatura.settings import DEFAULT_CONFIG

    DEFAULT_CONFIG.set("DEFAULT", "MIN_EXTRACTED_SIZE", "1")  # a short page has its form too

    def extracted(page: str) -> str:
        return (
            trafilatura.extract(
                page, output_format="markdown", include_comments=False, favor_recall=True
            )
            or ""
        )

    page = _with_heads(_UNREADABLE.sub(" ", page))
    if not re.search("<html", page, re.IGNORECASE):
        page = f"<html><body>{page}</body></html>"
    text = extracted(page)

    # Without an element that says what the page is about, trafilatura may keep paragraphs alone.
    if re.search(r"<h[1-6]\b", page, re.IGNORECASE) and not _HEADING_LINE.search(text):
        text = extracted(_as_article(page)) or text

    # A heading that stands above the part which the page is about, such as in <header>, is left out.
    main_headings = [
        heading for heading in map(_plain_text, _MAIN_HEADING.findall(page)) if heading
    ]
    headings_kept = {line.strip() for line in _HEADING_LINE.findall(text)}
    if text and main_headings and headings_kept.isdisjoint(main_headings):
        text = f"# {main_headings[0]}\n\n{text}"

    title = getattr(trafilatura.extract_metadata(page), "title", "") or _first_text(
        _PAGE_TITLE, page
    )
    return text, title


def _as_article(page: str) -> str:
    """A page whose whole body is what it is about."""
    opened = re.sub(r"(<body\b[^>]*>)", r"\1<article>", page, count=1, flags=re.IGNORECASE)
    return re.sub(r"</body\s*>", "</article></body>", opened, flags=re.IGNORECASE)


def _first_text(pattern: re.Pattern[str], page: str) -> str:
    """The text of the first element that a pattern finds, "" if there is none."""
    found = pattern.search(page)
    return _plain_text(found[1]) if found else ""


def _plain_text(markup: str) -> str:
    """The text of some HTML on one line."""
    return " ".join(html.unescape(re.sub(r"<[^<>]*>", " ", markup)).split())


def _title_of_docx(data: bytes) -> str:
    """The title in the properties of a Word file, "" if it has none."""
    with suppress(KeyError), zipfile.ZipFile(io.BytesIO(data)) as archive:
        with archive.open("docProps/core.xml") as file:
            properties = file.read(_MOST_PROPERTIES).decode("utf-8", "replace")
        return _first_text(_DOCX_TITLE, properties)
    return ""


def _with_heads(page: str) -> str:
    """A page with the first row of each table as its head: Markdown has no table without."""
    return _HEADLESS.sub(
        lambda found: re.sub(r"(</?)td\b", r"\1th", found[0], flags=re.IGNORECASE), page
    )


def _deny(event: str, _: object) -> None:
    if event.startswith(
        ("socket.", "subprocess.", "os.system", "os.exec", "os.fork", "os.posix_spawn")
    ):
        raise PermissionError(event)


def main() -> None:
    """Read a file from standard input, and tell its text as JSON."""
    with suppress(ImportError, ValueError, OSError):  # Windows has no such limits
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    sys.addaudithook(_deny)
    try:
        told = _read(sys.stdin.buffer.read(), sys.argv[1])
    except ImportError as error:
        told = {"missing": error.name or str(error)}
    except BaseException as error:  # noqa: BLE001 - whatever a hostile file makes of its reader
        told = {"error": " ".join(str(error).split()) or type(error).__name__}
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main()
