"""new, tag, move, delete: what they do to the files, and what they print."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import notes_of

if TYPE_CHECKING:
    from tests.cli.conftest import Run

pytestmark = pytest.mark.usefixtures("words_only")


def test_a_new_note_has_what_was_asked_for(run: Run, vault: Path) -> None:
    options = [
        "--title",
        "Kite",
        "--description",
        "An idea",
        "--type",
        "idea",
        "--content",
        "Fly it.",
    ]
    options += ["--tag", "todo", "--tag", "status=open"]
    for typed in ("budget=12", "up=[[Apollo]]", "a=NaN", "b=[1", "c=true", 'd=["x"]'):
        options += ["--property", typed]
    ran = run("new", "ideas/kite", *options)
    assert (ran.code, ran.out) == (0, "Created ideas/kite\n")
    note = run("show", "ideas/kite", "--json").json
    header = {
        "title": "Kite",
        "description": "An idea",
        "type": "idea",
        "budget": 12,
        "up": "[[Apollo]]",
    }
    # What only looks like JSON is a text.
    header |= {"a": "NaN", "b": "[1", "c": True, "d": ["x"], "tags": ["todo", "status/open"]}
    assert {key: note["frontmatter"][key] for key in header} == header and note[
        "content"
    ] == "Fly it.\n"


def test_the_text_of_a_new_note_can_come_from_a_pipe(run: Run, vault: Path) -> None:
    run("new", "log/piped", "-", input="first\nsecond é\n".encode())
    assert (vault / "log/piped.md").read_bytes().endswith("\nfirst\nsecond é\n".encode())
    ran = run("new", "log/other", "-", input=b"caf\xe9")
    assert ran.code == 1 and "UTF-8" in ran.err and not (vault / "log/other.md").exists()


@pytest.mark.parametrize(
    "args", [("x", "loose"), ("x", "-", "--content", "y"), ("x", "--property", "alone")]
)
def test_what_cannot_be_meant_is_wrong_usage(run: Run, vault: Path, args: tuple[str, ...]) -> None:
    assert run("new", *args).code == 2 and not (vault / "x.md").exists()


def test_a_tag_in_the_text_is_named_with_its_line_when_it_is_to_be_removed(
    run: Run, vault: Path
) -> None:
    (vault / "calls.md").write_text("Call Bob.\n\nCall Ida #todo\n")
    done = run("tag", "calls", "-todo")
    assert "the tag #todo stays, because it is in the text (line 3)" in done.err
    assert (vault / "calls.md").read_text() == "Call Bob.\n\nCall Ida #todo\n"


def test_new_of_a_template_that_is_not_there_lists_the_templates(run: Run, vault: Path) -> None:
    (vault / "Templates").mkdir()
    (vault / "Templates" / "Meeting.md").write_text("# {{title}}\n")
    (vault / ".obsidian").mkdir(exist_ok=True)
    (vault / ".obsidian" / "templates.json").write_text('{"folder": "Templates"}')
    refused = run("new", "meetings/one", "--template", "Nope")
    assert refused.code == 1
    assert "no template called 'Nope'" in refused.err
    assert "The templates are Meeting." in refused.err
    assert not (vault / "meetings").exists()


def test_tags_are_set_removed_and_shown(run: Run, vault: Path) -> None:
    ran = run("tag", "Apollo", "todo", "status=done", "-project")
    assert (ran.code, ran.out) == (0, "projects/apollo: #status/done #todo\n")
    assert "  - status/done\n  - todo\n" in (vault / "projects/apollo.md").read_text()
    assert run("tag", "Apollo").out == "#status/done #todo\n"
    assert run("tag", "Apollo", "--json").json["tag_map"] == {"status": "done", "todo": True}
    old_notes = notes_of(vault)
    assert run("tag", "Apollo", "--jsno").code == 2 and notes_of(vault) == old_notes


def test_links_follow_a_move_and_what_a_person_should_know_is_said(run: Run, vault: Path) -> None:
    ran = run("move", "people/Ada.md", "people/Ada Lovelace.md")
    assert (
        "Moved people/Ada to people/Ada Lovelace" in ran.out
        and "links rewritten in projects/apollo" in ran.out
    )
    assert "[[Ada Lovelace]]" in (vault / "projects/apollo.md").read_text()
    assert run("move", "Ada Lovelace", "archive/", "--json").json["name"] == "archive/Ada Lovelace"
    ran = run("move", "Ada Lovelace", "hf_aB3dE5gH7jK9mN1pQ3sT5vX7zA9cD1fG3h")
    assert ran.code == 0 and "note: the name seems to contain a Hugging Face token, hf_…" in ran.err


def test_what_is_deleted_can_be_brought_back_as_it_says(run: Run, vault: Path) -> None:
    old_notes = notes_of(vault)
    assert run("rm", "Ada", "nobody").code == 1 and notes_of(vault) == old_notes  # none of them
    ran = run("rm", "Ada", "people/Ada.md")
    assert (
        ran.out.count("Deleted people/Ada\n") == 1
        and "1 link to people/Ada is broken now" in ran.err
    )
    assert (
        run(*ran.out.split("undo with: simplemem ")[1].split()).code == 0
        and notes_of(vault) == old_notes
    )
    assert [note["name"] for note in run("rm", "Ada", "--json").json["deleted"]] == ["people/Ada"]


def test_new_asks_before_it_replaces_a_note_or_rewrites_a_link(run: Run, vault: Path) -> None:
    run("new", "diary", "--content", "I met [[Ada]].")
    old_notes = notes_of(vault)
    for name in ("Ada", "people/Ada"):
        ran = run("new", name, "--content", "another")
        assert ran.code == 1 and "overwrite" in ran.err
    assert (
        run("new", "people/Ada", "--json").json["error"]["code"] == "already_exists"
        and notes_of(vault) == old_notes
    )
    assert run("new", "Ada", "--content", "another", "--overwrite").code == 0
    assert "[[people/Ada|Ada]]" in (vault / "diary.md").read_text()


def test_daily_writes_words_below_a_list_as_a_paragraph_of_their_own(run: Run, vault: Path) -> None:
    saved = run("daily", "- [ ] Order helium", "--json").json
    run("daily", "- [ ] Ask Hugh")
    run("daily", "The wind is too strong.")
    text = (vault / saved["path"]).read_text()
    assert text.endswith("- [ ] Order helium\n- [ ] Ask Hugh\n\nThe wind is too strong.\n")


def test_daily_makes_todays_note_and_adds_to_it(run: Run, vault: Path) -> None:
    saved = run("daily", "--json").json
    assert (vault / saved["path"]).is_file() and saved["name"] == f"{datetime.now():%Y-%m-%d}"  # noqa: DTZ005
    assert run("daily", "- [ ] Order helium").code == 0 and run("show", "daily").out.endswith(
        "- [ ] Order helium\n"
    )
    assert (
        run("tasks").out
        == f"{saved['name']}:{run('show', 'daily').out.count(chr(10))}  Order helium\n"
    )
    assert run("tasks", "--prefix", "people/").out == "No open tasks.\n"
    assert run("list", "--tag", "task=open", "--json").json["total"] == 1


def test_new_takes_a_template_and_adds_to_it(run: Run, vault: Path) -> None:
    (vault / "Meeting.md").write_text("# {{title}}\n\n- [ ] Agenda\n")
    assert (
        run(
            "new",
            "meetings/Spring",
            "--template",
            "Meeting",
            "--content",
            "At ten.",
            "--tag",
            "meeting",
        ).code
        == 0
    )
    text = (vault / "meetings/Spring.md").read_text()
    assert (
        "# Spring\n\n- [ ] Agenda\n" in text
        and text.endswith("At ten.\n")
        and "meeting" in text.split("---")[1]
    )
    assert run("new", "x", "--template", "nowhere").code == 1 and not (vault / "x.md").exists()


def test_a_note_made_of_the_text_of_another_is_found(run: Run, vault: Path) -> None:
    text = "".join(f"Every week we look at point {number} of the list.\n" for number in range(12))
    run("new", "Weekly", "--content", text)
    ran = run("new", "Weekly 4", "--content", f"{text}The zebra is new.\n")
    assert ran.code == 0 and "hidden" not in ran.err
    assert [hit["name"] for hit in run("search", "zebra", "--json").json["hits"]] == ["Weekly 4"]
    assert run("conflicts", "--json").json["conflicts"] == []


def test_new_says_what_it_replaced_and_how_to_undo_it(run: Run, vault: Path) -> None:
    old_notes = notes_of(vault)
    replaced = run("new", "people/Ada", "--content", "another", "--overwrite")
    assert "replaced a text (" in replaced.err and "last changed" in replaced.err
    assert run(*replaced.err.split("`simplemem ")[1].split("`")[0].split()).code == 0
    assert notes_of(vault) == old_notes


def test_several_notes_are_deleted_in_one_step_and_restored_by_one_undo(
    run: Run, vault: Path
) -> None:
    old_notes = notes_of(vault)
    ran = run("delete", "Ada", "projects/apollo", "log/2026-01-24", "people/Ada.md")
    assert ran.code == 0 and notes_of(vault) == {} and ran.out.count("undo with") == 1
    assert ran.err == ""  # the links among them are gone with them
    [step] = run("history", "--json").json["versions"]
    assert (step["op"], step["notes"], step["tool"]) == ("delete", 3, "delete")
    assert run("undo").code == 0 and notes_of(vault) == old_notes
    assert run("redo").code == 0 and notes_of(vault) == {}
    assert (
        run(*ran.out.split("undo with: simplemem ")[1].split()).code == 0
        and notes_of(vault) == old_notes
    )


def test_links_from_notes_that_stay_are_counted_when_several_are_deleted(
    run: Run, vault: Path
) -> None:
    (vault / "hub.md").write_text("To [[Ada]] and [[Apollo]] and [[people/Ada]].\n")
    deleted = run("delete", "Ada", "projects/apollo", "--json").json["deleted"]
    assert [(note["name"], note["links_left_unresolved"]) for note in deleted] == [
        ("people/Ada", 2),
        ("projects/apollo", 1),
    ]
