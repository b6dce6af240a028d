"""Names of commands and options: their order in the help, earlier names, and the notes that a name or a path means."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from processes import run_program

from simplemem import open_store
from simplemem.cli.app import COMMANDS
from tests.cli.conftest import notes_of

if TYPE_CHECKING:
    from tests.cli.conftest import Run

pytestmark = pytest.mark.usefixtures("words_only")

PANELS = {
    "Find and read": ["search", "show", "open", "list", "tasks", "backlinks", "context"],
    "Write": ["new", "edit", "daily", "tag", "move", "delete"],
    "History": ["history", "diff", "undo", "redo", "restore", "review"],
    "Collections": ["facts", "topics", "lessons", "documents"],
    "Vault": [
        "init",
        "index",
        "stats",
        "inspect",
        "doctor",
        "conflicts",
        "sync",
        "import",
        "export",
        "config",
        "eval",
    ],
    "Agents and servers": ["connect", "disconnect", "tools", "plugins", "serve", "token"],
}
OLD_COMMANDS = ["install", "uninstall", "mv", "rm", "atoms", "garden", "knowledge", "ingest"]


def test_help_lists_reading_first_and_servers_last(run: Run) -> None:
    listed: dict[str, list[str]] = {}
    for command in COMMANDS:
        listed.setdefault(command.panel, []).append(command.name)
    assert listed == PANELS and list(listed) == list(PANELS)
    output = run("--help", vault=None).out
    headings = [
        line.removesuffix(":") for line in output.splitlines() if line.removesuffix(":") in PANELS
    ]
    assert headings == list(PANELS)


def test_every_summary_is_one_line_in_a_terminal_of_80_columns(run: Run) -> None:
    lines = run("--help", vault=None).out.splitlines()
    for command in COMMANDS:
        assert any(line.split() == [command.name, *command.summary.split()] for line in lines), (
            command.name
        )


@pytest.mark.parametrize("name", OLD_COMMANDS)
def test_an_earlier_name_of_a_command_works_and_is_not_listed(run: Run, name: str) -> None:
    assert run(name, "--help", vault=None).code == 0
    lines = run("--help", vault=None).out.splitlines()
    assert not [line for line in lines if line.startswith(f"  {name} ")]


def test_commands_by_their_earlier_names_do_the_same(run: Run, vault: Path, tmp_path: Path) -> None:
    (tmp_path / "guide.md").write_text("# Guide\n\nWait for the flag.\n")
    assert (
        run("ingest", str(tmp_path / "guide.md"), "--scope", "alex", "--json").json["name"]
        == "documents/alex/guide"
    )
    assert (
        run("atoms", "tidy", "--json").json
        == run("facts", "tidy", "--json").json
        == {"tidied": [], "dry_run": False}
    )
    assert run("garden", "--json").json == run("topics", "archive", "--json").json
    assert run("knowledge", "list", "--json").json == run("lessons", "list", "--json").json
    assert run("mv", "Ada", "people/Ada Holm").code == 0 and run("rm", "Ada Holm").code == 0
    assert "people/Ada Holm.md" not in notes_of(vault)
    entry = run("install", "json", "--vault", str(vault), vault=None)
    assert entry.json == run("connect", "json", "--vault", str(vault), vault=None).json


def test_earlier_names_of_options_work_and_are_not_shown(run: Run, vault: Path) -> None:
    run("tag", "Ada", "todo")
    assert (
        run("history", "--by", "command line", "--json").json
        == run("history", "--author", "command line", "--json").json
    )
    assert run("search", "launch", "--why", "Ada", "--json").json["why"]["name"] == "people/Ada"
    assert run("garden", "--after-days", "30", "--json").code == 0
    assert run("garden", "--after-days", "0").code == 2
    for command, option in (
        ("history", "--by"),
        ("undo", "--by"),
        ("search", "--why"),
        ("topics archive", "--after"),
    ):
        assert f"{option} " not in run(*command.split(), "--help", vault=None).out
    undone = run("undo", "--by", "command line", "--since", "v1", "--yes")
    assert undone.code == 0 and "in 1 note" in undone.out


@pytest.mark.parametrize("length", ["soon", "", "3x", "-1d", "1.5d", "999999d"])
def test_a_length_of_time_is_read_the_same_way_everywhere(run: Run, length: str) -> None:
    for command in (("facts", "tidy", "--older-than"), ("topics", "archive", "--older-than")):
        assert run(*command, length).code == 2
    if length:
        assert run("token", "new", "x", "--expires", length, vault=None).code == 2


def test_lengths_of_time_are_hours_days_or_weeks(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for length in ("30", "30d", "8w", "48h"):
        assert run("topics", "archive", "--older-than", length, "--json").code == 0
    assert run("topics", "archive", "--older-than", "12h").code == 2


@pytest.mark.parametrize("group", ["conflicts", "topics", "config", "tools", "review"])
def test_a_group_without_a_subcommand_lists(run: Run, group: str) -> None:
    listed = run(group, "list", "--json")
    assert listed.code == 0 and run(group, "--json").json == listed.json


def test_options_may_stand_before_the_subcommand(run: Run, vault: Path) -> None:
    assert run("conflicts", "--keep", "note", "merge", "nobody").err.startswith(
        "error: no conflict copy called"
    )
    assert run("topics", "--vault", str(vault), "list", "--json", vault=None).json == {"topics": []}


def test_a_note_is_named_by_its_path_on_the_disk(
    run: Run, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = run("show", "people/Ada").out
    assert run("show", str(vault / "people" / "Ada.md")).out == ada
    monkeypatch.chdir(vault / "people")
    for typed in ("Ada.md", "./Ada.md", "../people/Ada.md"):
        assert run("show", typed).out == ada
    assert run("backlinks", "Ada.md", "--json").json["name"] == "people/Ada"
    assert run("search", "launch", "--link-to", "./Ada.md", "--json").json["hits"]
    assert run("tag", "../log/2026-01-24.md", "calm").code == 0
    assert run("move", "./Ada.md", "people/Ada Holm").code == 0
    assert run("history", "../projects/apollo.md").code == 0
    assert run("delete", "Ada Holm.md", str(vault / "log/2026-01-24.md")).code == 0
    assert run("restore", "./Ada Holm.md").code == 0
    assert set(notes_of(vault)) == {"people/Ada Holm.md", "projects/apollo.md"}


def test_a_new_note_may_be_named_by_its_path_on_the_disk(
    run: Run, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(vault / "people")
    assert run("new", "./Grace.md").out == "Created people/Grace\n"
    assert run("new", str(vault / "log" / "today.md"), "--json").json["name"] == "log/today"
    assert run("move", "./Grace.md", "../crew/", "--json").json["name"] == "crew/Grace"
    assert run("move", "crew/Grace", "./Grace Holm", "--json").json["name"] == "people/Grace Holm"
    assert run("new", "Kite.md").out == "Created Kite\n"  # a name is one in the vault
    assert run("new", "../../outside.md").code == 1 and not (vault.parent / "outside.md").exists()


def test_a_path_that_is_two_notes_is_ambiguous_and_changes_nothing(
    run: Run, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (vault / "Ada.md").write_text("Another Ada.\n")
    old_notes = notes_of(vault)
    monkeypatch.chdir(vault / "people")
    refused = run("delete", "Ada.md", "--json")
    assert (
        refused.code == 1
        and refused.json["error"]["code"] == "ambiguous"
        and notes_of(vault) == old_notes
    )
    assert "balloons" in run("show", "./Ada.md").out and "Another" in run("show", "../Ada.md").out


def test_a_file_outside_the_vault_is_refused_with_the_name_of_the_vault(
    run: Run, vault: Path, tmp_path: Path
) -> None:
    (tmp_path / "loose.md").write_text("Not in the vault.\n")
    refused = run("show", str(tmp_path / "loose.md"))
    assert refused.code == 1 and "is outside the vault" in refused.err and str(vault) in refused.err


def completed(line: str, vault: Path) -> list[str]:
    """What bash is offered for the last word of a line."""
    env = {**os.environ, "_SIMPLEMEM_COMPLETE": "complete_bash", "SIMPLEMEM_VAULT": str(vault)}
    env |= {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    ran = run_program(env=env)
    assert ran.stderr == ""
    return [offered for offered in ran.stdout.split("\n") if offered]


def test_completion_offers_unique_file_names_and_paths_once_a_folder_is_typed(vault: Path) -> None:
    for path in (
        "flights/Flight 4 Gannet",
        "flights/Flight 5 Fulmar",
        "flights/Log",
        "archive/Log",
    ):
        (vault / path).parent.mkdir(exist_ok=True)
        (vault / f"{path}.md").write_text(f"# {path}\n")
    with open_store(vault) as store:
        store.sync()
    assert completed("simplemem show Fli", vault) == ["Flight\\ 4\\ Gannet", "Flight\\ 5\\ Fulmar"]
    assert completed("simplemem show flights/", vault) == [
        "flights/Flight\\ 4\\ Gannet",
        "flights/Flight\\ 5\\ Fulmar",
        "flights/Log",
    ]
    assert completed("simplemem show Log", vault) == []  # of two notes
    assert completed("simplemem show arch", vault) == ["archive/Log"]
    assert completed("simplemem rm Ad", vault) == ["Ada"]


def test_completion_offers_subcommands_clients_and_settings_but_no_earlier_names(
    vault: Path,
) -> None:
    assert completed("simplemem conflicts ", vault) == ["list", "merge"]
    assert completed("simplemem config get search.li", vault) == ["search.limit"]
    assert completed("simplemem connect claude-", vault) == ["claude-desktop", "claude-code"]
    assert completed("simplemem in", vault) == ["init", "index", "inspect"]
    assert completed("simplemem history --b", vault) == ["--blame"]
