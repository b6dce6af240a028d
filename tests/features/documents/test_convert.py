"""Files as Markdown: what is kept of each kind, and what hostile ones may not do."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from web_of_files import WORD, docx, pdf

from simplemem.errors import Invalid, TooLong, Unavailable, Unreadable
from simplemem.features.documents import convert as room
from simplemem.features.documents.convert import convert, form_of

PAGE = """<!doctype html><html><head><title>Fog rules</title><script>var x = 'JUNK'</script></head><body>
<nav><a href="/">JUNK home</a></nav><div class="cookie-banner">JUNK We value your privacy</div><article><h1>Fog rules</h1>
<p>Ferries stop below <b>400 metres</b>, and code_x says so.</p><h2>Captains</h2><ul><li>Sound the horn.</li></ul>
<table><tr><td>Visibility</td><td>Rule</td></tr><tr><td>400 m</td><td>stop</td></tr></table></article>
<aside>JUNK Most read</aside><footer>JUNK Copyright</footer></body></html>"""


@pytest.mark.parametrize(("name", "content_type", "form"), [
    ("a.pdf", "", "pdf"), ("A.PDF", "", "pdf"), ("a", "application/pdf", "pdf"), ("a.docx", "", "docx"),
    ("a.docx", "application/octet-stream", "docx"), ("a", WORD, "docx"), ("a.htm", "", "html"),
    ("a.txt", "text/html", "html"), ("a.md", "", "text"), ("a", "text/markdown", "text"), ("a.html", "text/plain", "text"),
    ("a.png", "", ""), ("a.pdf", "image/png", ""), ("a", "", ""), ("pdf", "application/zip", "pdf"), ("a.doc", "", ""),
    ("a.csv", "text/csv", ""), ("a.json", "application/json", ""), ("", "", ""),
])  # fmt: skip
def test_what_a_file_is(name: str, content_type: str, form: str) -> None:
    if form:
        assert form_of(b"x", name, content_type) == form
    else:
        with pytest.raises(Invalid, match="simplemem cannot read"):
            form_of(b"x", name, content_type)


def test_a_pdf_says_what_it_is_and_a_large_file_is_refused() -> None:
    assert form_of(b"%PDF-1.7 ...", "download", "application/octet-stream") == "pdf"
    with pytest.raises(TooLong):
        form_of(b"x" * 10_000_001, "a.txt")


@pytest.mark.parametrize(("data", "charset", "text"), [
    ("Café “x”".encode(), "", "Café “x”"), ("Café “x”".encode("cp1252"), "", "Café “x”"),
    ("Café".encode("latin-1"), "iso-8859-1", "Café"), ("Café".encode("utf-8-sig"), "", "Café"),
    ("Café".encode("utf-16"), "utf-16", "Café"), ("日本".encode("shift_jis"), "shift_jis", "日本"),
    ("Café".encode(), "no-such-code", "Café"), ("Café".encode(), "zlib", "Café"), ("Café".encode(), "undefined", "Café"),
    ("Café".encode(), "\0", "Café"),
    (b"a-" * 500_000, "punycode", "a-" * 500_000), (b"\\ud800", "unicode_escape", "\\ud800"),
    (b"\x81 caf\xe9", "", "\ufffd café"), ("Café".encode("cp1252"), "utf-8", "Café"),
])  # fmt: skip
def test_encodings(data: bytes, charset: str, text: str) -> None:
    """The header's, else UTF-8, else cp1252; whatever is wrong is passed over."""
    assert convert(data, "text", charset)[0] == text


def test_what_is_no_text_or_has_none_is_refused() -> None:
    for data, form in (
        (b" \n", "text"),
        (b"<html></html>", "html"),
        (pdf(""), "pdf"),
        (docx(), "docx"),
    ):
        with pytest.raises(Unreadable, match="it contains no text"):
            convert(data, form)
    for data, form in (
        (b"%PDF-1.4 nothing", "pdf"),
        (b"PK nothing", "docx"),
        (pdf("cut")[:-200], "docx"),
    ):
        with pytest.raises(Unreadable, match="could not be read"):
            convert(data, form)


def test_pages_of_a_pdf_are_paragraphs() -> None:
    text, title = convert(
        pdf("Tide tables\nHigh water: 06:12.", "The lock closes.", title="Tides  2026"), "pdf"
    )
    assert (text, title) == ("Tide tables\nHigh water: 06:12.\n\nThe lock closes.", "Tides 2026")


def test_a_word_file_keeps_headings_and_tables() -> None:
    parts = (
        "# Crane manual",
        "It lifts 12 t &amp; more_or_less.",
        "## Checks",
        "Part|Interval",
        "Hook|weekly",
    )
    text, title = convert(docx(*parts), "docx")
    assert title == "Crane manual"
    assert text == (
        "# Crane manual\n\nIt lifts 12 t & more_or_less.\n\n## Checks\n\n"
        "| Part | Interval |\n| --- | --- |\n| Hook | weekly |"
    )


def test_a_word_file_cannot_bring_another_file_along() -> None:
    text, _ = convert(docx("Before", "!out", "After"), "docx")
    assert text.split() == ["Before", "After"]


def test_a_page_is_what_it_is_about_and_nothing_around_it() -> None:
    text, title = convert(PAGE.encode(), "html")
    assert title == "Fog rules" and "JUNK" not in text
    for part in (
        "# Fog rules\n",
        "**400 metres**, and code_x says so.",
        "\n## Captains\n",
        "\n- Sound the horn.\n",
    ):
        assert part in text
    rows = [line.strip() for line in text.splitlines() if line.startswith("|")]
    assert (
        rows[0] == "| Visibility | Rule |"
        and set(rows[1]) <= set("|- ")
        and rows[2:] == ["| 400 m | stop |"]
    )


@pytest.mark.parametrize("page", [
    "<p>Just this.</p>", "<div>Just this.</div>", "Just this.", "<?xml version='1.0' encoding='utf-16'?><p>Just this.</p>",
    "<html><body><main><p>Just this.</p></main></body></html>", "<table><table><tr><td>Just this.",
    "<!doctype html><title>T</title><p>Just this.",
])  # fmt: skip
def test_a_short_or_odd_page_has_its_text_too(page: str) -> None:
    assert convert(page.encode(), "html")[0].replace("|", "").split()[:2] == ["Just", "this."]


def test_text_has_no_character_that_a_note_cannot_carry() -> None:
    text, _ = convert("<p>a\x1b[31m b\ufffe c &#1; d\x85 🙂 é</p>".encode(), "html")
    assert text.isprintable() and text[0] == "a" and "🙂 é" in text


def test_a_reader_has_no_network_no_keys_and_starts_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A library that was taken over is no more than the process it runs in."""
    monkeypatch.setenv("SIMPLEMEM_LLM_API_KEY", "sk-secret")
    monkeypatch.syspath_prepend(tmp_path)
    for attempt in (
        "import socket; socket.create_connection(('127.0.0.1', 9))", "import socket; socket.getaddrinfo('localhost', 1)",
        "import subprocess, sys; subprocess.run([sys.executable, '-V'])", "import os; os.system('true')",
    ):  # fmt: skip
        (tmp_path / "mammoth.py").write_text(f"def convert_to_html(*_, **__):\n    {attempt}\n")
        with pytest.raises(Unreadable, match=r"could not be read: (socket|subprocess|os)\."):
            convert(b"x", "docx")
    (tmp_path / "mammoth.py").write_text(
        "import os\ndef convert_to_html(*_, **__):\n    raise ValueError([*os.environ])\n"
    )
    with pytest.raises(Unreadable) as raised:
        convert(b"x", "docx")
    assert "SIMPLEMEM" not in raised.value.message and "PATH" in raised.value.message


def test_a_reader_that_takes_too_long_is_ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(room, "_TIMEOUT", 1)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "mammoth.py").write_text(
        "import time\ndef convert_to_html(*_, **__):\n    time.sleep(60)\n"
    )
    with pytest.raises(Unreadable, match="longer than 1 s"):
        convert(b"x", "docx")


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of memory is the kernel's")
def test_a_reader_that_wants_too_much_memory_is_ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "mammoth.py").write_text(
        "def convert_to_html(*_, **__):\n    bytearray(2_000_000_000)\n"
    )
    with pytest.raises(Unreadable, match="MemoryError"):
        convert(b"x", "docx")


def test_a_reader_that_dies_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "mammoth.py").write_text(
        "import os\ndef convert_to_html(*_, **__):\n    os._exit(3)\n"
    )
    with pytest.raises(Unreadable, match="the reader of this format crashed"):
        convert(b"x", "docx")


def test_without_the_extra_it_is_said_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("pypdfium2", "mammoth", "trafilatura"):
        (tmp_path / f"{name}.py").write_text(f"raise ModuleNotFoundError('gone', name='{name}')\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    for form, name in (("pdf", "pypdfium2"), ("docx", "mammoth"), ("html", "trafilatura")):
        with pytest.raises(Unavailable, match=f"{name} is not installed") as raised:
            convert(b"x", form)
        assert "pip install '.[documents]'" in raised.value.hint
    assert convert(b"# Plain\n", "text") == ("# Plain", "Plain")
    assert "pypdfium2" not in sys.modules


@pytest.mark.parametrize("body", [
    "<h1>House rules</h1><p>No shoes in the hall.</p><h2>Nights</h2><p>No shouting after ten.</p>",
    "<header><h1>House rules</h1></header><p>No shoes in the hall.</p><h2>Nights</h2><p>No shouting after ten.</p>",
    "<header><h1>House <em>rules</em></h1></header><main><article><p>No shoes in the hall.</p><h2>Nights</h2>"
    "<p>No shouting after ten.</p></article></main>",
    "<div class='top'><h1>House rules</h1></div><div><p>No shoes in the hall.</p><h2>Nights</h2>"
    "<p>No shouting after ten.</p></div>",
])  # fmt: skip
def test_a_page_keeps_its_title_and_all_its_headings(body: str) -> None:
    page = f"<html><head><title>House rules</title></head><body><nav>JUNK</nav>{body}<footer>JUNK</footer></body></html>"
    text, title = convert(page.encode(), "html")
    assert title == "House rules"
    assert text.split("\n\n") == [
        "# House rules",
        "No shoes in the hall.",
        "## Nights",
        "No shouting after ten.",
    ]


def test_the_name_of_a_site_is_no_heading_of_its_page() -> None:
    page = "<header><h1>The Daily Gull</h1></header><main><article><h1>Fog</h1><p>It was thick today.</p></article></main>"
    text, _ = convert(page.encode(), "html")
    assert text == "# Fog\n\nIt was thick today."


def test_a_page_without_a_heading_has_the_title_of_its_head() -> None:
    page = "<html><head><title>Quarry &amp; log</title></head><body><p>Torvald greased the crane.</p></body></html>"
    assert convert(page.encode(), "html") == ("Torvald greased the crane.", "Quarry & log")


def test_a_word_file_keeps_its_title() -> None:
    text, title = convert(
        docx("= Crane manual", "It lifts 12 t.", "# Checks", "Weekly.", title="Template 7"), "docx"
    )
    assert title == "Crane manual"
    assert text.split("\n\n") == ["# Crane manual", "It lifts 12 t.", "# Checks", "Weekly."]
    assert convert(docx("It lifts 12 t.", title="Crane &amp; hoist"), "docx")[1] == "Crane & hoist"
    assert convert(docx("It lifts 12 t."), "docx")[1] == ""
