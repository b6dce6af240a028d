"""Knowledge in a vault: kept as notes, found, linked and laid aside, each change one step."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from embedding_service import EmbeddingService

from simplemem.config import Settings
from simplemem.errors import Ambiguous, Conflict, Invalid, NotFound, ReadOnly, TooLong, Unreadable
from simplemem.kinds.learned.analysis import Verdict, analysis_of
from simplemem.kinds.learned.knowledge import Knowledge, Reads, knowledge_of
from simplemem.store import EnhancedStore

Write = Callable[[str, str | bytes], Path]


@pytest.fixture
def knowledge(plain_store: EnhancedStore) -> Knowledge:
    return knowledge_of(plain_store)


def header_of(vault: Path, name: str) -> dict:
    return yaml.safe_load((vault / f"{name}.md").read_text().split("---\n")[1])


def test_what_is_saved_is_a_note_that_reads_well(knowledge: Knowledge, vault: Path) -> None:
    kept = knowledge.save(
        "error",
        "Pool exhausted: `List<int>`",
        context="Deploying",
        confidence=0.9,
        tags=["pg", "status/open"],
        who="claude",
    )
    assert kept.entry.name == "knowledge/error/pool-exhausted-list-int" and kept.warnings == ()
    text = (vault / f"{kept.entry.name}.md").read_text()
    assert text.endswith("---\n\nPool exhausted: `List<int>`\n\n## Context\n\nDeploying\n")
    header = header_of(vault, kept.entry.name)
    assert header["id"] == kept.entry.id and header["tags"] == ["pg", "status/open"]
    assert (header["type"], header["knowledge_type"], header["confidence"], header["verified"]) == (
        "knowledge",
        "error",
        0.9,
        False,
    )


def test_two_that_say_the_same_have_a_note_each_and_are_told(knowledge: Knowledge) -> None:
    one = knowledge.save("insight", "Tests first.", confidence=0.7).entry
    again = knowledge.save("insight", "Tests first.", confidence=0.9)
    assert again.entry.name == one.name + "-2" and again.entry.id != one.id
    assert [twin.id for twin in again.twins] == [one.id]
    assert knowledge.save("pattern", "Tests first.", confidence=0.9).twins == []


@pytest.mark.parametrize(
    ("wrong", "failure"),
    [
        ({"kind": "fact"}, Invalid),
        ({"content": "  "}, Invalid),
        ({"confidence": 1.5}, Invalid),
        ({"confidence": float("nan")}, Invalid),
        ({"content": "x" * 10_001}, TooLong),
        ({"context": "x" * 10_001}, TooLong),
        ({"content": "a\0b"}, Invalid),
    ],
)
def test_what_cannot_be_kept_is_refused_and_nothing_is_written(
    knowledge: Knowledge, vault: Path, wrong: dict, failure: type
) -> None:
    asked = {"kind": "error", "content": "x", "confidence": 0.5} | wrong
    with pytest.raises(failure):
        knowledge.save(asked.pop("kind"), asked.pop("content"), **asked)
    assert not (vault / "knowledge").exists()


def test_tags_that_no_note_can_have_are_spelled_as_it_can_and_that_is_said(knowledge: Knowledge) -> None:
    kept = knowledge.save("error", "x", confidence=1, tags=["node.js", "#pg", "two words", "pg"])
    assert kept.entry.tags == ("node-js", "pg", "two-words")
    assert len(kept.warnings) == 1 and "'node-js'" in kept.warnings[0]


def test_what_a_person_writes_moves_and_deletes_is_known_at_once(
    knowledge: Knowledge, write: Write, vault: Path
) -> None:
    assert knowledge.entries() == []
    file = write("knowledge/decision/Port.md", "---\nid: own\nconfidence: 0.4\n---\nThe port is 8080.\n")
    write("notes/other.md", "---\ntype: person\n---\nAda\n")
    knowledge._store.sync(embed=False)
    (entry,) = knowledge.entries()
    assert (entry.id, entry.type, entry.confidence, entry.content) == ("own", "decision", 0.4, "The port is 8080.")
    file.write_text("---\nid: own\n---\nThe port is 9090.\n")
    assert knowledge.find("own").content == "The port is 9090."
    file.unlink()
    with pytest.raises(NotFound):
        knowledge.find("own")


def test_an_entry_is_found_by_its_id_the_beginning_of_it_or_its_name(knowledge: Knowledge, write: Write) -> None:
    for id_ in ("abcd-1", "abcd-2", "abce-3"):
        write(f"knowledge/error/n{id_[-1]}.md", f"---\nid: {id_}\n---\nx\n")
    for ref in ("abcd-1", "knowledge/error/n1", "n1", "N1.md", "[[n1]]", " abcd-1 "):
        assert knowledge.find(ref).id == "abcd-1"
    assert knowledge.find("ABCE").id == "abce-3"
    with pytest.raises(Ambiguous) as told:
        knowledge.find("abcd")
    assert len(told.value.details["candidates"]) == 2
    for ref in ("ab", "zzzz"):
        with pytest.raises(NotFound):
            knowledge.find(ref)


def test_a_search_is_narrowed_before_it_ranks_and_superseded_entries_come_last(
    knowledge: Knowledge, write: Write
) -> None:
    for k in range(30):
        knowledge.save("pattern", f"the connection pool of service {k}", confidence=0.9)
    low = knowledge.save("error", "a pool error", confidence=0.2).entry
    high = knowledge.save("error", "pool trouble", confidence=0.8).entry
    write("knowledge/error/old.md", "---\nid: old\nconfidence: 0.9\nstatus: superseded\n---\npool pool pool pool\n")
    knowledge._store.sync(embed=False)
    found = [hit.entry.id for hit in knowledge.search("pool", kind="error").hits]
    assert set(found) == {low.id, high.id, "old"} and found[-1] == "old"
    assert [hit.entry.id for hit in knowledge.search("pool", kind="error", least_confidence=0.8).hits] == [
        high.id,
        "old",
    ]
    assert len(knowledge.search("pool").hits) == 10
    assert knowledge.search("pool", kind="solution").hits == []
    assert knowledge.search("pool").method == "words"


def test_each_hit_counts_as_a_read_and_no_note_is_written_for_it(knowledge: Knowledge, vault: Path) -> None:
    entry = knowledge.save("error", "a pool error", confidence=0.2).entry
    other = knowledge.save("error", "something else", confidence=0.2).entry
    before = {path: path.read_bytes() for path in vault.rglob("*.md")}
    knowledge.search("pool")
    knowledge.search("pool")
    counts = knowledge.reads()
    assert counts[entry.id].count == 2 and counts[entry.id].last and other.id not in counts
    assert {path: path.read_bytes() for path in vault.rglob("*.md")} == before


def test_a_link_is_a_bullet_in_the_source_that_obsidian_follows(knowledge: Knowledge, vault: Path) -> None:
    error = knowledge.save("error", "Pool exhausted", confidence=0.9).entry
    fix = knowledge.save("solution", "Raise the pool", confidence=0.9).entry
    one, other, is_new = knowledge.link(fix.id, error.id[:8], "fixes")
    assert (one.id, other.id, is_new) == (fix.id, error.id, True)
    text = (vault / f"{fix.name}.md").read_text()
    assert text.endswith("Raise the pool\n\n## Relations\n\n- fixes [[knowledge/error/pool-exhausted]]\n")
    assert knowledge.leading_to(knowledge.entries())[fix.path] == [("fixes", error)]
    assert knowledge._store.backlinks(error.name)[0].name == fix.name
    assert knowledge.link(fix.id, error.id, " fixes ")[2] is False
    assert (vault / f"{fix.name}.md").read_text() == text
    with pytest.raises(Invalid):
        knowledge.link(fix.id, fix.name)
    with pytest.raises(NotFound):
        knowledge.link(fix.id, "nobody")


def test_a_renamed_entry_keeps_its_id_and_what_links_to_it(knowledge: Knowledge) -> None:
    error = knowledge.save("error", "Pool exhausted", confidence=0.9).entry
    fix = knowledge.save("solution", "Raise the pool", confidence=0.9).entry
    knowledge.link(fix.id, error.id, "fixes")
    knowledge._store.move(error.name, "archive/Old pool error")
    assert knowledge.find(error.id).name == "archive/Old pool error"
    assert [(words, there.id) for words, there in knowledge.leading_to([knowledge.find(fix.id)])[fix.path]] == [
        ("fixes", error.id)
    ]


def test_a_header_that_cannot_be_read_is_never_rewritten(knowledge: Knowledge, write: Write) -> None:
    other = knowledge.save("error", "x", confidence=1).entry
    file = write("knowledge/error/broken.md", "---\ntags: [a\n---\ntext\n")
    knowledge._store.sync(embed=False)
    with pytest.raises(Unreadable):
        knowledge.link("broken", other.id)
    assert file.read_text() == "---\ntags: [a\n---\ntext\n"


def test_a_note_that_changes_meanwhile_gets_the_relation_too(knowledge: Knowledge, vault: Path) -> None:
    one = knowledge.save("error", "one", confidence=1).entry
    other = knowledge.save("error", "other", confidence=1).entry
    file = vault / f"{one.name}.md"
    file.write_text(file.read_text().replace("one\n", "one, edited by hand\n"))
    knowledge.link(one.id, other.id)
    assert "one, edited by hand\n\n## Relations\n\n- relates_to [[" in file.read_text()


# -- laying aside


@pytest.fixture
def verdicts(knowledge: Knowledge) -> list[Verdict]:
    knowledge.save(
        "decision", "Use Postgres for the billing store.", confidence=0.9, verified=True, who="a", tool="save_knowledge"
    )
    knowledge.save("decision", "Use MySQL for the billing store.", confidence=0.35, who="a", tool="save_knowledge")
    seen = analysis_of(knowledge._store)
    return seen.verdicts(seen.contradictions())


def test_resolving_lays_the_loser_aside_and_says_so_in_both_as_one_step(
    knowledge: Knowledge, verdicts: list[Verdict], vault: Path
) -> None:
    before = {path: path.read_text() for path in vault.rglob("*.md")}
    version = knowledge.supersede(verdicts, who="a")
    loser, winner = verdicts[0].loser, verdicts[0].winner
    header = header_of(vault, loser.name)
    assert header["status"] == "superseded" and header["superseded_by"] == f"[[{winner.name}]]"
    assert (
        header["confidence"] == 0.1
        and header["superseded_at"]
        and header["superseded_reason"] == "slot: it is verified"
    )
    assert (vault / f"{winner.name}.md").read_text().endswith(f"- supersedes [[{loser.name}]]\n")
    seen = analysis_of(knowledge._store)
    assert seen.contradictions() == [] and [e.id for e in seen.entries if e.is_superseded] == [loser.id]
    knowledge._store.undo(version)
    assert {path: path.read_text() for path in vault.rglob("*.md")} == before
    assert len(analysis_of(knowledge._store).contradictions()) == 1


def test_a_note_that_changed_since_it_was_judged_stops_the_whole_step(
    knowledge: Knowledge, verdicts: list[Verdict], vault: Path
) -> None:
    file = vault / f"{verdicts[0].loser.name}.md"
    file.write_text(file.read_text().replace("MySQL", "Postgres as well"))
    before = {path: path.read_text() for path in vault.rglob("*.md")}
    with pytest.raises(Conflict):
        knowledge.supersede(verdicts)
    assert {path: path.read_text() for path in vault.rglob("*.md")} == before


def test_what_a_person_edited_wins_over_what_is_verified(
    knowledge: Knowledge, verdicts: list[Verdict], vault: Path
) -> None:
    assert verdicts[0].why == "it is verified"
    file = vault / f"{verdicts[0].loser.name}.md"
    file.write_text(file.read_text() + "\nDecided with Ada.\n")
    seen = analysis_of(knowledge._store)
    (verdict,) = seen.verdicts(seen.contradictions())
    assert verdict.winner.id == verdicts[0].loser.id and verdict.why == "a person edited it"


def test_a_reset_puts_the_entries_and_nothing_else_into_the_trash_and_one_undo_brings_all_back(
    knowledge: Knowledge, write: Write, vault: Path
) -> None:
    other = write("notes/a.md", "stays\n")
    for text in ("one", "two", "three"):
        knowledge.save("insight", text, confidence=0.5)
    before = {path: path.read_bytes() for path in vault.rglob("*.md")}
    count, version = knowledge.reset(who="command line")
    assert count == 3 and knowledge.entries() == [] and other.exists()
    assert knowledge.reset() == (0, "")
    knowledge._store.undo(version)
    assert {path: path.read_bytes() for path in vault.rglob("*.md") if ".simplemem" not in path.parts} == before
    assert len(knowledge.entries()) == 3


def test_a_vault_for_reading_only_is_searched_and_nothing_is_kept(knowledge: Knowledge, vault: Path) -> None:
    entry = knowledge.save("error", "a pool error", confidence=0.2).entry
    with EnhancedStore(vault, Settings.model_validate({"embed": {"provider": "none"}}), read_only=True) as store:
        reading = knowledge_of(store)
        assert [hit.entry.id for hit in reading.search("pool").hits] == [entry.id]
        assert reading.reads()[entry.id].count == 1
        with pytest.raises(ReadOnly):
            reading.save("error", "another", confidence=0.2)
    assert knowledge.reads() == {}


# -- how often entries are read

LOG = ".simplemem/state/access.jsonl"


def test_counts_of_several_processes_are_one_and_what_is_no_line_of_ours_is_passed_over(
    knowledge: Knowledge, vault: Path
) -> None:
    knowledge.count([])
    assert knowledge.reads() == {} and not (vault / LOG).exists()
    knowledge.count(["a"])
    with EnhancedStore(vault, knowledge._store.settings) as store:
        knowledge_of(store).count(["a", "c"])
        with (vault / LOG).open("ab") as file:
            file.write(b'nonsense\n[1]\n{"at": 5, "ids": ["a"]}\n{"at": "2026", "ids": [7, "b"]}\n')
            file.write(b'{"at": "2026-01-02", "ids": ["to')  # a power cut
        knowledge.count(["a"])
        counts = knowledge.reads()
        assert {key: reads.count for key, reads in counts.items()} == {"a": 3, "b": 1, "c": 1}
        assert knowledge_of(store).reads() == counts and counts["b"] == Reads(1, "2026")


def test_a_grown_log_is_written_anew_when_a_process_first_counts_and_no_count_is_lost(
    knowledge: Knowledge, vault: Path
) -> None:
    knowledge.count(["a", "b"])
    with (vault / LOG).open("ab") as file:
        file.write(b'{"at":"2026-01-02T00:00:00Z","ids":["a"]}\n' * 8000)
    with EnhancedStore(vault, knowledge._store.settings) as store:
        knowledge_of(store).count(["c"])
    assert len((vault / LOG).read_text().splitlines()) == 3
    knowledge.count(["a"])
    assert {key: reads.count for key, reads in knowledge.reads().items()} == {"a": 8002, "b": 1, "c": 1}


def test_several_processes_count_together(knowledge: Knowledge, vault: Path) -> None:
    program = (
        "import sys; from simplemem import open_store; from simplemem.kinds.learned.knowledge import knowledge_of\n"
        "with open_store(sys.argv[1]) as store:\n"
        "    for k in range(50): knowledge_of(store).count(['shared', sys.argv[2]])\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", program, str(vault), str(k)]) for k in range(3)]
    assert [each.wait(60) for each in running] == [0, 0, 0]
    assert {key: reads.count for key, reads in knowledge.reads().items()} == {"shared": 150, "0": 50, "1": 50, "2": 50}


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_no_link_is_followed_out_of_the_vault(knowledge: Knowledge, vault: Path, tmp_path: Path) -> None:
    (elsewhere := tmp_path / "elsewhere").mkdir()
    knowledge.entries()
    (vault / ".simplemem" / "state").symlink_to(elsewhere)
    knowledge.count(["a"])
    assert list(elsewhere.iterdir()) == [] and knowledge.reads()["a"].count == 1


# -- vectors


@pytest.fixture
def service() -> Iterator[EmbeddingService]:
    with EmbeddingService() as running:
        yield running


def test_what_changes_only_the_header_is_embedded_by_nobody(vault: Path, service: EmbeddingService) -> None:
    """SI-33: the service counts what it is asked for."""
    settings = {"embed": {"provider": "openai", "model": "tiny", "url": f"{service.url}/v1", "cache_mb": 0}}
    with EnhancedStore(vault, Settings.model_validate(settings)) as store:
        knowledge = knowledge_of(store)
        one = knowledge.save("decision", "Use Postgres for the billing store.", confidence=0.9, verified=True).entry
        other = knowledge.save("decision", "Use MySQL for the billing store.", confidence=0.6).entry
        store.sync()
        texts = [text for asked in service.asked for text in asked.texts]
        assert any("MySQL" in text for text in texts)
        service.asked.clear()
        file = vault / f"{other.name}.md"
        file.write_text(file.read_text().replace("confidence: 0.6", "confidence: 0.2\nverified_by: Ada\ntags: [db]"))
        store.sync()
        store.update(one.name, metadata={"confidence": 0.95, "verified": False})
        store.sync()
        assert [asked.texts for asked in service.asked] == []
        seen = analysis_of(store)
        knowledge.supersede(seen.verdicts(seen.contradictions()))
        store.sync()
        sent = [text for asked in service.asked for text in asked.texts]
        assert sent and all(
            "supersedes" in text or "Relations" in text for text in sent
        )  # the winner's new bullet alone
        assert seen.method.startswith("embedding (openai/tiny")
