"""An error tells an agent what to do next, in the words of the tools that it has."""

from __future__ import annotations

from typing import Any


def test_an_edit_of_frontmatter_points_to_metadata(ask: Any, write: Any) -> None:
    write("tea.md", "---\nstatus: open\n---\nOolong.\n")
    refused = ask(
        "update_memory", name="tea", edits=[{"old": "status: open", "new": "status: done"}]
    )
    assert "is in the frontmatter" in refused.text
    assert "metadata=" in refused.text


def test_an_undo_of_a_version_that_never_was_is_no_unknown_memory(ask: Any) -> None:
    made = ask("create_memory", name="tea", content="Oolong.")
    assert not made.failed
    refused = ask("undo_change", version="999999")
    assert "no note called" not in refused.text
    assert "The newest version is v000001; memory_history lists the latest." in refused.text


def test_an_undo_by_a_client_without_since_shows_the_call(ask: Any) -> None:
    refused = ask("undo_change", by="claude")
    assert "needs `since`" in refused.text
    assert 'undo_change(by="claude", since="yesterday")' in refused.text


def test_a_rename_to_a_name_that_is_taken_says_what_to_do(ask: Any) -> None:
    ask("create_memory", name="tea", content="Oolong.")
    ask("create_memory", name="coffee", content="Black.")
    refused = ask("move_memory", name="tea", new_name="coffee")
    assert refused.code == "already_exists"
    assert "Choose another name" in refused.text


def test_a_note_that_was_moved_to_and_fro_and_deleted_leads_no_agent_in_a_circle(ask: Any) -> None:
    ask("create_memory", name="d/A", content="Oolong.")
    ask("move_memory", name="d/A", new_name="d/B")
    ask("undo_change", name="d/A")
    ask("delete_memory", name="d/A")
    for tool, arguments in (
        ("read_memory", {}),
        ("update_memory", {"append": "x"}),
        ("change_tag", {"tags": {"x": True}}),
        ("delete_memory", {}),
        ("get_backlinks", {}),
        ("move_memory", {"new_name": "d/C"}),
    ):
        for name in ("d/A", "d/B", "A", "B"):
            refused = ask(tool, name=name, **arguments)
            assert refused.code == "not_found"
            assert "is now" not in refused.text
            assert 'undo_change(version="v000004") restores it' in refused.text
