"""Read PDF, DOCX and HTML; `convert.py` runs this module as a process.

The process may not use the network. It reads a file from its standard input and answers with one
JSON object: `text` and `title`, `error`, or `missing` for a library that is not installed.
"""

from __future__ import annotations

import html
import io
import json
import re
import sys
import tomllib
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

_MAX_MEMORY: Final = 1_000_000_000  # bytes
_MAX_TEXT: Final = 1_000_001  # characters; one more than a document may have
_MAX_PROPERTIES: Final = 100_000  # bytes of the properties of a Word file

_FORMATS: Final = tomllib.loads(Path(__file__).with_name("forms.toml").read_text(encoding="utf-8"))
_TABLE_WITHOUT_HEAD: Final = re.compile(_FORMATS["headless"])
_UNREADABLE: Final = re.compile(_FORMATS["unreadable"])
_HYPHEN_AT_LINE_END: Final = re.compile(r"[\x02\ufffe]\n?")  # as PDFium marks it
_ESCAPED_UNDERSCORE: Final = re.compile(r"(?<=\w)\\_(?=\w)")
_WORD_STYLES: Final = """\
p[style-name='Title'] => h1.document-title:fresh
p[style-name='Subtitle'] => h2:fresh
"""
_WORD_TITLE: Final = re.compile(r'<h1 class="document-title">(.*?)</h1>', re.DOTALL)
_DOCX_TITLE: Final = re.compile(r"<dc:title\b[^>]*>([^<]*)</dc:title>")
_PAGE_TITLE: Final = re.compile(r"<title\b[^>]*>([^<]*)</title", re.IGNORECASE)
_MAIN_HEADING: Final = re.compile(r"<h1\b[^>]*>(.*?)</h1\s*>", re.IGNORECASE | re.DOTALL)
_HTML_TAG: Final = re.compile(r"<[^<>]*>")
_HEADING_LINE: Final = re.compile(r"^#+ +(.+)$", re.MULTILINE)
_DENIED_EVENTS: Final = (
    "socket.",
    "subprocess.",
    "os.system",
    "os.exec",
    "os.fork",
    "os.posix_spawn",
)


class _Content(NamedTuple):
    """The text of a file as Markdown, and the title in its properties, "" if they have none."""

    text: str
    title: str


def read_file(data: bytes, form: str) -> dict[str, str]:
    """Return the `text` of a file as Markdown, and the `title` in its properties, by these keys.

    The title is "" if there is none. The text ends after 1,000,001 characters, which is too long
    for a document. `form` is "pdf", "docx" or "html"; an HTML page is in UTF-8. Raise ImportError
    if a library is missing. A hostile file may raise anything.
    """
    if form == "pdf":
        content = _read_pdf(data)
    elif form == "docx":
        content = _read_docx(data)
    else:
        content = _read_html(data)

    text = _UNREADABLE.sub(" ", content.text)
    text = _ESCAPED_UNDERSCORE.sub("_", text)
    return {"text": text[:_MAX_TEXT], "title": content.title}


def _read_pdf(data: bytes) -> _Content:
    """Return the content of a PDF file, with words that were hyphenated at line ends joined."""
    import pypdfium2

    with pypdfium2.PdfDocument(data) as document:
        pages = [page.get_textpage().get_text_bounded() for page in document]
        properties = document.get_metadata_dict()

    text = "\n\n".join(pages).replace("\r\n", "\n")
    return _Content(
        text=_HYPHEN_AT_LINE_END.sub("", text),
        title=str(properties.get("Title") or ""),
    )


def _read_docx(data: bytes) -> _Content:
    """Return the content of a Word file, without its images."""
    import mammoth
    import markdownify

    converted = mammoth.convert_to_html(
        io.BytesIO(data),
        convert_image=lambda _: [],
        style_map=_WORD_STYLES,
    )
    page = _with_table_heads(converted.value)
    return _Content(
        text=markdownify.markdownify(page, heading_style="ATX", bullets="-"),
        title=_first_text(_WORD_TITLE, page) or _title_of_docx(data),
    )


def _title_of_docx(data: bytes) -> str:
    """Return the title in the properties of a Word file, "" if it has none."""
    with suppress(KeyError), zipfile.ZipFile(io.BytesIO(data)) as archive:
        with archive.open("docProps/core.xml") as file:
            properties = file.read(_MAX_PROPERTIES).decode("utf-8", "replace")
        return _first_text(_DOCX_TITLE, properties)
    return ""


def _read_html(data: bytes) -> _Content:
    """Return the main content of a page that is in UTF-8."""
    from trafilatura import extract_metadata
    from trafilatura.settings import DEFAULT_CONFIG

    DEFAULT_CONFIG.set("DEFAULT", "MIN_EXTRACTED_SIZE", "1")  # keep the structure of short pages

    page = _with_table_heads(_UNREADABLE.sub(" ", data.decode()))
    if not re.search("<html", page, re.IGNORECASE):
        page = f"<html><body>{page}</body></html>"
    text = _extract(page)

    # Unless an element marks the main content, trafilatura may keep paragraphs alone.
    has_headings = re.search(r"<h[1-6]\b", page, re.IGNORECASE)
    if has_headings and not _HEADING_LINE.search(text):
        text = _extract(_as_article(page)) or text

    metadata = extract_metadata(page)
    title = getattr(metadata, "title", "") or _first_text(_PAGE_TITLE, page)
    return _Content(_with_main_heading(text, page), title)


def _extract(page: str) -> str:
    """Return the main content of an HTML page as Markdown, "" if there is none.

    `page` is its source.
    """
    import trafilatura

    text = trafilatura.extract(
        page,
        output_format="markdown",
        include_comments=False,
        favor_recall=True,
    )
    return text or ""


def _as_article(page: str) -> str:
    """Return a page with its whole body marked as the main content."""
    opened = re.sub(r"(<body\b[^>]*>)", r"\1<article>", page, count=1, flags=re.IGNORECASE)
    return re.sub(r"</body\s*>", "</article></body>", opened, flags=re.IGNORECASE)


def _with_main_heading(text: str, page: str) -> str:
    """Return the main content of a page below the first main heading of the page.

    The text is returned as it is if it has one of the page's main headings already, is empty, or
    the page has none.
    """
    # trafilatura leaves out a heading above the main content, such as in `<header>`.
    headings_of_page = [_plain_text(heading) for heading in _MAIN_HEADING.findall(page)]
    headings_of_page = [heading for heading in headings_of_page if heading]
    if not text or not headings_of_page:
        return text

    headings_of_text = {line.strip() for line in _HEADING_LINE.findall(text)}
    if not headings_of_text.isdisjoint(headings_of_page):
        return text
    return f"# {headings_of_page[0]}\n\n{text}"


def _with_table_heads(page: str) -> str:
    """Return a page with the first row of each table as its head, which Markdown tables need."""

    def as_head(row: re.Match[str]) -> str:
        return re.sub(r"(</?)td\b", r"\1th", row[0], flags=re.IGNORECASE)

    return _TABLE_WITHOUT_HEAD.sub(as_head, page)


def _first_text(pattern: re.Pattern[str], page: str) -> str:
    """Return the text of the first element that a pattern matches, "" if there is none."""
    match = pattern.search(page)
    if match is None:
        return ""
    return _plain_text(match[1])


def _plain_text(markup: str) -> str:
    """Return the text of some HTML on one line, without its tags."""
    text = html.unescape(_HTML_TAG.sub(" ", markup))
    return " ".join(text.split())


def _deny(event: str, _: object) -> None:
    """Deny the network and other processes to the libraries that read a hostile file.

    Python calls it for every audited event. Raise PermissionError for a denied one.
    """
    if event.startswith(_DENIED_EVENTS):
        raise PermissionError(event)


def main() -> None:
    """Read a file of the format `argv[1]` from standard input, and print the answer as JSON.

    The answer has the keys `text` and `title`, or `missing`, or `error`. Nothing is raised.
    """
    with suppress(ImportError, ValueError, OSError):  # Windows has no such limits
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MAX_MEMORY, _MAX_MEMORY))
    sys.addaudithook(_deny)
    try:
        answer = read_file(sys.stdin.buffer.read(), sys.argv[1])
    except ImportError as error:
        answer = {"missing": error.name or str(error)}
    except BaseException as error:  # noqa: BLE001 - a hostile file may raise anything in its reader
        answer = {"error": " ".join(str(error).split()) or type(error).__name__}
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main()
