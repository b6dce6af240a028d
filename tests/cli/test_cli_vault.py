"""init, index, stats, inspect, config, and the help of every command."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import typer.main
from typer.testing import CliRunner

from simplemem.cli.app import app
from tests.cli.conftest import notes_of

if TYPE_CHECKING:
    from tests.cli.conftest import Run

_PROGRAM: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
_GROUPS = {
    name: list(command.commands)
    for name, command in _PROGRAM.items()
    if hasattr(command, "commands")
}
COMMANDS = sorted(name for name in _PROGRAM if name not in _GROUPS)
COMMANDS += [f"{group} {name}" for group, names in _GROUPS.items() for name in names]

pytestmark = pytest.mark.usefixtures("words_only")


def test_init_makes_a_folder_a_vault_and_changes_no_note(
    run: Run, vault: Path, tmp_path: Path
) -> None:
    old_notes = notes_of(vault)
    ran = run("init", str(vault), vault=None)
    assert ran.code == 0 and "Vault ready" in ran.out and "3 notes" in ran.out
    assert (vault / ".simplemem" / ".gitignore").read_text().strip() == "*" and notes_of(
        vault
    ) == old_notes
    assert "Already a vault" in run("init", str(vault), vault=None).out
    new = tmp_path / "a" / "b"
    answer = run("init", str(new), "--json", vault=None).json
    folder = answer.pop("folder")
    assert answer == {"vault": str(new), "new": True, "notes": 0}
    assert folder == [{"path": ".simplemem/index.db", "holds": "the index", "can_be_rebuilt": True}]
    assert "simplemem new" in run("init", str(new), vault=None).out
    (tmp_path / "file").write_text("x")
    ran = run("init", str(tmp_path / "file"), vault=None)
    assert ran.code == 1 and "is a file" in ran.err
    assert run("init", "x").code == 2


def test_init_ends_with_what_it_found_and_three_commands(
    run: Run, vault: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready, found, index, kept_line, following, *steps = run(
        "init", str(vault), vault=None
    ).out.splitlines()
    assert "index --rebuild" in index and ".simplemem/index.db" in index
    assert ".simplemem/history" in kept_line and ".simplemem/trash" in kept_line
    assert ready.endswith("3 notes") and "3 links (1 unresolved)" in found and following == "Next:"
    assert [step.split()[1] for step in steps] == ["search", "connect", "doctor"] and str(
        vault
    ) in steps[0]
    monkeypatch.chdir(vault)
    assert "--vault" not in run("init", vault=None).out
    steps = run("init", str(tmp_path / "new"), vault=None).out.splitlines()[5:]
    assert [step.split()[1] for step in steps] == ["new", "connect", "doctor"]


def test_only_init_new_and_serve_make_a_folder_and_say_so(run: Run, tmp_path: Path) -> None:
    missing, graph = tmp_path / "gone", tmp_path / "graph.jsonl"
    graph.write_text(
        '{"type": "entity", "name": "Ada", "entityType": "person", "observations": []}\n'
    )
    for vault in (missing, None):  # None is the folder that is used where nothing is named
        for command in (
            ["import", "graph", str(graph)],
            ["export", "graph"],
            ["stats"],
            ["doctor"],
            ["search", "x"],
        ):
            ran = run(*command, vault=vault)
            assert ran.code == 1 and "no vault " in ran.err and "simplemem init " in ran.err
    assert not missing.exists() and not (Path.home() / "simplemem").exists()
    assert (
        f"creating the vault {missing}" in run("new", "first", vault=missing).err
        and (missing / "first.md").is_file()
    )
    assert (
        "creating the vault " in run("new", "first", vault=None).err
        and (Path.home() / "simplemem/first.md").is_file()
    )
    assert not run("new", "second", vault=missing).err


def test_what_other_programs_call_a_command_is_understood(run: Run, vault: Path) -> None:
    assert run("ls").out == run("list").out and run("ls").code == 0
    assert run("add", "inbox/x").code == 0 and run("mv", "inbox/x", "inbox/y").code == 0
    assert (vault / "inbox/y.md").is_file() and run("delete", "inbox/y").code == 0
    assert not (vault / "inbox/y.md").exists() and run("nonsense").code == 2


def test_stats_are_for_people_with_a_summary_first(
    run: Run, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    first, *rest = run("stats").out.splitlines()
    assert first == "3 notes, 29 words"
    labels = ["vault", "links", "index", "vectors", "state"]
    assert [line[:9].strip() for line in rest if not line.startswith(" ")] == labels
    assert re.search(r"^index +[0-9.]+ (kB|MB), ", "\n".join(rest), re.MULTILINE)
    assert not re.search("…|{|embedding", "\n".join(rest))


def test_index_counts_what_it_did(run: Run, vault: Path) -> None:
    assert run("index").out.startswith("3 added") and run("index").out.startswith(
        "The index is up to date in "
    )
    (vault / "people/Ada.md").unlink()
    (vault / "log/2026-01-24.md").write_text("Changed, and longer than before.\n")
    assert run("index").out.startswith("1 modified, 1 removed")
    assert run("index", "--rebuild").out.startswith("Rebuilt: 2 notes")
    facts = run("index", "--json").json
    assert (facts["added"], facts["trouble"]) == (0, "") and facts["seconds"] >= 0


def test_an_index_is_moved_by_a_subcommand_and_by_its_earlier_option(run: Run, vault: Path) -> None:
    moved = run("index", "move", "sqlite", "--json").json
    assert (
        moved["notes"] == 3
        and moved["in_use"]
        and run("index", "--engine", "sidecar", "--json").json == moved
    )
    refused = run("index", "move", "settings")
    assert (
        refused.code == 1
        and "index.engine is not set" in refused.err
        and "index move postgresql://" in refused.err
    )
    refused = run("index", "move", "postgresql://memory:s3cret@db/memory")
    assert refused.code == 1 and ".pgpass" in refused.err and "s3cret" not in refused.err
    assert (
        run("index", "--engine", "sidecar", "--rebuild").code == 2
        and run("index", "move").code == 2
    )
    assert "--engine" not in run("index", "--help", vault=None).out


def test_stats_and_inspect_say_what_was_read(run: Run, vault: Path) -> None:
    facts = run("stats", "--json").json
    assert facts["notes"] == 3 and facts["unresolved_links"] == 1 and str(vault) in run("stats").out
    read = run("inspect", "--json").json["people/Ada.md"]
    assert (read["links"], read["unresolved"], read["aliases"]) == (
        ["projects/apollo.md"],
        ["nowhere"],
        ["Countess"],
    )
    assert "unresolved: nowhere" in run("inspect").out


def test_config_names_the_source_of_every_setting(
    run: Run, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("init", str(vault), vault=None)
    (vault / ".simplemem" / "config.toml").write_text("[search]\nlimit = 9\n")
    monkeypatch.setenv("SIMPLEMEM_HISTORY_KEEP_DAYS", "7")
    settings = run("config", "--json").json
    assert settings["vault"] == {"value": str(vault), "source": "flag"}
    assert settings["search.limit"] == {
        "value": 9,
        "source": str(vault / ".simplemem" / "config.toml"),
    }
    assert settings["history.keep_days"] == {"value": 7, "source": "$SIMPLEMEM_HISTORY_KEEP_DAYS"}
    assert settings["write.durability"]["source"] == "default"
    assert any(line.split()[:2] == ["search.limit", "9"] for line in run("config").out.splitlines())
    (vault / ".simplemem" / "config.toml").write_text("[search]\nlimt = 9\n")
    ran = run("list")
    assert ran.code == 1 and "search.limt" in ran.err and "search.limit" in ran.err


def test_config_says_how_a_vault_was_found(
    run: Run, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = lambda: run("config", "--json", vault=None).json["vault"]["source"]  # noqa: E731
    assert source() == "default"
    run("init", str(vault), vault=None)
    monkeypatch.chdir(vault / "people")
    assert (
        source() == "the nearest vault upward"
        and run("list", "--json", vault=None).json["total"] == 3
    )
    monkeypatch.setenv("SIMPLEMEM_VAULT", str(vault))
    assert source() == "$SIMPLEMEM_VAULT"


def test_the_example_of_settings_can_be_used_as_it_is(
    run: Run, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SIMPLEMEM_EMBED_PROVIDER")
    run("init", str(vault), vault=None)
    (vault / ".simplemem" / "config.toml").write_text(run("config", "--example").out)
    assert {
        setting["source"] for key, setting in run("config", "--json").json.items() if key != "vault"
    } == {"default"}


def test_a_secret_among_the_settings_is_never_shown(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIMPLEMEM_VOYAGE_AI_API_KEY", "pa-12345")
    monkeypatch.setenv("SIMPLEMEM_EMBED_URL", "http://ada:se%20cret@192.168.1.5:8000/v1")
    ran = run("config", "--json")
    assert ran.json["voyage_ai.api_key"] == {
        "value": "**********",
        "source": "$SIMPLEMEM_VOYAGE_AI_API_KEY",
    }
    assert ran.json["embed.url"]["value"] == "http://**********@192.168.1.5:8000/v1"
    assert not re.search("pa-12345|20cret", ran.out + run("config").out)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_examples_of_itself_and_takes_a_vault_and_json(name: str) -> None:
    result = CliRunner().invoke(
        app, [*name.split(), "--help"], prog_name="simplemem", env={"TERMINAL_WIDTH": "100"}
    )
    assert result.exit_code == 0
    reference, examples = re.split("examples", result.stdout, maxsplit=1, flags=re.IGNORECASE)
    assert f"simplemem {name}" in examples
    assert not re.search(r"<(bool|str|list|file|path|directory)", result.stdout.lower())
    if name in ("serve", "disconnect"):
        return
    options = set(re.findall(r"--[a-z-]+", reference))
    assert "--json" in options
    # Tokens are of a user, and plug-ins are of an installation.
    assert "--vault" in options or name.startswith("token ") or name == "plugins"


@pytest.mark.parametrize("group", ["", *_GROUPS])
def test_help_names_no_type_of_python(group: str) -> None:
    assert (
        "<bool>"
        not in CliRunner().invoke(app, [*group.split(), "--help"], prog_name="simplemem").stdout
    )


def test_init_refuses_the_home_folder_and_the_folders_above_it(run: Run) -> None:
    for folder in (Path.home(), Path.home().parent, Path("/")):
        ran = run("init", str(folder), vault=None)
        assert ran.code == 1 and "Name the folder of notes" in " ".join(ran.err.split())
        assert not (folder / ".simplemem").exists()
    assert run("init", vault=None).code == 1


def test_init_warns_of_a_vault_inside_a_vault(run: Run, vault: Path) -> None:
    run("init", str(vault), vault=None)
    ran = run("init", str(vault / "people"), vault=None)
    assert ran.code == 0 and f"is inside the vault {vault}" in " ".join(ran.err.split())
    assert "is inside" not in run("init", str(vault / "people"), vault=None).err
    sibling = vault / "people" / ".." / ".." / "beside"
    assert "is inside" not in run("init", str(sibling), vault=None).err


def test_init_says_that_it_created_the_folder(run: Run, tmp_path: Path) -> None:
    new = tmp_path / "garden"
    first = run("init", str(new), vault=None).out
    assert first.startswith(f"Created {new}. Vault ready")
    assert "Created" not in run("init", str(new), vault=None).out
