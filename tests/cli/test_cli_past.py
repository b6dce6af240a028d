"""Going back from the command line: look at what was, bring it back, take back what a client did."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from simplemem import open_store
from tests.cli.conftest import in_a_terminal, notes_of

if TYPE_CHECKING:
    from tests.cli.conftest import Run

pytestmark = pytest.mark.usefixtures("words_only")


@pytest.fixture
def by_an_agent(vault: Path) -> dict[str, bytes]:
    """What `claude-ai` does while nobody looks: versions 1 to 3. The notes as they were before."""
    old_notes = notes_of(vault)
    with open_store(vault) as store:
        store.sync()
        store.update("people/Ada", append="Wrong.", who="claude-ai 1.2", tool="update_memory")
        store.update("people/Ada", append="Wronger.", who="claude-ai 1.2", tool="update_memory")
        store.delete(
            "projects/apollo", who="claude-ai 1.2", tool="delete_memory", reason="it is over"
        )
    return old_notes


def test_history_shows_who_did_what_and_why_and_is_narrowed(
    run: Run, by_an_agent: dict[str, bytes]
) -> None:
    run("tag", "Ada", "todo")
    ran = run("history", "--author", "claude-ai", "--since", "v3")
    assert ran.out.count("\n") == 1
    assert all(
        word in ran.out
        for word in ("v000003", "claude-ai 1.2", "delete_memory", "it is over", "just now")
    )
    since = run("history", "--since", "3", "--json").json["versions"]
    assert [entry["version"] for entry in since] == ["v000004", "v000003"]
    assert run("history", "--until", "yesterday").out == "No changes through simplemem.\n"
    assert (
        "+Wronger." in run("history", "Ada", "--diff").out
        and "+Wronger." not in run("history", "Ada").out
    )


def test_history_says_that_an_author_has_changed_nothing_and_names_those_who_have(
    run: Run, by_an_agent: dict[str, bytes]
) -> None:
    assert run("history", "--author", "cursor").out == (
        "cursor has changed nothing here.\nnear: claude-ai 1.2\n"
    )
    narrowed = run("history", "--author", "claude-ai", "--until", "yesterday")
    assert narrowed.code == 0 and "claude-ai has changed nothing here." in narrowed.out
    assert run("history", "--author", "cursor", "--json").json == {"versions": []}


def test_a_difference_is_shown_of_a_version_and_of_a_note(
    run: Run, by_an_agent: dict[str, bytes]
) -> None:
    assert "+Wrong.\n" in run("diff", "1").out
    assert (
        "+Wronger.\n" in run("diff", "v1", "v2").out
        and "+Wrong.\n" not in run("diff", "v1", "v2").out
    )
    assert "+Wrong.\n+\n+Wronger.\n" in run("diff", "Ada", "--since", "v1").out
    [found] = run("diff", "2", "--json").json["differences"]
    assert found["name"] == "people/Ada" and "+Wronger." in found["diff"]
    ran = run("diff", "v9")
    assert ran.code == 1 and "no version" in ran.err


def test_a_note_is_shown_and_restored_as_it_was(
    run: Run, vault: Path, by_an_agent: dict[str, bytes]
) -> None:
    assert (
        run("show", "projects/apollo", "--at", "v2").out.encode()
        == by_an_agent["projects/apollo.md"]
    )
    assert "projects/apollo is as it was before v000003." in run("restore", "apollo").out
    assert notes_of(vault)["projects/apollo.md"] == by_an_agent["projects/apollo.md"]
    run("undo")
    assert (
        run("restore", "apollo", "--at", "v2", "--as", "old/apollo", "--json").json["name"]
        == "old/apollo"
    )
    ran = run("restore", "Ada", "--at", "v1", "--as", "old/apollo")
    assert ran.code == 1 and "another note called old/apollo" in ran.err
    assert "already as it was" in run("restore", "Ada", "--at", "v2").out


def test_the_last_change_is_undone_when_none_is_named(run: Run, vault: Path) -> None:
    ran = run("undo")
    assert ran.code == 1 and "nothing to undo" in ran.err
    old_notes = notes_of(vault)
    with (vault / "people/Ada.md").open("r+b") as editor:
        run("tag", "Ada", "todo")
        editor.write(b"saved late by an editor")
    assert "recovered" in run("history").out  # a text that was found since, and is no change
    assert "change of people/Ada" in run("undo").out and notes_of(vault) == old_notes


def test_all_that_a_client_did_is_shown_first_and_then_undone(
    run: Run, vault: Path, by_an_agent: dict[str, bytes]
) -> None:
    after = notes_of(vault)
    command = ("undo", "--author", "claude-ai", "--since", "1 hour ago")
    ran = run(*command, "--dry-run")
    assert "would bring back" in ran.out and "would change back" in ran.out
    refused = run(*command)
    assert refused.code == 1 and "--yes" in refused.err
    assert run(*command, "--dry-run", "--json").json["version"] == "" and notes_of(vault) == after
    done = run(*command, "--yes")
    assert done.code == 0 and "in 2 notes" in done.out and notes_of(vault) == by_an_agent
    run(*done.out.split("undo with: simplemem ")[1].split())
    assert notes_of(vault) == after
    run("tag", "Ada", "todo")
    left = run("undo", "--author", "claude-ai 1.2", "--since", "v1", "--yes").out
    assert "would leave as it is" in left and "command line changed it later" in left


def test_the_undo_of_a_move_and_of_an_edit_says_that_the_text_returns_too(
    run: Run, vault: Path
) -> None:
    with open_store(vault) as store:
        store.sync()
        store.create("plain", "No links.", who="me")
        store.update("Ada", append="An edit.", who="claude-ai")
        store.move("Ada", "people/Countess", who="claude-ai")
        store.move("plain", "simple", who="claude-ai")
    output = run("undo", "--author", "claude-ai", "--since", "v1", "--dry-run").out
    assert "people/Countess → people/Ada, with its earlier text" in output
    assert "simple → plain  " in output


@pytest.mark.parametrize(
    "wrong",
    [
        ("--author", "x"),
        ("--since", "v1"),
        ("Ada", "--author", "x", "--since", "v1"),
        ("--dry-run",),
        ("Ada", "--yes"),
    ],
)
def test_options_that_do_not_go_together_change_nothing(
    run: Run, by_an_agent: dict[str, bytes], wrong: tuple[str, ...]
) -> None:
    assert run("undo", *wrong).code == 1 and len(run("history", "--json").json["versions"]) == 3


def test_undo_twice_undoes_two_steps_and_a_step_is_one_row(
    run: Run, vault: Path, by_an_agent: dict[str, bytes]
) -> None:
    run("new", "hub", "--content", "To [[Ada]].")
    deleted = notes_of(vault)
    run("move", "people/Ada", "people/Ada Holm")
    first, second = run("history", "--limit", "2", "--json").json["versions"]
    assert (first["op"], first["notes"], second["op"]) == ("move", 2, "create")
    assert "people/Ada → people/Ada Holm and 1 more note" in run("history").out
    assert run("history", first["version"]).out.count("\n") == 2
    assert "Undid the move" in run("undo").out and notes_of(vault) == deleted
    assert "Undid the creation" in run("undo").out and "hub.md" not in notes_of(vault)
    assert "Redid the creation" in run("redo").out and notes_of(vault) == deleted
    assert "Redid the move" in run("redo").out and "nothing to redo" in run("redo").err


def test_what_is_undone_already_is_said_with_the_version_that_undid_it(
    run: Run, by_an_agent: dict[str, bytes]
) -> None:
    run("new", "hub", "--content", "Text.")
    run("undo", "hub")
    again = " ".join(run("undo", "hub").err.split())
    assert "nothing to undo in hub" in again
    assert "The last change is already undone (v000005)." in again
    assert "Redid the creation of hub" in run("undo", "v5").out


def test_one_undo_takes_back_what_one_redo_brought_again(
    run: Run, vault: Path, by_an_agent: dict[str, bytes]
) -> None:
    after = notes_of(vault)
    run("undo", "--author", "claude-ai", "--since", "v1", "--yes")
    for _ in range(2):
        assert "Redid what v000004 undid: " in run("redo").out and notes_of(vault) == after
        assert "Undid the redo of " in run("undo").out and notes_of(vault) == by_an_agent


def test_a_no_to_an_undo_says_that_nothing_was_changed(
    vault: Path, by_an_agent: dict[str, bytes]
) -> None:
    after = notes_of(vault)
    command = ("undo", "--author", "claude-ai", "--since", "v1", "--vault", str(vault))
    code, output = in_a_terminal(*command, answer=b"n\n")
    assert code == 1 and b"Nothing was changed." in output and b"Aborted" not in output
    assert notes_of(vault) == after


def test_a_refused_undo_shows_what_has_changed_since_the_version(
    run: Run, vault: Path, by_an_agent: dict[str, bytes]
) -> None:
    (vault / "people/Ada.md").write_text("Of an editor.\n")
    refused = run("undo", "v2")
    assert "--- the text after v000002" in refused.err and "the text you had" not in refused.err


def test_the_hint_for_an_unknown_version_is_a_command(run: Run, vault: Path) -> None:
    assert "`simplemem history NOTE` lists its versions." in run("diff", "99").err


def test_show_of_a_deleted_note_says_that_it_was_deleted_and_how_to_bring_it_back(
    run: Run, by_an_agent: dict[str, bytes]
) -> None:
    for name in ("projects/apollo", "apollo"):
        ran = run("show", name)
        assert ran.code == 1
        assert "projects/apollo was deleted (version v000003)" in ran.err
        assert "`simplemem undo v000003` restores it" in ran.err


def test_show_of_a_note_that_another_program_removed_says_how_to_bring_it_back(
    run: Run, vault: Path, by_an_agent: dict[str, bytes]
) -> None:
    (vault / "people" / "Ada.md").unlink()
    ran = run("show", "people/Ada")
    assert "people/Ada was deleted or renamed outside simplemem" in ran.err
    assert "`simplemem restore 'people/Ada'` restores it" in ran.err
    assert run("restore", "people/Ada").code == 0


@pytest.mark.parametrize("version", ["999999", "v999999"])
def test_undo_of_a_version_that_never_was_names_the_newest(
    run: Run, by_an_agent: dict[str, bytes], version: str
) -> None:
    refused = run("undo", version)
    assert refused.code == 1
    assert "no note called" not in refused.err
    assert "The newest version is v000003; `simplemem history` lists the latest." in refused.err


def test_restore_of_a_note_that_is_there_says_to_pass_at(run: Run, vault: Path) -> None:
    refused = run("restore", "people/Ada")
    assert "people/Ada already exists" in refused.err
    assert "Pass `--at`:" in refused.err


def test_undo_by_somebody_without_since_shows_the_whole_command(
    run: Run, by_an_agent: dict[str, bytes]
) -> None:
    refused = run("undo", "--author", "claude ai")
    assert "--author needs --since" in refused.err
    assert "simplemem undo --author 'claude ai' --since" in refused.err
    assert "--since needs --author" in run("undo", "--since", "yesterday").err


def test_nothing_to_undo_says_where_to_undo_edits_of_your_own(run: Run) -> None:
    err = " ".join(run("undo").err.split())
    assert (
        "Only changes made through simplemem can be undone. Undo edits of your own in your editor."
        in err
    )
    assert "editor" not in run("redo").err


def test_a_deleted_note_is_restored_under_another_name_if_its_own_is_taken(
    run: Run, vault: Path
) -> None:
    old_text = notes_of(vault)["people/Ada.md"]
    run("delete", "people/Ada")
    run("new", "people/Ada", "--content", "Another Ada.")
    new_text = notes_of(vault)["people/Ada.md"]
    ran = run("restore", "people/Ada", "--as", "people/Ada Lovelace")
    assert ran.code == 0, ran.err
    assert (
        notes_of(vault)["people/Ada Lovelace.md"] == old_text
        and notes_of(vault)["people/Ada.md"] == new_text
    )


def test_a_note_that_is_there_is_restored_only_with_a_moment_and_the_hint_is_the_command(
    run: Run, vault: Path
) -> None:
    run("delete", "people/Ada")
    run("undo")
    run("tag", "people/Ada", "todo")
    ran = run("restore", "people/Ada", "--as", "people/Old Ada")
    message = " ".join(ran.err.split())
    assert (
        ran.code == 1
        and "`simplemem restore people/Ada --at 'before v000003' --as 'people/Old Ada'`" in message
    )
    assert run("restore", "people/Ada", "--at", "before v3", "--as", "people/Old Ada").code == 0
    assert "--at WHEN" in run("restore", "projects/apollo").err
