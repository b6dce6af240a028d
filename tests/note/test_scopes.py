"""The folder of a scope, the scope of a note, and which scopes a writer may name in frontmatter."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Any

import pytest

from simplemem.errors import Invalid
from simplemem.note.scopes import check_move_keeps_scope, check_scope_is_own, folder_of, scope_of


def sees(*folders: str) -> Callable[[str], bool]:
    """Return the `hides` of a writer who sees these folders alone."""
    return lambda path: path.rpartition("/")[0] not in folders


@pytest.mark.parametrize("part", ["files", "Files", "FILES"])
def test_no_scope_has_the_folder_of_the_originals_in_any_letter_case(part: str) -> None:
    folder = folder_of(f"ada/{part}")
    assert folder.casefold() != "ada/files"
    assert scope_of(f"documents/{folder}/x.md", f"ada/{part}") == f"ada/{part}"


def test_a_folder_in_decomposed_letters_is_the_folder_of_its_scope() -> None:
    path = unicodedata.normalize("NFD", "atoms/José/x.md")
    check_scope_is_own(path, {}, {"scope": "José"}, sees())
    assert scope_of(path, "José") == "José"
    with pytest.raises(Invalid, match="the note is in"):
        check_scope_is_own(path, {}, {"scope": "Jose"}, sees())


def test_a_scope_that_differs_in_letter_case_from_the_folder_is_refused() -> None:
    with pytest.raises(Invalid, match="the note is in"):
        check_scope_is_own("atoms/ada/x.md", {}, {"scope": "Ada"}, sees("atoms/ada"))


@pytest.mark.parametrize(("note_type", "folder"), [("atom", "atoms"), ("Document", "documents")])
def test_a_scope_may_be_named_by_a_writer_who_sees_its_folder_for_that_type(
    note_type: str, folder: str
) -> None:
    properties = {"type": note_type, "scope": "bob"}
    check_scope_is_own("papers/x.md", {}, properties, sees(f"{folder}/bob"))
    other = {"atoms": "documents", "documents": "atoms"}[folder]
    with pytest.raises(Invalid, match="is hidden from"):
        check_scope_is_own("papers/x.md", {}, properties, sees("papers", f"{other}/bob"))


@pytest.mark.parametrize(
    ("path", "properties"),
    [
        ("atoms/x.md", {"scope": "bob"}),
        ("documents/x.md", {"scope": "bob"}),
        ("atoms/x.md", {"scope": "bob", "type": ["atom"]}),
        ("papers/x.md", {"scope": " bob ", "type": " atom "}),
        ("papers/x.md", {"scope": 1001, "type": "atom"}),
    ],
)
def test_a_hidden_scope_is_refused_however_it_is_written(
    path: str, properties: dict[str, Any]
) -> None:
    with pytest.raises(Invalid, match="is hidden from"):
        check_scope_is_own(path, {}, properties, sees("atoms", "documents", "papers"))


def test_a_scope_that_a_note_names_already_does_not_stop_other_changes() -> None:
    before = {"scope": "bob", "type": "atom"}
    check_scope_is_own("papers/x.md", before, {**before, "rating": 5}, sees("papers"))


def test_a_move_may_not_put_a_note_into_a_hidden_scope() -> None:
    with pytest.raises(Invalid, match="is hidden from"):
        check_move_keeps_scope(
            "papers/x.md", "atoms/x.md", {"scope": "bob"}, sees("papers", "atoms")
        )
    with pytest.raises(Invalid, match="is hidden from"):
        check_move_keeps_scope(
            "papers/x.md", "atoms/ada/x.md", {"scope": "Ada"}, sees("papers", "atoms/ada")
        )


@pytest.mark.parametrize(
    ("old_path", "new_path", "properties"),
    [
        ("papers/x.md", "papers/y.md", {"scope": "bob", "type": "atom"}),
        ("papers/x.md", "atoms/ada/x.md", {"scope": "bob"}),
        ("atoms/bob/x.md", "atoms/bob/y.md", {"scope": "bob"}),
        ("papers/x.md", "papers/y.md", {"scope": "bob"}),
        ("papers/x.md", "atoms/x.md", {}),
    ],
)
def test_a_move_that_changes_no_scope_or_leaves_it_to_the_folder_is_accepted(
    old_path: str, new_path: str, properties: dict[str, Any]
) -> None:
    check_move_keeps_scope(old_path, new_path, properties, sees("papers", "atoms", "atoms/ada"))
