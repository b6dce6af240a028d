"""Knowledge in a vault: kept as notes, found, linked and laid aside, each change one step."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from simplemem.errors import Ambiguous, Conflict, Invalid, NotFound, ReadOnly, TooLong
from simplemem.features.lessons.analysis import analysis_of
from simplemem.features.lessons.contradictions import Contradiction
from simplemem.features.lessons.lesson import Lesson
from simplemem.features.lessons.service import LessonService, lesson_service
from simplemem.features.lessons.verdicts import supersede_losers
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

Write = Callable[[str, str | bytes], Path]
LOG = ".simplemem/state/access.jsonl"


@pytest.fixture
def service(plain_store: EnhancedStore) -> LessonService:
    return lesson_service(plain_store)


def header_of(vault: Path, name: str) -> dict:
    return yaml.safe_load((vault / f"{name}.md").read_text().split("---\n")[1])


def notes_of(vault: Path) -> dict[Path, bytes]:
    return {
        path: path.read_bytes() for path in vault.rglob("*.md") if ".simplemem" not in path.parts
    }


def found_by(service: LessonService, query: str, **arguments: object) -> list[Lesson]:
    return [lesson for lesson, _ in service.search(query, **arguments)[0]]


def test_what_is_saved_is_a_note_that_reads_well(service: LessonService, vault: Path) -> None:
    arguments = {
        "context": " Deploying\r\n",
        "confidence": 1,
        "tags": ["pg", "status/open"],
        "who": "claude",
    }
    lesson, twins, warnings = service.save("error", " Pool exhausted: `List<int>`", **arguments)
    assert lesson.name == "knowledge/error/pool-exhausted-list-int" and (twins, warnings) == (
        [],
        [],
    )
    text = (vault / f"{lesson.name}.md").read_text()
    assert text.endswith("---\n\nPool exhausted: `List<int>`\n\n## Context\n\nDeploying\n")
    header = header_of(vault, lesson.name)
    assert (header["type"], header["id"], header["knowledge_type"]) == (
        "knowledge",
        lesson.id,
        "error",
    )
    assert (header["confidence"], header["verified"], header["tags"]) == (
        1,
        False,
        ["pg", "status/open"],
    )


@pytest.mark.parametrize(
    ("wrong", "failure"),
    [({"content": "  "}, Invalid), ({"content": "x" * 10_001}, TooLong), ({"context": "x" * 10_001}, TooLong),
     ({"content": "a\0b"}, Invalid), ({"content": "half \ud83d"}, Invalid)],
)  # fmt: skip
def test_what_cannot_be_kept_is_refused_and_nothing_is_written(
    service: LessonService, vault: Path, wrong: dict, failure: type
) -> None:
    arguments = {"kind": "error", "content": "x", "confidence": 0.5} | wrong
    with pytest.raises(failure):
        service.save(arguments.pop("kind"), arguments.pop("content"), **arguments)
    assert not (vault / "knowledge").exists()


def test_tags_that_no_note_can_have_are_spelled_as_it_can_and_that_is_said(
    service: LessonService,
) -> None:
    lesson, _, warnings = service.save(
        "error", "x", confidence=1, tags=["node.js", "#pg", "two words", "pg"]
    )
    assert lesson.tags == ("node-js", "pg", "two-words")
    assert len(warnings) == 1 and "'node-js'" in warnings[0]


def test_what_a_person_writes_moves_and_deletes_is_known_at_once(
    service: LessonService, plain_store: EnhancedStore, write: Write
) -> None:
    assert service.lessons() == []
    file = write(
        "knowledge/decision/Port.md", "---\nid: own\nconfidence: 0.4\n---\nThe port is 8080.\n"
    )
    write("notes/other.md", "---\ntype: person\n---\nAda\n")
    plain_store.sync(embed=False)
    (lesson,) = service.lessons()
    assert (lesson.id, lesson.type, lesson.confidence, lesson.content) == (
        "own",
        "decision",
        0.4,
        "The port is 8080.",
    )
    file.write_text("---\nid: own\n---\nThe port is 9090.\n")
    assert service.find("own").content == "The port is 9090."
    file.unlink()
    with pytest.raises(NotFound):
        service.find("own")


def test_an_entry_is_found_by_its_id_the_beginning_of_it_or_its_name(
    service: LessonService, write: Write
) -> None:
    for id_ in ("abcd-1", "abcd-2", "abce-3"):
        write(f"knowledge/error/n{id_[-1]}.md", f"---\nid: {id_}\n---\nx\n")
    for ref in ("abcd-1", "knowledge/error/n1", "n1", "N1.md", "[[n1]]", " abcd-1 "):
        assert service.find(ref).id == "abcd-1"
    assert service.find("ABCE").id == "abce-3"
    with pytest.raises(Ambiguous) as error:
        service.find("abcd")
    assert len(error.value.details["candidates"]) == 2
    for ref in ("ab", "zzzz", " "):
        with pytest.raises(NotFound):
            service.find(ref)


def test_a_search_is_narrowed_and_tells_superseded_entries_last(
    service: LessonService, plain_store: EnhancedStore, write: Write, vault: Path
) -> None:
    for k in range(30):
        service.save("pattern", f"the connection pool of service {k}", confidence=0.9)
    low = service.save("error", "a pool error", confidence=0.2)[0]
    high = service.save("error", "pool trouble", confidence=0.8)[0]
    write(
        "knowledge/error/old.md",
        "---\nid: old\nconfidence: 0.9\nstatus: superseded\n---\npool pool pool pool\n",
    )
    write(
        "else.md",
        "---\nid: else\ntype: knowledge\nknowledge_type: error\nconfidence: 0.3\n---\na pool elsewhere\n",
    )
    plain_store.sync(embed=False)
    notes_before = notes_of(vault)
    ids = [lesson.id for lesson in found_by(service, "pool", lesson_type="error")]
    assert set(ids) == {low.id, high.id, "old", "else"} and ids[-1] == "old"
    assert service.read_counts() == {} and notes_of(vault) == notes_before
    sure = found_by(service, "pool", lesson_type="error", min_confidence=0.8)
    assert [lesson.id for lesson in sure] == [high.id, "old"]
    assert len(found_by(service, "pool")) == 10
    assert service.search("pool", lesson_type="solution")[:2] == ([], "words")


def test_a_link_is_a_bullet_in_the_source_that_obsidian_follows(
    service: LessonService, plain_store: EnhancedStore, vault: Path
) -> None:
    error = service.save("error", "Pool exhausted", confidence=0.9)[0]
    fix = service.save("solution", "Raise the pool", confidence=0.9)[0]
    file = vault / f"{fix.name}.md"
    file.write_text(file.read_text().replace("Raise the pool", "Raise the pool, edited by hand"))
    one, other, is_new = service.link(fix.id, error.id[:8], "fixes")
    assert (one.id, other.id, is_new) == (fix.id, error.id, True)
    text = file.read_text()
    assert text.endswith(
        "edited by hand\n\n## Relations\n- fixes [[knowledge/error/pool-exhausted]]\n"
    )
    assert plain_store.backlinks(error.name)[0].name == fix.name
    assert service.link(fix.id, error.id, " fixes ")[2] is False and file.read_text() == text
    with pytest.raises(Invalid):
        service.link(fix.id, fix.name)
    with pytest.raises(NotFound):
        service.link(fix.id, "nobody")
    plain_store.move(error.name, "archive/Old pool error")
    assert service.find(error.id).name == "archive/Old pool error"
    ((words, target),) = service.relations_of([service.find(fix.id)])[fix.path]
    assert (words, target.id) == ("fixes", error.id)


# -- laying aside


@pytest.fixture
def contradiction(service: LessonService, plain_store: EnhancedStore) -> Contradiction:
    by = {"who": "a", "tool": "save_knowledge"}
    service.save(
        "decision", "Use Postgres for the billing store.", confidence=0.9, verified=True, **by
    )
    service.save("decision", "Use MySQL for the billing store.", confidence=0.35, **by)
    return analysis_of(plain_store).contradictions()[0]


def test_resolving_lays_the_loser_aside_and_says_so_in_both_as_one_step(
    service: LessonService, plain_store: EnhancedStore, contradiction: Contradiction, vault: Path
) -> None:
    notes_before = notes_of(vault)
    version = supersede_losers(service, [contradiction], who="a")
    assert contradiction.verdict is not None
    winner, loser, _ = contradiction.verdict
    header = header_of(vault, loser.name)
    assert header["status"] == "superseded" and header["superseded_by"] == f"[[{winner.name}]]"
    assert header["superseded_reason"] == "slot: it is verified" and header["superseded_at"]
    assert header["confidence"] == 0.1
    assert (vault / f"{winner.name}.md").read_text().endswith(f"- supersedes [[{loser.name}]]\n")
    assert analysis_of(plain_store).contradictions() == []
    plain_store.undo(version)
    assert notes_of(vault) == notes_before and len(analysis_of(plain_store).contradictions()) == 1


def test_a_note_that_changed_since_it_was_judged_stops_the_whole_step(
    service: LessonService, plain_store: EnhancedStore, contradiction: Contradiction, vault: Path
) -> None:
    assert contradiction.verdict is not None
    file = vault / f"{contradiction.verdict[1].name}.md"
    file.write_text(file.read_text() + "\nDecided with Ada.\n")
    notes_before = notes_of(vault)
    with pytest.raises(Conflict):
        supersede_losers(service, [contradiction])
    assert notes_of(vault) == notes_before
    (now,) = analysis_of(plain_store).contradictions()
    assert (now.data["winner"], now.data["why"]) == (
        contradiction.verdict[1].id,
        "the user edited it",
    )


def test_a_vault_for_reading_only_is_searched_and_nothing_is_kept(
    service: LessonService, vault: Path
) -> None:
    lesson = service.save("error", "a pool error", confidence=0.2)[0]
    with EnhancedStore(
        vault, Settings.model_validate({"embed": {"provider": "none"}}), read_only=True
    ) as store:
        reading = lesson_service(store)
        assert [lesson.id for lesson in found_by(reading, "pool")] == [lesson.id]
        assert reading.read_counts() == {}
        with pytest.raises(ReadOnly):
            reading.save("error", "another", confidence=0.2)
    assert service.read_counts() == {}


# -- how often entries are read


def test_counts_of_several_processes_are_one_and_what_is_no_line_of_ours_is_passed_over(
    service: LessonService, plain_store: EnhancedStore, vault: Path
) -> None:
    service.record_reads([])
    assert service.read_counts() == {} and not (vault / LOG).exists()
    service.record_reads(["a"])
    with EnhancedStore(vault, plain_store.settings) as store:
        lesson_service(store).record_reads(["a", "c"])
        with (vault / LOG).open("ab") as file:
            file.write(b'nonsense\n[1]\n{"at": 5, "ids": ["a"]}\n{"at": "2026", "ids": [7, "b"]}\n')
            file.write(b'{"at": "2026-01-02", "ids": ["to')  # a power cut
        service.record_reads(["a"])
        counts = service.read_counts()
        assert {key: count for key, (count, _) in counts.items()} == {"a": 3, "b": 1, "c": 1}
        assert lesson_service(store).read_counts() == counts and counts["b"] == (1, "2026")


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_no_link_is_followed_out_of_the_vault(
    service: LessonService, vault: Path, tmp_path: Path
) -> None:
    (elsewhere := tmp_path / "elsewhere").mkdir()
    service.lessons()
    (vault / ".simplemem" / "state").symlink_to(elsewhere)
    service.record_reads(["a"])
    assert list(elsewhere.iterdir()) == [] and service.read_counts() == {}
