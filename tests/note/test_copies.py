"""Conflict copies are known by the names that synchronisers and git give them."""

from __future__ import annotations

import pytest

from simplemem.note.names import are_akin, conflict_name


@pytest.mark.parametrize(
    ("path", "original", "maker"),
    [
        ("a/n.sync-conflict-20260101-120000-ABCDEFG.md", "a/n.md", "Syncthing"),
        ("n.sync-conflict-20150101-120000.md", "n.md", "Syncthing"),
        ("n (Ada's conflicted copy 2026-01-01).md", "n.md", "Dropbox"),
        ("n (Ada’s conflicted copy 2026-01-01 (1)).md", "n.md", "Dropbox"),
        ("n (conflicted copy).md", "n.md", "Dropbox"),
        ("N (Case Conflict 1).md", "N.md", "Dropbox"),
        ("n (In Konflikt stehende Kopie von Ida M 2026-01-01).md", "n.md", "Dropbox"),
        ("n (Copie en conflit de PC-0001 2025-11-17).md", "n.md", "Dropbox"),
        ("n (知明 の競合コピー 2023-10-29).md", "n.md", "Dropbox"),
        ("n (Conflicted copy MacBook Pro (2) 202509252029).md", "n.md", "Obsidian Sync"),
        ("n (MacBook Pro (2)'s conflicted copy 2026-01-01).md", "n.md", "Dropbox"),
        ("n (old) (Ada's conflicted copy 2026-01-01).md", "n (old).md", "Dropbox"),
        ("n [conflicted 2].md", "n.md", "pCloud"),
        ("n (còpia en conflicte 2018-04-10 093612).md", "n.md", "Nextcloud"),
        ("n_conflict-20180410-093612.md", "n.md", "ownCloud"),
        ("n (SFConflict a@b.org 2026-01-01-12-00-00).md", "n.md", "Seafile"),
        ("a b/n.md~HEAD", "a b/n.md", "git"),
        ("n.md.orig", "n.md", "git"),
        ("n_REMOTE_4711.md", "n.md", "git"),
    ],
)
def test_a_name_that_only_a_program_gives_says_whose_copy_it_is(path: str, original: str, maker: str) -> None:
    found = conflict_name(path)
    assert found is not None
    assert (found.original, found.maker, found.certain) == (original, maker, True)


@pytest.mark.parametrize(
    ("path", "original", "maker"),
    [
        ("Chapter 2.md", "Chapter.md", "iCloud"),
        ("a/Chapter 12.md", "a/Chapter.md", "iCloud"),
        ("Chapter (1).md", "Chapter.md", "a synchroniser"),
        ("Chapter-DESKTOP-AB12CD3.md", "Chapter.md", "OneDrive"),
        ("Chapter-LAPTOP-AB12CD3-2.md", "Chapter.md", "OneDrive"),
    ],
)
def test_a_name_that_people_give_as_well_is_not_certain(path: str, original: str, maker: str) -> None:
    found = conflict_name(path)
    assert found is not None
    assert (found.original, found.maker, found.certain) == (original, maker, False)


@pytest.mark.parametrize(
    "path",
    [
        "n.md", "2026-01-24.md", "Flight 5 Fulmar.md", "2.md", "Untitled 1.md", "n.md~", "n.txt", "(1).md", "n 2.png",
        "On conflicted copies.md", "The case of a conflict.md", "n (conflict of interest).md", "sync-conflict.md",
        "Notes (draft).md", "C.md", "Model T.md", "folder (Ada's conflicted copy 2026-01-01)/n.md", "Year 2026.md",
    ],
)  # fmt: skip
def test_an_ordinary_name_is_no_copy(path: str) -> None:
    assert conflict_name(path) is None


def test_a_copy_of_a_copy_leads_to_the_note_they_both_began_with() -> None:
    twice = conflict_name("n (Ada's conflicted copy 2026-01-01) (Ida's conflicted copy 2026-01-02).md")
    assert twice is not None
    assert twice.original == "n.md"
    mixed = conflict_name("n.sync-conflict-20260101-120000-ABCDEFG 2.md")
    assert mixed is not None
    assert (mixed.original, mixed.maker, mixed.certain) == ("n.md", "Syncthing", True)


def test_a_copy_of_a_note_with_a_number_is_a_copy_of_that_note() -> None:
    found = conflict_name("Chapter 2 (Ada's conflicted copy 2026-01-01).md")
    assert found is not None
    assert found.original == "Chapter 2.md"


def test_versions_of_a_text_are_akin_and_chapters_of_a_book_are_not() -> None:
    text = "# List\n\n- bread\n- butter and cheese\n- a dozen eggs\n"
    assert are_akin(text, text + "- milk\n")
    assert are_akin(text, text.replace("\n", "\r\n"))
    assert not are_akin(text, "# List\n\nIt was a dark and stormy night.\n")


def test_a_header_of_one_template_makes_no_copies() -> None:
    header = "---\ntype: chapter\nbook: A long title that all chapters share\nstatus: draft\n---\n"
    assert not are_akin(header + "One thing.\n", header + "Another.\n")
    assert not are_akin(header, header)
    assert not are_akin("", "")
