"""Names: what may be written, what is meant, and what is the same."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from simplemem.errors import Invalid, SimplememError, TooLong
from simplemem.note.names import (
    are_similar,
    base_name,
    check_name,
    clean_reference,
    compare_key,
    legal_name,
    name_of,
    parse_conflict_name,
    path_of,
)
from simplemem.note.note import read_note
from simplemem.note.scopes import is_private_by_rule, private_reason

DECOMPOSED = unicodedata.normalize("NFD", "Café")

TITLES = {
    "a/b": "a-b", "a\\b": "a-b", "C: drive": "C drive", "Why?": "Why", 'say "this"': "say this", "<a>": "a", "CON": "CON_",
    "nul.txt": "nul_.txt", "lpt¹": "lpt¹_", "console": "console", "trailing.": "trailing", " leading ": "leading",
    ".hidden": "hidden", "..": "Untitled", "": "Untitled", "   ": "Untitled", "~": "Untitled", "[[a]]": "a", "a%%b": "a%b",
    "%2e%2E%2f": "2e2E2f", "tab\there": "tab here", "nul\0byte": "nul-byte", DECOMPOSED: "Café", "a\u00a0b": "a b",
    "zero\u200bwidth": "zerowidth", "rtl\u202eevil": "rtlevil", "half \ud800 a": "half a", "🚀 ok": "🚀 ok",
    "README.md": "README", "x.MD.md": "x", "~tilde": "~tilde", "%APPDATA%": "%APPDATA%", "it's": "it's",
    "v1.2 notes": "v1.2 notes",
}  # fmt: skip


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
_TITLES = st.lists(_PIECES | st.characters() | st.characters(categories=["Cs"]), max_size=12).map(
    "".join
)


@settings(max_examples=200)
@given(_TITLES)
@example("%\u200b%\u200b2e")
@example("con .md")
@example("x" * 197 + " .md y")
def test_a_legal_name_is_legal_and_stays_as_it_is(title: str) -> None:
    name = legal_name(title)
    assert legal_name(name) == name
    assert check_name(name) == name
    assert "/" not in name


@settings(max_examples=200)
@given(_TITLES)
def test_a_checked_name_is_safe_or_refused_with_a_way_out(title: str) -> None:
    try:
        name = check_name(title)
    except (Invalid, TooLong) as error:
        assert error.hint
        if error.hint.endswith(" instead."):
            proposal = error.hint.removeprefix("Use ").removesuffix(" instead.")
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


def test_a_refusal_proposes_the_nearest_legal_name_and_a_good_one_is_normalised() -> None:
    with pytest.raises(Invalid) as refused:
        check_name("../work\\What now?.md")
    assert refused.value.hint == "Use work/What now instead."
    assert check_name("projects/apollo.md") == "projects/apollo"
    for check in (check_name, clean_reference):
        with pytest.raises(Invalid, match="leads out of the vault"):
            check("../../evil")
    assert check_name(f"a/{DECOMPOSED}") == "a/Café"


@pytest.mark.parametrize(
    ("given_name", "meant"),
    [
        (" Note.md ", "Note"), ("[[folder/Note|shown]]", "folder/Note"), ("![[Note#Part]]", "Note"), ("Note#Part", "Note"),
        ("Note#^id", "Note"), ("C# notes", "C# notes"), ("C#.md", "C#"), ("/a/b.MD", "a/b"), ("./a", "a"),
        (DECOMPOSED, "Café"), ("what: is this?", "what: is this?"),
    ],
)  # fmt: skip
def test_a_reference_is_read_as_it_is_meant(given_name: str, meant: str) -> None:
    assert clean_reference(given_name) == meant


@pytest.mark.parametrize(
    "name", ["", " ", "/", ".md", "[[]]", "../a", "a/../b", "a\\b", "a\0", "a//b", "[[#here]]"]
)
def test_a_reference_that_leads_nowhere_or_out_is_refused(name: str) -> None:
    with pytest.raises(SimplememError) as refused:
        clean_reference(name)
    assert refused.value.code == "invalid"
    assert refused.value.hint


def test_names_are_compared_without_case_and_unicode_form() -> None:
    assert compare_key("Straße/CAFÉ") == compare_key("STRASSE/" + DECOMPOSED)
    assert compare_key("a") != compare_key("b")
    assert (name_of("a/B.MD"), path_of("a/b"), base_name("a/v1.2 notes.md")) == (
        "a/B",
        "a/b.md",
        "v1.2 notes",
    )


# ------------------------------------------------------------------ private notes


def reason(text: str, path: str = "a.md", rules: tuple[str, ...] = ()) -> str | None:
    return private_reason(path, read_note(text.encode()), rules)


@pytest.mark.parametrize("value", ["true", "yes", "'true'", "1", "on", "[family]", "until I die"])
def test_the_property_private_keeps_a_note_private_unless_it_says_no(value: str) -> None:
    assert reason(f"---\ntitle: x\nPrivate: {value}\n---\nText.\n") == "property"
    for no in ("false", "no", "'false'", "", "~", "0", '""'):
        assert reason(f"---\nprivate: {no}\n---\nText.\n") is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("---\ntags: [one, private]\n---\n", "tag"),
        ("---\ntags: Private/Health\n---\n", "tag"),
        ("---\ntags: {private: family}\n---\n", "tag"),
        ("Only this line is #PRIVATE/taxes in it.\n", "tag"),
        ("---\ntags: [privately, not/private]\n---\nThe private life of bees.\n", None),
        ("---\ntags: {private: false}\n---\n```\n#private\n```\n", None),
        ("Words of a note.\n\n---\n\nprivate: a word at the beginning of a line\n", None),
        ("---\nlist: [\n---\nText.\n", "unreadable"),
        ("---\nprivate: true\n\nThe header was never closed.\n", "unreadable"),
        ("\n---\ntitle: x\nprivate: true\n---\nThe header came a line too late.\n", "unreadable"),
    ],
)
def test_the_tag_private_or_a_header_that_may_say_so_keeps_a_note_private(
    text: str, why: str | None
) -> None:
    assert reason(text) == why


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ("journal/", "journal/2026/a.md"), ("/Journal/", "journal/a.md"), ("plans/will", "plans/will.md"),
        ("cafe\u0301/", "Café/a.md"), ("*.secret.md", "deep/er/a.secret.md"), ("people/*/health", "people/ada/health.md"),
        ("journal\\", "journal/a.md"), ("./journal/", "journal/a.md"), ("**/secret/*", "secret/a.md"),
        ("[Personal]/", "[Personal]/a.md"), ("/", "anything.md"), ("*", "deep/anything.md"),
    ],
)  # fmt: skip
def test_a_rule_names_a_folder_a_note_or_a_pattern(rule: str, path: str) -> None:
    assert is_private_by_rule(path, ["other/", rule])
    assert reason("Text.\n", path, (rule,)) == "rule"


def test_a_rule_says_nothing_of_other_paths() -> None:
    for path in ("journal.md", "journalism/a.md", "old/journal/a.md", "plans/willow.md", "a.md"):
        assert not is_private_by_rule(path, ["journal/", "plans/will", "", "*.secret.md"])


# ------------------------------------------------------------------ conflict copies


@pytest.mark.parametrize(
    ("path", "original", "maker"),
    [
        ("a/n.sync-conflict-20260101-120000-ABCDEFG.md", "a/n.md", "Syncthing"),
        ("n (old) (Ada’s conflicted copy 2026-01-01 (1)).md", "n (old).md", "Dropbox"),
        ("N (Case Conflict 1).md", "N.md", "Dropbox"),
        ("n (In Konflikt stehende Kopie von Ida M 2026-01-01).md", "n.md", "Dropbox"),
        ("n (知明 の競合コピー 2023-10-29).md", "n.md", "Dropbox"),
        ("n (Conflicted copy MacBook Pro (2) 202509252029).md", "n.md", "Obsidian Sync"),
        ("n (còpia en conflicte 2018-04-10 093612).md", "n.md", "Nextcloud"), ("n [conflicted 2].md", "n.md", "pCloud"),
        ("n_conflict-20180410-093612.md", "n.md", "ownCloud"), ("a b/n.md~HEAD", "a b/n.md", "git"),
        ("n (SFConflict a@b.org 2026-01-01-12-00-00).md", "n.md", "Seafile"), ("n.md.orig", "n.md", "git"),
        ("n_REMOTE_4711.md", "n.md", "git"), ("Chapter 2.md", "Chapter.md", "iCloud"),
        ("Chapter (1).md", "Chapter.md", "a synchroniser"), ("Chapter-LAPTOP-AB12CD3-2.md", "Chapter.md", "OneDrive"),
    ],
)  # fmt: skip
def test_the_name_of_a_copy_says_of_what_and_who_made_it(
    path: str, original: str, maker: str
) -> None:
    found = parse_conflict_name(path)
    assert found is not None
    # Names that people give as well are not certain.
    assert (found.original, found.maker, found.certain) == (
        original,
        maker,
        original != "Chapter.md",
    )


@pytest.mark.parametrize(
    "path",
    [
        "n.md", "2026-01-24.md", "Flight 5 Fulmar.md", "2.md", "Untitled 1.md", "n.md~", "n.txt", "(1).md", "n 2.png",
        "On conflicted copies.md", "The case of a conflict.md", "n (conflict of interest).md", "sync-conflict.md",
        "Notes (draft).md", "C.md", "Model T.md", "folder (Ada's conflicted copy 2026-01-01)/n.md", "Year 2026.md",
    ],
)  # fmt: skip
def test_an_ordinary_name_is_no_copy(path: str) -> None:
    assert parse_conflict_name(path) is None


def test_versions_of_a_text_are_akin_and_chapters_of_a_book_are_not() -> None:
    text = "# List\n\n- bread\n- butter and cheese\n- a dozen eggs\n"
    assert are_similar(text, text + "- milk\n")
    assert are_similar(text, text.replace("\n", "\r\n"))
    assert not are_similar(text, "# List\n\nIt was a dark and stormy night.\n")
    header = "---\ntype: chapter\nbook: A long title that all chapters share\nstatus: draft\n---\n"
    assert not are_similar(header + "One thing.\n", header + "Another.\n")
    assert not are_similar(header, header)
    assert not are_similar("", "")
