"""The table of commands, and what `--help` and completion import."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import typer

from simplemem.cli.app import COMMANDS, app

HEAVY = {
    "rich",
    "markdown_it",
    "pygments",
    "pydantic",
    "numpy",
    "simplemem.store",
    "simplemem.cli.vault",
}


def modules_of(arguments: list[str], **env: str) -> tuple[str, set[str]]:
    """What the program prints, and the modules that it has imported at its end."""
    code = (
        "import sys\nsys.argv[0] = 'simplemem'\nfrom simplemem.__main__ import main\n"
        "try:\n    main()\nfinally:\n    print('\\n'.join(sys.modules), file=sys.stderr)"
    )
    command = [sys.executable, "-c", code, *arguments]
    ran = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True)
    return ran.stdout, set(ran.stderr.split("\n"))


def test_the_table_of_commands_says_what_their_modules_declare() -> None:
    program = typer.main.get_command(app)
    for listed in COMMANDS:
        command = program.commands[listed.name]
        summary = (command.help or "").partition("\n\n")[0]
        assert (command.rich_help_panel, summary) == (listed.panel, listed.summary)
    declared: set[str] = set()
    for module in {listed.module for listed in COMMANDS}:
        group = typer.main.get_group(import_module(f"simplemem.cli.{module}").commands)
        declared |= set(group.commands)
    assert declared == {listed.name for listed in COMMANDS}


@pytest.mark.parametrize("arguments", [["--help"], ["search", "--help"]])
def test_help_imports_only_the_command_that_it_describes(arguments: list[str]) -> None:
    output, loaded = modules_of(arguments)
    assert "Find notes by words, by meaning and by links." in output
    assert loaded & HEAVY == set()


def test_help_is_as_wide_as_the_terminal_and_shows_every_example_on_its_own_line() -> None:
    output, _ = modules_of(["search", "--help"], COLUMNS="90")
    lines = output.split("\n")
    assert max(map(len, lines)) <= 90
    assert "  $ simplemem search gas prices --explain-note 'Helium for lift'" in lines


def test_completion_of_a_command_imports_no_command(tmp_path: Path) -> None:
    words = {"COMP_WORDS": "simplemem s", "COMP_CWORD": "1", "_SIMPLEMEM_COMPLETE": "complete_bash"}
    output, loaded = modules_of([], **words, SIMPLEMEM_VAULT=str(tmp_path))
    assert {"search", "show", "stats", "serve"} <= set(output.split("\n"))
    assert loaded & HEAVY == set() and "simplemem.cli.find" not in loaded


def test_a_program_without_a_command_prints_its_help_and_fails() -> None:
    ran = subprocess.run([sys.executable, "-m", "simplemem"], capture_output=True, text=True)
    assert ran.returncode == 2 and "Find and read:" in ran.stdout and ran.stderr == ""


def test_names_of_commands_are_found_and_deleted_without_an_import() -> None:
    code = (
        "import sys, typer\nfrom simplemem.cli.app import app\n"
        "program = typer.main.get_command(app)\ntable = program.commands\n"
        "assert 'redo' in table and 'serve' in table and 'nonsense' not in table\n"
        "assert program.list_commands(None) == list(table) and len(table) == len(list(table))\n"
        "del table['redo']\n"
        "assert 'redo' not in table\n"
        "try:\n    del table['redo']\nexcept KeyError:\n    pass\nelse:\n    raise AssertionError\n"
        "assert not [name for name in sys.modules if name == 'simplemem.cli.past']\n"
        "assert table['undo'].name == 'undo' and 'redo' not in table and table.get('redo') is None\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
