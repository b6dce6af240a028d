"""Going back from the command line: look at what was, bring it back, take back what a client did."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from simplemem import open_store

if TYPE_CHECKING:
    from tests.cli.conftest import Run

pytestmark = pytest.mark.usefixtures("words_only")


def changed_by_an_agent(vault: Path) -> None:
    """What `claude-ai` does while nobody looks: versions 1 to 3."""
    with open_store(vault) as store:
        store.sync()
        for tool, change in (("update_memory", {"append": "Wrong."}), ("update_memory", {"append": "Wronger."})):
            store.update("people/Ada", **change, who="claude-ai 1.2", tool=tool)  # type: ignore[arg-type]
        store.delete("projects/apollo", who="claude-ai 1.2", tool="delete_memory", reason="it is over")


def test_history_shows_who_did_what_and_why_and_is_narrowed(run: Run, vault: Path) -> None:
    changed_by_an_agent(vault)
    run("tag", "Ada", "todo")
    ran = run("history", "--by", "claude-ai", "--tool", "delete_memory")
    assert ran.out.count("\n") == 1
    assert all(word in ran.out for word in ("v000003", "claude-ai 1.2", "delete_memory", "it is over"))
    assert [each["version"] for each in run("history", "--since", "3", "--json").json["versions"]] == [
        "v000004",
        "v000003",
    ]
    assert "No changes." in run("history", "--until", "yesterday").out
    [entry] = run("history", "--until", "v1", "--json").json["versions"]
    assert len(entry["before"]) == len(entry["sha256"]) == 64


def test_a_difference_is_shown_of_a_version_and_of_a_note(run: Run, vault: Path) -> None:
    changed_by_an_agent(vault)
    assert "+Wrong.\n" in run("diff", "1").out
    assert "+Wronger.\n" in run("diff", "v1", "v2").out and "+Wrong.\n" not in run("diff", "v1", "v2").out
    assert "+Wrong.\n+Wronger.\n" in run("diff", "Ada", "--since", "v1").out
    assert "-The launch is planned" in run("diff", "projects/apollo").out
    [found] = run("diff", "2", "--json").json["differences"]
    assert found["name"] == "people/Ada" and "+Wronger." in found["diff"]
    ran = run("diff", "v9")
    assert ran.code == 1 and "no version" in ran.err


def test_a_note_is_shown_as_it_was(run: Run, vault: Path) -> None:
    before = (vault / "projects/apollo.md").read_bytes()
    changed_by_an_agent(vault)
    assert run("show", "projects/apollo", "--at", "v2").out.encode() == before
    ran = run("show", "Ada", "--at", "v1")
    assert "Wrong." in ran.out and "Wronger." not in ran.out
    assert run("show", "Ada", "--at", "now", "--section", "nope").code == 1
    assert "not both" in run("show", "Ada", "--at", "v1", "--version", "v1").err


def test_a_deleted_note_is_restored_and_the_restore_undone(run: Run, vault: Path) -> None:
    before = (vault / "projects/apollo.md").read_bytes()
    changed_by_an_agent(vault)
    assert "projects/apollo is as it was at v000003." in run("restore", "apollo").out
    assert (vault / "projects/apollo.md").read_bytes() == before
    run("undo")
    assert not (vault / "projects/apollo.md").exists()
    assert run("restore", "apollo", "--at", "v2", "--as", "old/apollo", "--json").json["name"] == "old/apollo"
    ran = run("restore", "Ada", "--at", "v1", "--as", "old/apollo")
    assert ran.code == 1 and "another memory called old/apollo" in ran.err and "Choose another name" in ran.err
    assert "already as it was" in run("restore", "Ada", "--at", "v2").out


def test_all_that_a_client_did_is_shown_first_and_then_taken_back(run: Run, vault: Path) -> None:
    before = {path: path.read_bytes() for path in vault.rglob("*.md")}
    changed_by_an_agent(vault)
    after = {path: path.read_bytes() for path in vault.rglob("*.md") if ".simplemem" not in path.parts}
    asked = ("undo", "--by", "claude-ai", "--since", "1 hour ago")
    shown = run(*asked, "--dry-run", "--diff")
    assert "brought back" in shown.out and "changed back" in shown.out and "-Wronger." in shown.out
    refused = run(*asked)
    assert refused.code == 1 and "--yes" in refused.err
    assert run(*asked, "--dry-run", "--json").json["version"] == ""
    assert all(path.read_bytes() == data for path, data in after.items())
    done = run(*asked, "--yes")
    assert done.code == 0 and "in 2 notes" in done.out
    assert {path: path.read_bytes() for path in before} == before
    undo = done.out.split("undo with: simplemem ")[1].split()
    assert "and of 1 more" in run(*undo).out
    assert not (vault / "projects/apollo.md").exists()


def test_what_is_left_is_named_with_its_reason(run: Run, vault: Path) -> None:
    changed_by_an_agent(vault)
    run("tag", "Ada", "todo")
    done = run("undo", "--by", "claude-ai 1.2", "--since", "v1", "--yes")
    assert "left as it is" in done.out and "changed since by command line (v000004)" in done.out
    assert (vault / "projects/apollo.md").exists() and "Wronger" in (vault / "people/Ada.md").read_text()
    again = run("undo", "--by", "claude-ai", "--since", "v1", "--yes", "--json").json
    assert again["notes"] == [] and again["version"] == "" and again["left"][0]["name"] == "people/Ada"


@pytest.mark.parametrize(
    "wrong", [("--by", "x"), ("--since", "v1"), ("Ada", "--by", "x", "--since", "v1"), ("--dry-run",), ("Ada", "--yes")]
)
def test_options_that_do_not_go_together_change_nothing(run: Run, vault: Path, wrong: tuple[str, ...]) -> None:
    changed_by_an_agent(vault)
    assert run("undo", *wrong).code == 1
    assert len(run("history", "--json").json["versions"]) == 3


def test_nobody_is_asked_when_nobody_is_there(run: Run, vault: Path) -> None:
    changed_by_an_agent(vault)
    asked = [sys.executable, "-m", "simplemem", "undo", "--vault", str(vault), "--by", "claude-ai", "--since", "v1"]
    done = subprocess.run(asked, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and "nothing was changed" in done.stderr
    assert not (vault / "projects/apollo.md").exists()
