"""Which vault a command uses when none is named: the one that encloses the current folder, never a guess."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.conftest import Run


@pytest.fixture
def obsidian(vault: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The vault as Obsidian leaves it, with the current folder inside."""
    (vault / ".obsidian").mkdir()
    monkeypatch.chdir(vault / "people")
    return vault


@pytest.fixture
def other_notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: Markdown that is in no vault, below the home folder with a vault of its own."""
    folder = tmp_path / "home" / "handbook" / "chapters"
    folder.mkdir(parents=True)
    (folder.parent / "index.md").write_text("The handbook.\n")
    default = tmp_path / "home" / "simplemem"
    default.mkdir()
    (default / "Mine.md").write_text("A note of mine.\n")
    monkeypatch.chdir(folder)
    return folder


def test_in_a_folder_that_obsidian_uses_every_command_uses_that_folder(
    run: Run, obsidian: Path
) -> None:
    assert run("search", "balloons", "--json", vault=None).json["hits"][0]["name"] == "people/Ada"
    assert run("new", "Boat", vault=None).code == 0 and (obsidian / "Boat.md").is_file()
    assert run("daily", "bought bread", vault=None).code == 0
    assert not (Path.home() / "simplemem").exists()


@pytest.mark.parametrize(
    "command",
    [
        ["search", "mine"],
        ["new", "X"],
        ["daily", "text"],
        ["list"],
        ["edit", "Mine"],
        ["rm", "Mine"],
        ["stats"],
    ],
)
def test_among_other_notes_no_command_uses_the_vault_in_the_home_folder(
    run: Run, other_notes: Path, command: list[str]
) -> None:
    ran = run(*command, vault=None)
    assert ran.code == 1
    assert f"no vault in {other_notes}" in ran.err and "simplemem init ." in ran.err
    assert os.listdir(Path.home() / "simplemem") == ["Mine.md"]


def test_a_vault_directly_below_is_suggested_and_named_by_init(run: Run, other_notes: Path) -> None:
    inner = other_notes / "a vault"
    (inner / ".obsidian").mkdir(parents=True)
    refused = run("search", "mine", vault=None)
    assert f"`--vault '{inner}'` uses the vault in this folder" in " ".join(refused.err.split())
    ran = run("init", ".", vault=None)
    assert ran.code == 0
    assert f"{inner} is a vault of its own" in " ".join(ran.err.split())


def test_settings_are_shown_where_there_is_no_vault(run: Run, other_notes: Path) -> None:
    assert run("config", "--json", vault=None).json["vault"] == {"value": None, "source": "default"}
    ran = run("config", vault=None)
    assert ran.code == 0
    assert f"no vault in {other_notes}" in ran.err


@pytest.mark.parametrize("typed", ["GARDEN", "garde"])
def test_a_named_vault_that_does_not_exist_suggests_the_folder_beside_it(
    run: Run, tmp_path: Path, typed: str
) -> None:
    (tmp_path / "Garden").mkdir()
    ran = run("list", vault=tmp_path / typed)
    assert ran.code == 1 and f"Did you mean {tmp_path / 'Garden'}?" in " ".join(ran.err.split())
    assert "Did you mean" not in run("list", vault=tmp_path / "zzzzzz").err


def test_in_the_home_folder_the_hint_names_a_folder_of_notes(run: Run) -> None:
    ran = run("list", vault=None)
    assert ran.code == 1 and "`simplemem init FOLDER` makes a folder of notes a vault" in " ".join(
        ran.err.split()
    )
    assert "simplemem init ." not in ran.err


def test_an_empty_vault_option_is_refused(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unset variable of a script leaves it, and as a path it would be the current folder."""
    monkeypatch.chdir(tmp_path)
    for option in (["--vault", ""], ["--vault="]):
        ran = run("new", "X", *option, vault=None)
        assert ran.code == 2 and "--vault is empty" in ran.err
    assert not (tmp_path / "X.md").exists()


@pytest.mark.parametrize("folder", ["", "simplemem", "simplemem/docs"])
def test_a_checkout_of_the_program_in_the_home_folder_is_no_vault(
    run: Run, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    checkout = Path.home() / "simplemem"
    for path in (checkout / "simplemem" / "__main__.py", checkout / "docs" / "search.md"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("# of the program\n")
    monkeypatch.chdir(Path.home() / folder)

    for command in (["search", "program"], ["new", "X"], ["connect", "claude-code"]):
        ran = run(*command, vault=None)
        assert ran.code == 1
        assert f"{checkout} contains the source code" in ran.err
        assert "`simplemem init FOLDER` makes a folder of notes a vault" in " ".join(
            ran.err.split()
        )
    clients = run("connect", vault=None)
    assert clients.code == 0 and "claude-code" in clients.out
    assert "simplemem connect CLIENT --vault FOLDER" in " ".join(clients.out.split())
    assert sorted(os.listdir(checkout)) == ["docs", "simplemem"]


def test_among_other_notes_the_clients_are_listed_without_a_vault(
    run: Run, other_notes: Path, vault: Path
) -> None:
    ran = run("connect", vault=None)
    assert ran.code == 0 and "cursor" in ran.out and "not installed" in ran.out
    assert "--vault FOLDER" in ran.out and str(other_notes) not in ran.out
    assert run("connect", "cursor", "--vault", str(vault), "--yes", vault=None).code == 0
    row = run("connect", "--json", vault=None).json["clients"][2]
    assert row["client"] == "cursor" and row["state"] == "knows it" and row["gets"] is None


def test_a_name_that_begins_the_names_of_clients_suggests_them_all(run: Run) -> None:
    ran = run("connect", "claude", vault=None)
    assert ran.code == 1 and "Did you mean claude-desktop or claude-code?" in ran.err
