"""`simplemem review`: what agents changed and propose, and what a person decides about it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from simplemem import open_store
from simplemem.errors import Proposed
from tests.cli.conftest import in_a_terminal

if TYPE_CHECKING:
    from tests.cli.conftest import Run

pytestmark = pytest.mark.usefixtures("words_only")


def change(vault: Path, text: str = "Sugar.") -> str:
    with open_store(vault) as agent:
        return agent.update("Ada", append=text, who="claude-ai", tool="update_memory").version


def propose(vault: Path, text: str = "Sugar.") -> str:
    config = vault / ".simplemem/config.toml"
    config.parent.mkdir(exist_ok=True)
    config.write_text('[write]\nreview = ["people/"]\n')
    with open_store(vault) as agent, pytest.raises(Proposed) as proposed:
        agent.update("Ada", append=text, who="claude-ai", tool="update_memory", reason="asked")
    return str(proposed.value.details["proposal"])


def ada(vault: Path) -> str:
    return (vault / "people/Ada.md").read_text()


def test_a_change_is_listed_until_it_is_kept_or_undone(run: Run, vault: Path) -> None:
    first = change(vault)
    listed = run("review", "--json").json
    assert [item["versions"] for item in listed["items"]] == [[first]]
    assert listed["left"] == 1

    kept = run("review", "keep", first, "--json")
    assert kept.code == 0
    assert run("review").out.startswith("Nothing to review.")
    assert run("review", "list", "--all", "--json").json["items"][0]["is_kept"]

    second = change(vault, "Honey.")
    assert run("review", "undo", second).code == 0
    assert "Honey." not in ada(vault)
    assert "Sugar." in ada(vault)
    assert run("review", "keep", "v999").code == 1


def test_the_list_is_narrowed_by_agent_folder_and_time(run: Run, vault: Path) -> None:
    change(vault)
    for options in (["--agent", "cursor"], ["--folder", "projects"]):
        assert run("review", "list", *options, "--json").json["items"] == []
    options = ["--agent", "claude-ai", "--folder", "people", "--since", "yesterday"]
    assert len(run("review", "list", *options, "--json").json["items"]) == 1


def test_a_proposal_is_listed_accepted_and_declined(run: Run, vault: Path) -> None:
    accepted = propose(vault)
    declined = propose(vault, "Honey.")
    listed = run("review", "--json").json
    assert {proposal["name"] for proposal in listed["proposals"]} == {accepted, declined}
    assert listed["items"] == []

    assert run("review", "decline", declined).code == 0
    assert run("review", "accept", accepted.removeprefix("inbox/")).code == 0
    assert "Sugar." in ada(vault)
    assert "Honey." not in ada(vault)
    assert run("review", "accept", accepted).code == 1


def test_accepting_is_undone_as_one_step_and_the_proposal_is_listed_again(
    run: Run, vault: Path
) -> None:
    name = propose(vault)
    before = ada(vault)
    for undo in (["review", "undo"], ["undo"]):
        version = run("review", "accept", name, "--json").json["version"]
        assert "Sugar." in ada(vault)
        assert run(*undo, version).code == 0
        assert ada(vault) == before
        listed = run("review", "--json").json
        assert [proposal["name"] for proposal in listed["proposals"]] == [name]
        assert listed["items"] == []


def test_a_ticked_box_is_carried_out_by_the_list(run: Run, vault: Path) -> None:
    note = vault / f"{propose(vault)}.md"
    note.write_text(note.read_text().replace("[ ] Accept", "[x] Accept"))
    assert run("review", "--json").json["decided"][0]["outcome"] == "accepted"
    assert "Sugar." in ada(vault)


def test_a_conflict_changes_nothing_unless_it_is_to_be_overwritten(run: Run, vault: Path) -> None:
    note = vault / "people/Ada.md"
    config = vault / ".simplemem/config.toml"
    config.parent.mkdir(exist_ok=True)
    config.write_text('[write]\nreview = ["people/"]\n')
    edits = [{"old": "balloons", "new": "kites"}]
    with open_store(vault) as agent, pytest.raises(Proposed) as proposed:
        agent.update("Ada", edits=edits, who="claude-ai")
    note.write_text(ada(vault).replace("balloons", "planes"))
    name = proposed.value.details["proposal"]

    refused = run("review", "accept", name)
    assert refused.code == 1
    assert "changed since" in refused.err
    assert "planes" in ada(vault)
    assert run("review", "accept", name, "--overwrite").code == 0
    assert "kites" in ada(vault)


@pytest.mark.skipif(os.name == "nt", reason="there is no terminal")
def test_in_a_terminal_it_shows_a_proposal_and_asks_about_it(vault: Path) -> None:
    propose(vault)
    code, output = in_a_terminal("review", "--vault", str(vault), answer=b"a\nq\n")
    assert code == 0
    assert b"+Sugar." in output
    assert "Sugar." in ada(vault)
