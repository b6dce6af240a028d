"""Names: what may be written, what is meant, and what is the same."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from simplemem.errors import Invalid, SimplememError, TooLong
from simplemem.note.names import base_name, check_name, clean_reference, compare_key, legal_name, name_of, path_of

DECOMPOSED = unicodedata.normalize("NFD", "Café")

TITLES = {
    "a/b": "a-b",
    "a\\b": "a-b",
    "a:b": "a-b",
    "C: drive": "C drive",
    "Why?": "Why",
    'say "this"': "say this",
    "<a>": "a",
    "a|b": "a-b",
    "CON": "CON_",
    "nul.txt": "nul_.txt",
    "COM9.notes": "COM9_.notes",
    "lpt¹": "lpt¹_",
    "console": "console",
    "trailing.": "trailing",
    "trailing ": "trailing",
    " leading": "leading",
    ".hidden": "hidden",
    "..": "Untitled",
    "": "Untitled",
    "   ": "Untitled",
    "~": "Untitled",
    "a#b": "a-b",
    "[[a]]": "a",
    "a%%b": "a%b",
    "%2e%2E%2f": "2e2E2f",
    "tab\there": "tab here",
    "nul\0byte": "nul-byte",
    "line\nbreak": "line break",
    DECOMPOSED: "Café",
    "a\u00a0b": "a b",
    "zero\u200bwidth": "zerowidth",
    "rtl\u202eevil": "rtlevil",
    "half \ud800 a": "half a",
    "🚀 ok": "🚀 ok",
    "README.md": "README",
    "x.MD.md": "x",
    "~tilde": "~tilde",
    "%APPDATA%": "%APPDATA%",
    "it's": "it's",
    "a\u2028b": "a b",
    "v1.2 notes": "v1.2 notes",
}


@pytest.mark.parametrize(("title", "name"), TITLES.items(), ids=ascii)
def test_any_title_becomes_a_legal_name(title: str, name: str) -> None:
    assert legal_name(title) == name
    assert check_name(name) == name


def test_a_long_title_is_cut_between_words_and_characters() -> None:
    assert legal_name("some words " * 40) == ("some words " * 18).strip()
    assert legal_name("語" * 120) == "語" * 66
    assert legal_name("e\u0301" * 50 + "x" * 300).startswith("é" * 50)
    assert legal_name("a" * 198 + "q\u0323\u0307" * 3) == "a" * 198


# Text that is likely to be hostile: path marks, device names, spaces and dots, and any character at all.
_PIECES = st.sampled_from(
    [
        "..", ".", "/", "\\", "con", "NUL", ".md", ".MD", " ", "%", "%2e", "%%", "~", "\u200b", "\u0301",
        "[[", "]]", "#", "é", "語", "x" * 90, "\0", "_",
    ]
)  # fmt: skip
_TITLES = st.lists(_PIECES | st.characters() | st.characters(categories=["Cs"]), max_size=12).map("".join)


@settings(max_examples=500)
@given(_TITLES)
@example("%\u200b%\u200b2e")
@example("con .md")
@example("x" * 197 + " .md y")
def test_a_legal_name_is_legal_and_stays_as_it_is(title: str) -> None:
    name = legal_name(title)
    assert legal_name(name) == name
    assert check_name(name) == name
    assert "/" not in name


@settings(max_examples=500)
@given(_TITLES)
def test_a_checked_name_is_safe_or_refused_with_a_way_out(title: str) -> None:
    try:
        name = check_name(title)
    except (Invalid, TooLong) as error:
        assert error.hint
        if error.hint.startswith("A name that works: "):
            proposal = error.hint.removeprefix("A name that works: ")
            assert check_name(proposal) == proposal
    else:
        assert name == unicodedata.normalize("NFC", name) == check_name(name)
        assert not name.startswith(("/", "."))
        assert not set(name) & set('\\:*?"<>|#^[]\0')
        assert all(part == part.strip() and not part.endswith(".") for part in name.split("/"))
        assert ".." not in name.split("/")


@pytest.mark.parametrize(
    "name",
    [
        "../outside", "/etc/passwd", "a/../../b", "", " ", ".hidden", "a/.git/b", "x\0y", "con", "a/NUL.md",
        "~", "~/x", "C:/x", "C:x", "\\\\?\\C:\\x", "//host/x", "a\\b", "%2e%2e/x", "..%5cx", "a%2Fb", "a//b",
        "a/", "a/./b", "a. /b", "a./b", "a b /c", "a\u202eb", "a\u00a0b", "a\u2028b", "a\ud800", "a|b", "a#b",
        "a%%b", "a\nb", "x ", " x", "x.",
    ],
)  # fmt: skip
def test_names_that_are_not_safe_everywhere_are_refused(name: str) -> None:
    with pytest.raises(Invalid) as refused:
        check_name(name)
    assert refused.value.hint


@pytest.mark.parametrize("name", ["a" * 400, "語" * 67, "a/" * 130 + "a"])
def test_names_that_are_too_long_are_refused_as_such(name: str) -> None:
    with pytest.raises(TooLong) as refused:
        check_name(name)
    assert refused.value.hint


def test_a_refusal_proposes_the_nearest_legal_name() -> None:
    with pytest.raises(Invalid) as refused:
        check_name("../work\\What now?.md")
    assert refused.value.hint == "A name that works: work/What now"


def test_a_good_name_is_normalised() -> None:
    assert check_name("projects/apollo.md") == "projects/apollo"
    assert check_name(f"a/{DECOMPOSED}") == "a/Café"
    assert check_name("日本語/ノート 2") == "日本語/ノート 2"


@pytest.mark.parametrize(
    ("given_name", "meant"),
    [
        ("Note", "Note"),
        (" Note.md ", "Note"),
        ("[[folder/Note|shown]]", "folder/Note"),
        ("![[Note#Part]]", "Note"),
        ("Note#Part", "Note"),
        ("Note#^id", "Note"),
        ("C# notes", "C# notes"),
        ("C#.md", "C#"),
        ("/a/b.MD", "a/b"),
        ("./a", "a"),
        (DECOMPOSED, "Café"),
        ("what: is this?", "what: is this?"),
    ],
)
def test_a_reference_is_read_as_it_is_meant(given_name: str, meant: str) -> None:
    assert clean_reference(given_name) == meant


@pytest.mark.parametrize("name", ["", " ", "/", ".md", "[[]]", "../a", "a/../b", "a\\b", "a\0", "a//b", "[[#here]]"])
def test_a_reference_that_leads_nowhere_or_out_is_refused(name: str) -> None:
    with pytest.raises(SimplememError) as refused:
        clean_reference(name)
    assert refused.value.code == "invalid"
    assert refused.value.hint


def test_names_are_compared_without_case_and_unicode_form() -> None:
    assert compare_key("Straße/CAFÉ") == compare_key("STRASSE/" + DECOMPOSED)
    assert compare_key("a") != compare_key("b")


def test_paths_and_names_are_each_others_inverse() -> None:
    assert name_of("a/b.md") == "a/b"
    assert name_of("a/B.MD") == "a/B"
    assert path_of("a/b") == "a/b.md"
    assert base_name("a/b.md") == "b"
    assert base_name("v1.2 notes.md") == "v1.2 notes"
