"""Proposals in a branch that several servers have as their vault, and with an index in PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pygit2
import pytest
from postgres import needs_postgres, running

from simplemem.errors import Proposed
from simplemem.features.proposals.service import proposals_of
from simplemem.features.review.inbox import InboxFilter
from simplemem.features.review.service import review_of
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

AGENT = {"who": "claude-ai 1.2", "tool": "update_memory", "kind": "agent"}
PERSON = {"who": "ida", "kind": "human"}
TEXT = "# Database\n\nWe use PostgreSQL.\n"

Opening = Callable[..., EnhancedStore]


def propose(change: Callable[[], object]) -> str:
    """Make a change as an agent, and return the name of the proposal that it becomes."""
    with pytest.raises(Proposed) as proposed:
        change()
    return str(proposed.value.details["proposal"])


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Opening]:
    """Opens a further server of one branch, in a folder of its own."""
    repository = tmp_path / "truth.git"
    pygit2.init_repository(str(repository), bare=True)
    stores: list[EnhancedStore] = []

    def open_server(**settings: Any) -> EnhancedStore:
        settings |= {"branch": {"repository": str(repository)}, "embed": {"provider": "none"}}
        folder = tmp_path / f"server {len(stores)}"
        stores.append(EnhancedStore(folder, Settings.model_validate(settings)))
        return stores[-1]

    yield open_server
    for store in stores:
        store.close()


def test_a_proposal_in_a_branch_is_accepted_at_another_server(server: Opening) -> None:
    agents = server(write={"review": ["decisions/"]})
    people = server()
    people.create("decisions/database", TEXT, **PERSON)
    agents.sync()
    name = propose(lambda: agents.update("decisions/database", append="Daily backups.", **AGENT))
    people.update("decisions/database", append="Two replicas.", **PERSON)

    people.sync()
    proposals = proposals_of(people)
    assert [proposal.name for proposal in proposals.list()] == [name]
    assert "+Daily backups." in proposals.find(name).diff
    assert review_of(people).inbox(InboxFilter(person="ida")).groups == ()
    version = proposals.accept(name, **PERSON).version

    agents.sync()
    body = agents.read("decisions/database").content
    assert "Two replicas.\n\nDaily backups." in body
    assert proposals_of(agents).list() == ()

    people.undo(version, **PERSON)
    assert "Daily backups." not in people.read("decisions/database").content
    assert [proposal.name for proposal in proposals.list()] == [name]


def test_two_texts_for_a_daily_note_are_accepted_at_another_server(server: Opening) -> None:
    agents = server(write={"review": ["/"]})
    people = server()
    people.create("Other", "So that the branch exists.", **PERSON)
    agents.sync()
    texts = ("Order helium.", "Call Ida.")
    names = [propose(lambda text=text: agents.append_to_daily(text, **AGENT)) for text in texts]  # type: ignore[misc]

    people.sync()
    for name in names:
        proposals_of(people).accept(name, **PERSON)
    body = people.read(people.daily_name()).content
    assert body.strip() == "Order helium.\n\nCall Ida."


def test_a_box_that_is_ticked_in_a_clone_of_the_branch_decides(server: Opening) -> None:
    agents = server(write={"review": ["/"]})
    agents.create("tea", "Oolong.\n", **PERSON)
    name = propose(lambda: agents.update("tea", append="Milk.", **AGENT))
    proposal = agents.read(name)
    ticked = proposal.text.replace("[ ] Accept", "[x] Accept")
    agents.write_text(name, ticked, if_sha256=proposal.sha256, **PERSON)

    people = server()
    [decided] = proposals_of(people).carry_out_ticked()
    assert decided.outcome == "accepted"
    assert "Milk." in people.read("tea").content


@pytest.mark.slow
@needs_postgres
def test_a_proposal_works_with_an_index_in_postgresql(tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    (vault / "decisions").mkdir(parents=True)
    note = vault / "decisions/database.md"
    note.write_text(TEXT)
    with running() as url:
        settings = {"index": {"engine": url}, "embed": {"provider": "none"}}
        reviewing = settings | {"write": {"review": ["decisions/"]}}
        with (
            EnhancedStore(vault, Settings.model_validate(reviewing)) as agents,
            EnhancedStore(vault, Settings.model_validate(settings)) as people,
        ):
            name = propose(lambda: agents.update("decisions/database", append="Quetzals.", **AGENT))
            agents.sync()
            assert [hit.name for hit in agents.search("quetzals").hits] == []
            assert review_of(people).inbox(InboxFilter(person="ida")).groups == ()

            version = proposals_of(people).accept(name, **PERSON).version
            assert [hit.name for hit in people.search("quetzals").hits] == ["decisions/database"]
            people.undo(version, **PERSON)
            assert note.read_text() == TEXT
            assert [proposal.name for proposal in proposals_of(people).list()] == [name]

            declined = proposals_of(people).decline(name, **PERSON)
            assert declined.outcome == "declined"
            assert proposals_of(agents).list() == ()
