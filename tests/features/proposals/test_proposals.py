"""Where the settings ask for review, a change by an agent waits until a person accepts it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from simplemem.errors import Conflict, NotFound, Proposed, ReadOnly
from simplemem.features.proposals.service import proposals_of
from simplemem.settings.loading import load_settings
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore, open_store

AGENT = {"who": "claude-ai 1.2", "tool": "update_memory"}
OTHER_AGENT = {"who": "cursor 2.0", "tool": "update_memory"}
PERSON = {"who": "ida"}
TEXT = "# Database\n\nWe use PostgreSQL.\n\nReplicas: 2\n"

Write = Callable[[str, str | bytes], Path]


def agent_settings(vault: Path, *review: str) -> Settings:
    settings = load_settings(vault=vault)
    write = settings.write.model_copy(update={"review": review or ("decisions/",)})
    return settings.model_copy(update={"write": write})


@contextmanager
def opened_for_agents(vault: Path, *review: str) -> Iterator[EnhancedStore]:
    with open_store(vault, settings=agent_settings(vault, *review)) as store:
        yield store


@pytest.fixture
def agents(vault: Path, write: Write) -> Iterator[EnhancedStore]:
    """A store as agents use it, in which changes below `decisions/` need review."""
    write("decisions/database.md", TEXT)
    write("tea.md", "Oolong.\n")
    with opened_for_agents(vault) as store:
        yield store


def propose(change: Callable[[], object]) -> str:
    """Make a change as an agent, and return the name of the proposal that it becomes."""
    with pytest.raises(Proposed) as proposed:
        change()
    return str(proposed.value.details["proposal"])


def append(store: EnhancedStore, text: str, **by: str) -> str:
    return propose(
        lambda: store.update("decisions/database", append=text, **(by or AGENT))  # type: ignore[arg-type]
    )


def test_a_change_of_an_agent_is_a_note_in_the_inbox_and_leaves_the_note_as_it_was(
    agents: EnhancedStore, vault: Path
) -> None:
    name = append(agents, "Backups run daily.", **AGENT, reason="as Ida said")
    assert (vault / "decisions/database.md").read_text() == TEXT

    text = (vault / f"{name}.md").read_text()
    assert name.startswith("inbox/database ")
    assert "- [ ] Accept\n- [ ] Decline\n" in text
    assert "reason: as Ida said" in text
    assert "+Backups run daily." in text


def test_an_accepted_proposal_is_one_step_with_the_names_of_agent_and_person(
    agents: EnhancedStore, vault: Path
) -> None:
    name = append(agents, "Backups run daily.", **AGENT, reason="as Ida said", session="s1")
    decided = proposals_of(agents).accept(name, **PERSON)

    assert (vault / "decisions/database.md").read_text() == f"{TEXT}\nBackups run daily.\n"
    assert not (vault / f"{name}.md").exists()
    step = agents.history(decided.version)
    assert {change.name for change in step} == {"decisions/database", name}
    assert {change.who for change in step} == {"ida"}
    assert {change.kind for change in step} == {"human"}
    assert {change.session for change in step} == {"s1"}
    assert {change.reason for change in step} == {
        "proposed by claude-ai 1.2 (update_memory): as Ida said"
    }

    agents.undo(decided.version, kind="human")
    assert (vault / "decisions/database.md").read_text() == TEXT
    assert [proposal.name for proposal in proposals_of(agents).list()] == [name]


def test_a_declined_proposal_changes_nothing_and_can_be_brought_back(
    agents: EnhancedStore, vault: Path
) -> None:
    name = append(agents, "Backups run daily.")
    decided = proposals_of(agents).decline(name, **PERSON)
    assert proposals_of(agents).list() == ()
    assert (vault / "decisions/database.md").read_text() == TEXT
    agents.undo(decided.version, kind="human")
    assert [proposal.name for proposal in proposals_of(agents).list()] == [name]


@pytest.mark.parametrize(
    "data",
    [
        b"plain\n",
        b"no final newline",
        b"a\r\nb\r\n",
        b"a\r\nb\n",
        b"\xef\xbb\xbfbom\n",
        b"~~~~\nfence\n~~~~\n",
        b"```diff\n-a\n```\n",
        b"trailing\n\n\n",
        b"lone \r return",
    ],
)
def test_a_proposed_text_is_written_byte_for_byte(
    agents: EnhancedStore, vault: Path, write: Write, data: bytes
) -> None:
    note = write("decisions/bytes.md", b"before\n")
    sha256 = agents.read("decisions/bytes").sha256
    text = data.decode()
    name = propose(
        lambda: agents.write_text("decisions/bytes", text, if_sha256=sha256, who="claude")
    )
    proposals_of(agents).accept(name, **PERSON)
    assert note.read_bytes() == data


def test_a_created_moved_tagged_and_deleted_note_are_proposals_too(
    agents: EnhancedStore, vault: Path, write: Write
) -> None:
    write("decisions/old.md", "Old.\n")
    write("links.md", "See [[database]].\n")
    agents.sync()
    created = propose(lambda: agents.create("decisions/new", "New.", **AGENT))
    tagged = propose(lambda: agents.change_tags("decisions/database", {"done": True}, **AGENT))
    moved = propose(lambda: agents.move("decisions/database", "archive/postgres", **AGENT))
    deleted = propose(lambda: agents.delete("decisions/old", **AGENT))
    arrived = propose(lambda: agents.move("tea", "decisions/tea", **AGENT))

    proposals = proposals_of(agents)
    assert len(proposals.list()) == 5
    proposals.accept(created, **PERSON)
    proposals.accept(tagged, **PERSON)
    version = proposals.accept(moved, **PERSON).version
    proposals.accept(deleted, **PERSON)
    proposals.accept(arrived, **PERSON)

    assert agents.read("decisions/new").content.strip() == "New."
    assert agents.read("archive/postgres").tags == ("done",)
    assert (vault / "links.md").read_text() == "See [[postgres]].\n"
    assert not (vault / "decisions/old.md").exists()
    assert (vault / "decisions/tea.md").exists()
    assert proposals.list() == ()
    assert moved in {change.name for change in agents.history(version)}


def test_a_repeated_call_makes_no_second_proposal(agents: EnhancedStore) -> None:
    first = append(agents, "Backups run daily.")
    second = append(agents, "Backups run daily.")
    assert first == second
    assert len(proposals_of(agents).list()) == 1


def test_proposals_of_two_agents_are_merged_one_after_the_other(
    agents: EnhancedStore, vault: Path
) -> None:
    first = append(agents, "Backups run daily.", **AGENT)
    edit = [{"old": "PostgreSQL", "new": "PostgreSQL 17"}]
    second = propose(lambda: agents.update("decisions/database", edits=edit, **OTHER_AGENT))
    proposals = proposals_of(agents)
    proposals.accept(first, **PERSON)
    proposals.accept(second, **PERSON)
    expected = TEXT.replace("PostgreSQL", "PostgreSQL 17") + "\nBackups run daily.\n"
    assert (vault / "decisions/database.md").read_text() == expected


def test_texts_that_two_proposals_append_to_one_note_stay_paragraphs_of_their_own(
    agents: EnhancedStore, vault: Path, write: Write
) -> None:
    note = write("decisions/log.md", "---\nmodified: 2026-01-01T10:00:00Z\n---\nFirst.\n")
    names = [
        propose(lambda text=text: agents.update("decisions/log", append=text, **AGENT))  # type: ignore[misc]
        for text in ("Second.", "Third.")
    ]
    for name in names:
        proposals_of(agents).accept(name, **PERSON)
    assert note.read_text().endswith("---\nFirst.\n\nSecond.\n\nThird.\n")


def test_a_proposal_that_cannot_be_merged_is_a_conflict_and_stays(
    agents: EnhancedStore, vault: Path
) -> None:
    edit = [{"old": "PostgreSQL", "new": "MySQL"}]
    name = propose(lambda: agents.update("decisions/database", edits=edit, **AGENT))
    note = vault / "decisions/database.md"
    changed = TEXT.replace("PostgreSQL", "SQLite")
    note.write_text(changed)

    proposals = proposals_of(agents)
    assert "changed since" in proposals.find(name).conflict
    with pytest.raises(Conflict) as conflict:
        proposals.accept(name, **PERSON)
    assert "+We use SQLite." in conflict.value.details["diff"]
    assert note.read_text() == changed
    assert [proposal.name for proposal in proposals.list()] == [name]

    proposals.accept(name, overwrite=True, **PERSON)
    assert note.read_text() == TEXT.replace("PostgreSQL", "MySQL")


def test_a_proposal_follows_its_note_that_was_moved(agents: EnhancedStore, vault: Path) -> None:
    name = append(agents, "Backups run daily.")
    agents.move("decisions/database", "archive/database", kind="human")
    proposals_of(agents).accept(name, **PERSON)
    assert "Backups run daily." in (vault / "archive/database.md").read_text()
    assert not (vault / "decisions/database.md").exists()


def test_a_person_changes_notes_without_a_proposal(agents: EnhancedStore, vault: Path) -> None:
    agents.update("decisions/database", append="By hand.", who="ida", kind="human")
    agents.update("tea", append="Milk.", **AGENT)
    assert "By hand." in (vault / "decisions/database.md").read_text()
    assert proposals_of(agents).list() == ()


def test_a_stale_or_impossible_change_is_refused_instead_of_proposed(
    agents: EnhancedStore, vault: Path
) -> None:
    with pytest.raises(Conflict):
        agents.update("decisions/database", content="x", if_sha256="0" * 64, **AGENT)
    with pytest.raises(NotFound):
        agents.delete("decisions/none", **AGENT)
    assert not (vault / "inbox").exists()


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("", "Order helium.\n\nCall Ida.\n"),
        ("# Day\n", "# Day\n\nOrder helium.\n\nCall Ida.\n"),
        ("---\ntags: [day]\n---\n", "---\ntags: [day]\n---\nOrder helium.\n\nCall Ida.\n"),
    ],
)
def test_two_texts_for_a_daily_note_that_does_not_exist_are_both_accepted(
    vault: Path, write: Write, template: str, expected: str
) -> None:
    write(".obsidian/daily-notes.json", '{"folder": "decisions", "template": "Day"}')
    write("Day.md", template)
    with opened_for_agents(vault) as agents:
        texts = ("Order helium.", "Call Ida.")
        names = [propose(lambda text=text: agents.append_to_daily(text, **AGENT)) for text in texts]  # type: ignore[misc]
        assert len(set(names)) == 2
        assert not (vault / "decisions").exists()

        proposals = proposals_of(agents)
        versions = [proposals.accept(name, **PERSON).version for name in names]
        daily = vault / f"{agents.daily_name()}.md"
        assert daily.read_text() == expected
        for version in reversed(versions):
            agents.undo(version, kind="human")
        assert not daily.exists()
        assert len(proposals.list()) == 2


def test_a_ticked_box_decides(agents: EnhancedStore, vault: Path) -> None:
    accepted = append(agents, "Backups run daily.")
    declined = append(agents, "Backups run never.")
    tick(vault, accepted, "Accept")
    tick(vault, declined, "Decline")
    decided = proposals_of(agents).carry_out_ticked()
    assert {item.outcome for item in decided} == {"accepted", "declined"}
    assert (vault / "decisions/database.md").read_text() == f"{TEXT}\nBackups run daily.\n"
    assert proposals_of(agents).list() == ()

    version = next(item.version for item in decided if item.outcome == "accepted")
    agents.undo(version, kind="human")
    assert proposals_of(agents).carry_out_ticked() == ()
    assert (vault / "decisions/database.md").read_text() == TEXT


def test_a_text_that_a_person_edits_in_the_proposal_is_the_one_that_is_written(
    agents: EnhancedStore, vault: Path
) -> None:
    name = append(agents, "Backups run daily.")
    note = vault / f"{name}.md"
    note.write_text(note.read_text().replace("\nBackups run daily.", "\nBackups run hourly."))
    tick(vault, name, "Accept")
    proposals_of(agents).carry_out_ticked()
    assert (vault / "decisions/database.md").read_text() == f"{TEXT}\nBackups run hourly.\n"


def test_a_box_ticked_for_a_conflict_is_emptied_and_the_note_says_why(
    agents: EnhancedStore, vault: Path
) -> None:
    edit = [{"old": "PostgreSQL", "new": "MySQL"}]
    name = propose(lambda: agents.update("decisions/database", edits=edit, **AGENT))
    (vault / "decisions/database.md").write_text(TEXT.replace("PostgreSQL", "SQLite"))
    tick(vault, name, "Accept")
    (decided,) = proposals_of(agents).carry_out_ticked()
    assert decided.outcome == "open"
    text = (vault / f"{name}.md").read_text()
    assert "- [ ] Accept" in text
    assert "> [!warning]" in text
    assert "We use MySQL." in text
    assert proposals_of(agents).carry_out_ticked() == ()


def test_an_agent_can_neither_tick_a_box_nor_make_or_move_a_proposal(
    agents: EnhancedStore, vault: Path
) -> None:
    name = append(agents, "Backups run daily.")
    text = (vault / f"{name}.md").read_text()
    sha256 = agents.read(name).sha256
    ticked = text.replace("[ ] Accept", "[x] Accept")
    with pytest.raises(ReadOnly):
        agents.write_text(name, ticked, if_sha256=sha256, **AGENT)
    with pytest.raises(ReadOnly):
        agents.move(name, "inbox/another", **AGENT)
    with pytest.raises(ReadOnly):
        agents.delete(name, **AGENT)
    with pytest.raises(ReadOnly):
        agents.create("inbox/forged", "x", {"type": "change-proposal"}, **AGENT)
    assert (vault / f"{name}.md").read_text() == text


def test_a_proposal_is_not_found_by_search(agents: EnhancedStore) -> None:
    append(agents, "Quetzals nest in spring.")
    agents.sync()
    assert "inbox" not in str([hit.name for hit in agents.search("quetzals nest").hits])


def test_a_read_only_vault_lists_proposals_and_decides_nothing(
    agents: EnhancedStore, vault: Path
) -> None:
    name = append(agents, "Backups run daily.")
    tick(vault, name, "Accept")
    agents.close()
    with open_store(vault, read_only=True) as store:
        assert [proposal.name for proposal in proposals_of(store).list()] == [name]
        assert proposals_of(store).carry_out_ticked() == ()
        with pytest.raises(ReadOnly):
            proposals_of(store).accept(name, **PERSON)
        with pytest.raises(ReadOnly):
            proposals_of(store).decline(name, **PERSON)
    assert (vault / "decisions/database.md").read_text() == TEXT


def tick(vault: Path, name: str, box: str) -> None:
    note = vault / f"{name}.md"
    note.write_bytes(note.read_bytes().replace(f"[ ] {box}".encode(), f"[x] {box}".encode()))
