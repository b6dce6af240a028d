"""new, tag, move, rm, history, undo: what they do to the files, and what they say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Run

pytestmark = pytest.mark.usefixtures("words_only")


def text_of(path: Path) -> str:
    return path.read_bytes().decode()


def test_a_new_note_has_what_was_given(run: Run, vault: Path) -> None:
    said = ["--title", "Kite", "--description", "An idea", "--type", "idea", "--content", "Fly it."]
    said += [
        "--tag",
        "todo",
        "--tag",
        "status=open",
        "--property",
        "budget=12",
        "--property",
        "up=[[Apollo]]",
    ]
    ran = run("new", "ideas/kite", *said)
    assert (ran.code, ran.out) == (0, "Created ideas/kite\n")
    text = text_of(vault / "ideas/kite.md")
    for line in (
        "title: Kite",
        "description: An idea",
        "type: idea",
        "  - todo",
        "  - status/open",
        "budget: 12",
    ):
        assert f"{line}\n" in text
    assert "[[Apollo]]" in text and text.endswith("\nFly it.\n")
    shown = run("show", "ideas/kite", "--json").json
    assert shown["frontmatter"]["budget"] == 12 and shown["frontmatter"]["up"] == "[[Apollo]]"


def test_a_property_that_only_looks_like_json_is_text(run: Run) -> None:
    run(
        "new",
        "n",
        "--property",
        "a=NaN",
        "--property",
        "b=[1",
        "--property",
        "c=true",
        "--property",
        'd=["x"]',
    )
    shown = run("show", "n", "--json").json["frontmatter"]
    assert {key: shown[key] for key in "abcd"} == {"a": "NaN", "b": "[1", "c": True, "d": ["x"]}


def test_the_text_of_a_new_note_can_come_from_a_pipe(run: Run, vault: Path) -> None:
    run("new", "log/piped", "-", input="first\nsecond é\n".encode())
    assert text_of(vault / "log/piped.md").endswith("\nfirst\nsecond é\n")


def test_a_pipe_that_is_not_utf8_makes_no_note(run: Run, vault: Path) -> None:
    ran = run("new", "log/piped", "-", input=b"caf\xe9")
    assert ran.code == 1 and "UTF-8" in ran.err
    assert not (vault / "log/piped.md").exists()


@pytest.mark.parametrize("args", [("x", "loose"), ("x", "-", "--content", "y"), ("x", "--property", "alone")])
def test_what_cannot_be_meant_is_wrong_usage(run: Run, vault: Path, args: tuple[str, ...]) -> None:
    assert run("new", *args).code == 2
    assert not (vault / "x.md").exists()


def test_a_note_is_never_replaced_by_a_new_one(run: Run, vault: Path) -> None:
    before = text_of(vault / "people/Ada.md")
    ran = run("new", "people/Ada", "--content", "other", "--json")
    assert ran.code == 1 and ran.json["error"]["code"] == "already_exists"
    assert text_of(vault / "people/Ada.md") == before


def test_tags_are_set_and_removed_in_one_go(run: Run, vault: Path) -> None:
    ran = run("tag", "Apollo", "todo", "status=done", "-project")
    assert ran.code == 0 and "#todo" in ran.out and "#status/done" in ran.out
    text = text_of(vault / "projects/apollo.md")
    assert "  - status/done\n" in text and "  - todo\n" in text
    assert "- project\n" not in text and "status/active" not in text


def test_a_note_keeps_its_notation_of_tags(run: Run, vault: Path) -> None:
    run("tag", "log/2026-01-24", "status=open")
    assert "tags:\n  status: open\n  todo: true\n" in text_of(vault / "log/2026-01-24.md")


def test_without_changes_the_tags_are_shown(run: Run) -> None:
    assert run("tag", "Apollo").out == "#project #status/active\n"
    assert run("tag", "Apollo", "--json").json["tag_map"] == {"project": True, "status": "active"}


def test_a_mistyped_option_of_tag_removes_nothing(run: Run, vault: Path) -> None:
    before = text_of(vault / "projects/apollo.md")
    assert run("tag", "Apollo", "--jsno").code == 2
    assert text_of(vault / "projects/apollo.md") == before


def test_links_follow_a_move(run: Run, vault: Path) -> None:
    ran = run("move", "people/Ada.md", "people/Ada Lovelace.md")
    assert ran.code == 0
    assert "Moved people/Ada to people/Ada Lovelace" in ran.out and "links rewritten in projects/apollo" in ran.out
    assert "[[Ada Lovelace]]" in text_of(vault / "projects/apollo.md")
    assert not (vault / "people/Ada.md").exists()


def test_what_a_person_should_know_of_a_move_is_said(run: Run) -> None:
    ran = run("move", "Ada", "hf_aB3dE5gH7jK9mN1pQ3sT5vX7zA9cD1fG3h")
    assert ran.code == 0 and "note: the name seems to hold a Hugging Face token, hf_…" in ran.err


def test_a_note_is_moved_into_a_folder(run: Run, vault: Path) -> None:
    moved = run("move", "Ada", "archive/", "--json").json
    assert moved["name"] == "archive/Ada" and (vault / "archive/Ada.md").exists()


def test_what_is_deleted_can_be_brought_back_as_it_says(run: Run, vault: Path) -> None:
    before = text_of(vault / "people/Ada.md")
    ran = run("rm", "Ada")
    assert ran.code == 0 and "Deleted people/Ada" in ran.out and "1 link to people/Ada is broken now" in ran.err
    assert not (vault / "people/Ada.md").exists()
    command = ran.out.split("undo with: simplemem ")[1].split()
    assert run(*command).code == 0
    assert text_of(vault / "people/Ada.md") == before


def test_a_mistyped_name_deletes_none_of_the_others(run: Run, vault: Path) -> None:
    assert run("rm", "Ada", "nobody").code == 1
    assert (vault / "people/Ada.md").exists()


def test_a_note_named_twice_is_deleted_once(run: Run) -> None:
    deleted = run("rm", "Ada", "people/Ada.md", "--json").json["deleted"]
    assert [each["name"] for each in deleted] == ["people/Ada"]


def test_the_last_change_is_undone_when_none_is_named(run: Run, vault: Path) -> None:
    before = text_of(vault / "projects/apollo.md")
    run("tag", "Apollo", "todo")
    ran = run("undo")
    assert ran.code == 0 and "apollo" in ran.out
    assert text_of(vault / "projects/apollo.md") == before


def test_nothing_to_undo_is_an_error_that_says_why(run: Run) -> None:
    ran = run("undo")
    assert ran.code == 1 and "nothing to undo" in ran.err


def test_the_history_names_what_was_done_and_by_what(run: Run) -> None:
    run("tag", "Apollo", "todo")
    run("move", "Apollo", "projects/moon")
    newest, oldest = run("history", "projects/moon").out.splitlines()
    assert "projects/apollo → projects/moon" in newest and "command line move" in newest and "just now" in newest
    assert "command line tag" in oldest
    version = run("history", "projects/moon", "--json").json["versions"][-1]["version"]
    assert oldest.startswith(version)
    assert "todo" in run("show", "projects/moon", "--version", version).out


def test_a_history_can_show_what_each_change_did(run: Run) -> None:
    run("tag", "Apollo", "todo")
    shown = run("history", "Apollo", "--diff").out
    assert "+  - todo" in shown
    assert "+  - todo" not in run("history", "Apollo").out


def test_an_empty_history_says_so(run: Run) -> None:
    assert run("history").out == "No changes.\n"
