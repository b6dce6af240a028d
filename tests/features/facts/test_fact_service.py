"""Statements of a store: what a new one does to those there are, as notes; who may see them; what a person's hand does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from simplemem.errors import Invalid, NotFound, TooLong, Unreadable
from simplemem.features.fact import Fact
from simplemem.features.facts import decay
from simplemem.features.facts.fact import fact_name, read_fact, replace_statement
from simplemem.features.facts.new_fact import NewFact
from simplemem.features.facts.service import FactService, fact_service
from simplemem.features.scope_profile import profile_of
from simplemem.note import dates
from simplemem.note.scopes import check_scope
from simplemem.store import EnhancedStore, Read

NOW = datetime(2026, 11, 22, 9, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[datetime], None]]:
    """Set the clock of this process."""

    def set_to(moment: datetime) -> None:
        monkeypatch.setenv("SIMPLEMEM_NOW", moment.isoformat())
        dates._fixed.cache_clear()

    set_to(NOW)
    yield set_to
    monkeypatch.undo()
    dates._fixed.cache_clear()


@pytest.fixture
def memories(vault: Path, at: object) -> Iterator[FactService]:
    with EnhancedStore(vault) as store:
        yield fact_service(store)


def add(
    memories: FactService, *texts: str, scope: str = "ann", **more: object
) -> list[tuple[str, str | None]]:
    added = memories.add(scope, [NewFact(text) for text in texts], **more)  # type: ignore[arg-type]
    return [(event["event"], event["relation"]) for event in added.events]


def statements_of(memories: FactService, scope: str = "ann", **more: bool) -> list[str]:
    return sorted(fact.statement for fact in memories.facts(scope, **more))


def note_of(memories: FactService, text: str, scope: str = "ann") -> Fact:
    return next(fact for fact in memories.facts(scope, expired=True) if fact.statement == text)


# -- a note is a statement


def test_a_statement_is_a_note_with_a_flat_header_and_is_read_back(
    memories: FactService, vault: Path
) -> None:
    add(memories, "My sister Eve lives in Cork.")
    text = (vault / "atoms/ann/My sister Eve lives in Cork.md").read_text()
    assert text.endswith("---\n\nMy sister Eve lives in Cork.\n")
    fact = note_of(memories, "My sister Eve lives in Cork.")
    assert (fact.memory_type, fact.confidence, fact.valid_from, fact.decided_by) == (
        "fact",
        1.0,
        NOW,
        "rule:new",
    )
    assert fact.slot == ("sister Eve", "lives in", "Cork")


@pytest.mark.parametrize(
    ("path", "text", "statement", "scope"),
    [
        ("atoms/ann/Hates figs.md", "Hates figs of any kind.\n", "Hates figs of any kind.", "ann"),
        ("atoms/team/red/x.md", "> a quotation\n\nMeets on Mondays,\nat nine.\n\nMore.", "Meets on Mondays, at nine.",
         "team/red"),
        ("atoms/ann/Likes tea.md", "---\nscope: Bob\n---\n", "Likes tea", "ann"),
        ("atoms/ann/odd.md", "---\nconfidence: much\nvalid_to: soon\nmemory_type: rumour\n---\nOdd.\r\n", "Odd.", "ann"),
        ("notes/far.md", "---\ntype: atom\nscope: ann\n---\nFar away.", "Far away.", "ann"),
    ],
)  # fmt: skip
def test_what_a_person_writes_is_a_statement(
    path: str, text: str, statement: str, scope: str
) -> None:
    fact = read_fact(Read(path, text, "", ""))
    assert (fact.statement, fact.scope, fact.memory_type, fact.confidence) == (
        statement,
        scope,
        "fact",
        1.0,
    )
    assert fact.is_own and not fact.problem


def test_other_words_take_the_place_of_the_statement_and_of_nothing_else() -> None:
    text = "---\r\ntype: atom\r\n---\r\n\r\n> said\r\n\r\nOld words,\r\ntwo lines.\r\n\r\nA person's own.\r\n"
    assert replace_statement(text, "New.") == text.replace("Old words,\r\ntwo lines.", "New.")


def test_names_are_a_persons_words_and_legal() -> None:
    assert fact_name("ann", "Is it a/b: 50 %?") == "atoms/ann/Is it a-b 50 %"
    assert len(fact_name("ann", "word " * 50).rpartition("/")[2]) <= 80
    assert fact_name("a/../b", "x").startswith("atoms/a/")
    assert ".." not in fact_name("a/../b", "x").split("/")


@pytest.mark.parametrize("scope", ["", "  ", "a\nb", " ann", "ann ", "a\0", "\ud800", "x" * 201])
def test_what_is_no_scope_is_refused(scope: str) -> None:
    with pytest.raises((Invalid, TooLong)):
        check_scope(scope)


# -- what a new one does


def test_another_value_supersedes_in_one_step_that_one_undo_takes_back(
    memories: FactService, vault: Path
) -> None:
    add(memories, "I live in Berlin.")
    original_files = {path: path.read_bytes() for path in vault.glob("atoms/**/*.md")}
    assert add(memories, "I moved to Lisbon.") == [("UPDATE", "UPDATES")]
    old, new = note_of(memories, "I live in Berlin."), note_of(memories, "I moved to Lisbon.")
    assert (old.status, old.superseded_by, old.valid_to) == (
        "superseded",
        "I moved to Lisbon",
        new.valid_from,
    )
    assert (new.updates, new.status) == ("I live in Berlin", "active")
    assert statements_of(memories) == ["I moved to Lisbon."]
    memories.store.undo(memories.store.history(limit=1)[0].version)
    assert {path: path.read_bytes() for path in vault.glob("atoms/**/*.md")} == original_files
    assert statements_of(memories) == ["I live in Berlin."]


def test_statements_of_one_call_know_each_other(memories: FactService) -> None:
    assert add(memories, "Has a dog", "Has a dog.", "Has a dog called Bruno") == [
        ("ADD", None), ("NOOP", None), ("UPDATE", "EXTENDS"),
    ]  # fmt: skip
    assert note_of(memories, "Has a dog called Bruno").extends == "Has a dog"


def test_what_is_near_and_undecided_is_named(memories: FactService) -> None:
    add(memories, "I play the piano at the town hall on Fridays")
    memories.store.sync()
    added = memories.add("ann", [NewFact("I play the organ at the town hall on Fridays")])
    [candidate] = added.needs_review[0]["candidates"]
    assert candidate["memory"] == "I play the piano at the town hall on Fridays"


def test_forgetting_is_the_trash(memories: FactService, vault: Path) -> None:
    add(memories, "I like tea")
    memories.forget(note_of(memories, "I like tea").id, "ann")
    assert statements_of(memories, expired=True) == []
    assert list((vault / ".simplemem/trash").rglob("I like tea.md"))


def test_a_change_keeps_the_id_and_fills_the_slot_anew(memories: FactService) -> None:
    add(memories, "I live in Berlin.")
    id_ = note_of(memories, "I live in Berlin.").id
    memories.update(id_, "I live in Porto.", "ann")
    fact = note_of(memories, "I live in Porto.")
    assert (fact.id, fact.slot and fact.slot.object) == (id_, "Porto")
    assert add(memories, "I live in Porto") == [("NOOP", None)]


# -- whose it is


def test_a_scope_sees_nothing_of_another(memories: FactService) -> None:
    for scope in ("Ann", "ann", "ann/x", "bob"):
        assert add(memories, "I live in Berlin", scope=scope) == [("ADD", None)], scope
    id_of_other_scope = note_of(memories, "I live in Berlin", "bob").id
    assert add(memories, "I moved to Lisbon", scope="ann") == [("UPDATE", "UPDATES")]
    assert statements_of(memories, "Ann") == statements_of(memories, "bob") == ["I live in Berlin"]
    for work, said_too in (
        (memories.find, ()),
        (memories.update, ("changed",)),
        (memories.forget, ()),
    ):
        with pytest.raises(NotFound, match="no memory with the id"):
            work(id_of_other_scope, *said_too, "ann")  # type: ignore[operator]


# -- a person's hand


def test_what_a_person_does_counts_at_the_next_call(memories: FactService, vault: Path) -> None:
    add(memories, "Collects stamps from Iceland", "I live in Oslo")
    add(memories, "I moved to Bergen")
    file = vault / "atoms/ann/Collects stamps from Iceland.md"
    file.write_text(file.read_text().replace("Collects stamps", "Collects coins"))
    (vault / "atoms/ann/Hates figs.md").write_text("Hates figs.\n")
    (vault / "atoms/ann/I moved to Bergen.md").unlink()
    old = vault / "atoms/ann/I live in Oslo.md"
    properties = ("status:", "superseded_by:", "valid_to:")
    old.write_text(
        "".join(
            line for line in old.read_text().splitlines(True) if not line.startswith(properties)
        )
    )
    assert statements_of(memories) == [
        "Collects coins from Iceland",
        "Hates figs.",
        "I live in Oslo",
    ]
    assert add(memories, "Collects coins from Iceland", "Hates figs") == [("NOOP", None)] * 2
    assert (vault / "atoms/ann/Hates figs.md").read_text() == "Hates figs.\n"


def test_a_broken_header_stops_nobody_and_is_never_written(
    memories: FactService, vault: Path
) -> None:
    (vault / "atoms/ann").mkdir(parents=True)
    broken = vault / "atoms/ann/I live in Berlin.md"
    broken.write_bytes(original := b"---\nid: [unclosed\n---\nI live in Berlin.\n")
    assert add(memories, "I moved to Lisbon") == [("ADD", None)]
    assert broken.read_bytes() == original
    with pytest.raises(Unreadable):
        memories.update("I live in Berlin", "changed", "ann")


def test_a_fact_of_conversations_is_a_statement_of_the_scope_default(
    memories: FactService, vault: Path
) -> None:
    (vault / "facts").mkdir()
    fact = vault / "facts/door code.md"
    fact.write_text(
        text := "---\ntype: fact\nkey: door_code\nvalue: '4711'\n---\n\n> The door code is 4711.\n"
    )
    assert statements_of(memories, "default") == ["The door code is 4711."]
    add(memories, "The door code is 1234", scope="default")
    assert fact.read_text() == text


# -- time


def atom(kind: str, **more: object) -> Fact:
    return Fact("a.md", "", "a", "x", "ann", kind, valid_from=NOW, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("what", "days", "confidence", "holds"),
    [(atom("fact"), 5000, 1.0, True), (atom("fact", valid_to=NOW + DAY), 2, 1.0, False),
     (atom("preference"), 180, 0.5, True), (atom("preference"), 600, 0.0992, False),
     (atom("preference", reinforced=NOW + 180 * DAY, confidence=0.65), 360, 0.325, True),
     (atom("episode", valid_to=NOW), 7, 0.5, True), (atom("episode"), 37, 0.5, True),
     (atom("derived", confidence=0.8), 90, 0.4, True), (atom("fact", status="superseded"), 0, 1.0, False),
     (atom("preference"), -30, 1.0, True)],
)  # fmt: skip
def test_time_is_computed(what: Fact, days: int, confidence: float, holds: bool) -> None:
    at = NOW + days * DAY
    assert decay.confidence_at(what, at) == pytest.approx(confidence, abs=0.001)
    assert decay.is_current(what, at) is holds
    if (end := decay.forgotten_at(what)) is not None:
        assert decay.confidence_at(what, end) == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("what", "days", "status"),
    [(atom("fact", valid_to=NOW + DAY), 1, "active"), (atom("fact", valid_to=NOW + DAY), 2, "ended"),
     (atom("fact", valid_to=NOW + DAY, status="disputed"), 2, "ended"), (atom("fact"), 5000, "active"),
     (atom("fact", valid_to=NOW, status="superseded"), 2, "superseded"),
     (atom("fact", valid_to=NOW, status="forgotten"), 2, "forgotten"), (atom("fact", status="ended"), 0, "ended"),
     (atom("episode", valid_to=NOW), 2, "active"), (atom("preference"), 600, "active")],
)  # fmt: skip
def test_a_fact_whose_time_is_over_has_ended(what: Fact, days: int, status: str) -> None:
    at = NOW + days * DAY
    assert decay.status_at(what, at) == status
    assert status in ("active", "disputed") or not decay.is_current(what, at)


def test_only_saying_a_preference_again_is_written(
    memories: FactService, vault: Path, at: Callable[[datetime], None]
) -> None:
    add(memories, "I prefer window seats", "My sister is called Ingrid")
    original_files = {path: path.read_bytes() for path in vault.glob("atoms/**/*.md")}
    at(NOW + 180 * DAY)
    assert add(memories, "My sister is called Ingrid") == [("NOOP", None)]
    assert {path: path.read_bytes() for path in vault.glob("atoms/**/*.md")} == original_files
    assert add(memories, "I prefer window seats.") == [("NOOP", None)]
    fact = note_of(memories, "I prefer window seats")
    assert (fact.confidence, fact.reinforced) == (pytest.approx(0.65), NOW + 180 * DAY)


def test_tidying_takes_what_ended_long_ago_and_nothing_else(
    memories: FactService, at: Callable[[datetime], None]
) -> None:
    add(memories, "I live in Oslo", "I like tea")
    add(memories, "I moved to Bergen")
    at(NOW + 40 * DAY)
    assert [fact.statement for fact in memories.tidy(30 * DAY, dry_run=True)] == ["I live in Oslo"]
    assert len(statements_of(memories, expired=True)) == 3
    memories.tidy(30 * DAY)
    assert statements_of(memories, expired=True) == ["I like tea", "I moved to Bergen"]


# -- the profile


def test_a_profile_is_a_note_whose_other_lines_are_the_persons(
    memories: FactService, vault: Path
) -> None:
    add(memories, "I live in Oslo", "I prefer tea")
    result = profile_of(memories, "ann")
    assert (result["static"], result["dynamic"], result["cached"]) == (
        ["I live in Oslo", "I prefer tea"],
        [],
        False,
    )
    assert profile_of(memories, "ann")["cached"] is True
    file = vault / "profiles/ann.md"
    file.write_text(f"{file.read_text()}\nMy own line.\n")
    add(memories, "I moved to Bergen")
    assert profile_of(memories, "ann")["static"] == ["I moved to Bergen", "I prefer tea"]
    text = file.read_text()
    assert "My own line." in text and "[[I moved to Bergen]]" in text and "Oslo" not in text
    assert (
        profile_of(memories, "nobody")["static"] == []
        and not (vault / "profiles/nobody.md").exists()
    )


def test_scopes_whose_folders_look_alike_have_a_profile_each(
    memories: FactService, vault: Path
) -> None:
    add(memories, "I live in Oslo", scope="a-b")
    add(memories, "I live in Bergen", scope="a:b")
    for _ in range(2):
        assert profile_of(memories, "a-b")["static"] == ["I live in Oslo"]
        assert profile_of(memories, "a:b")["static"] == ["I live in Bergen"]
    assert sorted("Oslo" in file.read_text() for file in vault.glob("profiles/*.md")) == [
        False,
        True,
    ]


# -- several processes

_TELL = """
import sys
from simplemem.features.facts.new_fact import NewFact
from simplemem.features.facts.service import fact_service
from simplemem.store import EnhancedStore
from pathlib import Path
with EnhancedStore(Path(sys.argv[1])) as store:
    for k in range(int(sys.argv[2])):
        fact_service(store).add("ann", [NewFact(sys.argv[3].format(k))])
        print(k, flush=True)
"""


@pytest.mark.slow
def test_four_processes_that_tell_the_same_keep_it_once(vault: Path) -> None:
    command = [sys.executable, "-c", _TELL, str(vault), "8", "The bell {} rings at noon"]
    running = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(4)]
    assert [process.wait(120) for process in running] == [0] * 4
    assert len(list(vault.glob("atoms/ann/*.md"))) == 8


@pytest.mark.slow
def test_a_kill_while_a_slot_changes_leaves_one_value(vault: Path) -> None:
    for kills in range(4):
        process = subprocess.Popen(
            [sys.executable, "-c", _TELL, str(vault), "1000", f"My desk is number {kills}{{}}"],
            stdout=subprocess.PIPE,
        )
        assert process.stdout is not None
        for _ in range(3 + kills):
            process.stdout.readline()
        os.kill(process.pid, 9 if sys.platform != "win32" else 15)
        process.wait()
        process.stdout.close()
        with EnhancedStore(vault) as store:
            assert len([fact for fact in fact_service(store).facts("ann") if fact.slot]) == 1


def test_forget_that_takes_away_what_says_it_and_nothing_else(memories: FactService) -> None:
    add(memories, "I like tea", "I like coffee")
    assert add(memories, "Forget that I like tea.") == [("DELETE", None)]
    assert add(memories, "Forget that I like cocoa.") == []
    assert statements_of(memories, expired=True) == ["I like coffee"]
    page = memories.add(
        "ann",
        [NewFact("Forget that I like coffee")],
        source="documents/ann/Page.md",
        outside=True,
    )
    assert (
        not page.events
        and "nothing was forgotten" in page.warnings[0]
        and statements_of(memories) == ["I like coffee"]
    )


def test_a_dated_state_is_still_held_months_later(
    memories: FactService, at: Callable[[datetime], None]
) -> None:
    add(
        memories,
        "I started at Northlight Labs today.",
        "Our son Theo was born yesterday.",
        "Met Ruth yesterday.",
    )
    at(NOW + 200 * DAY)
    assert statements_of(memories) == [
        "I started at Northlight Labs today.",
        "Our son Theo was born yesterday.",
    ]


def test_a_caller_that_names_the_replaced_fact_is_believed(memories: FactService) -> None:
    add(memories, "I drive to work.", "I eat lunch at noon.")
    old = note_of(memories, "I drive to work.")

    added = memories.add("ann", [NewFact("Since May I go by bike.", replaces=(old.id,))])

    [event] = added.events
    assert (event["event"], event["relation"], event["rule"]) == ("UPDATE", "UPDATES", "agent")
    assert event["previous"]["id"] == old.id
    assert statements_of(memories) == ["I eat lunch at noon.", "Since May I go by bike."]


def test_another_number_of_what_was_measured_disputes_the_earlier_one(
    memories: FactService,
) -> None:
    add(memories, "The doctor says the TSH is 3.1.", "The ferritin is 80.")
    old = note_of(memories, "The doctor says the TSH is 3.1.")

    added = memories.add("ann", [NewFact("This time the TSH is 2.2.")])

    [event] = added.events
    assert event["disputes"] == [{"id": old.id, "memory": old.statement}]
    assert note_of(memories, "The ferritin is 80.").status == "active"


def test_a_day_that_no_year_has_ends_no_fact(memories: FactService) -> None:
    add(memories, "I'm in Rome until February 31.")

    assert note_of(memories, "I'm in Rome until February 31.").valid_to is None


def test_a_replaced_fact_of_another_scope_is_not_found_and_stays(memories: FactService) -> None:
    add(memories, "I drive to work.", scope="bob")
    old = note_of(memories, "I drive to work.", scope="bob")

    added = memories.add("ann", [NewFact("Since May I go by bike.", replaces=(old.id,))])

    assert [event["event"] for event in added.events] == ["ADD"]
    assert "nothing was replaced" in added.warnings[0]
    assert statements_of(memories, scope="bob") == ["I drive to work."]


def test_a_fact_from_outside_replaces_nothing_that_the_user_stated(memories: FactService) -> None:
    add(memories, "I drive to work.")
    old = note_of(memories, "I drive to work.")

    new = NewFact("Since May Ann goes by bike.", replaces=(old.id,))
    memories.add("ann", [new], outside=True)

    assert "I drive to work." in statements_of(memories)


def test_a_topic_to_forget_takes_away_the_facts_that_name_it(memories: FactService) -> None:
    add(memories, "Steph does the books.", "I bowl on Thursdays.", "The kid course costs 90.")

    assert add(memories, "Can you drop what I said about Steph?") == [("DELETE", None)]
    assert add(memories, "Forget everything about the course of lessons.") == []
    assert statements_of(memories) == ["I bowl on Thursdays.", "The kid course costs 90."]


@pytest.mark.parametrize(
    ("earlier", "later", "is_replaced"),
    [
        ("My sister Ruth lives in Leeds.", "Ruth lives in Manchester now.", True),
        ("Ruth lives in Leeds.", "My sister Ruth lives in Manchester now.", True),
        ("Mi hermano Luis vive en Lugo.", "Luis vive en Vigo ahora.", True),
        ("My mother Ida lives in Leeds.", "My mother lives in York.", True),
        ("My sister Ruth lives in Leeds.", "My sister lives in York.", False),
        ("My sister Ruth lives in Leeds.", "Tom lives in York.", False),
    ],
)
def test_a_person_is_known_by_name_and_by_relation(
    memories: FactService, earlier: str, later: str, is_replaced: bool
) -> None:
    add(memories, "My sister Ruth plays chess.", "My mother Ida plays chess.", earlier)
    [(_, relation)] = add(memories, later)
    assert (relation == "UPDATES") is is_replaced


def test_the_user_is_known_in_the_third_person(memories: FactService) -> None:
    add(memories, "I'm Ana.", "I live in Rome.")
    assert add(memories, "Ana lives in Milan now.") == [("UPDATE", "UPDATES")]
    assert add(memories, "The user lives in Turin now.") == [("UPDATE", "UPDATES")]
    assert statements_of(memories) == ["I'm Ana.", "The user lives in Turin now."]


def test_a_name_of_two_persons_is_nobodys(memories: FactService) -> None:
    add(memories, "My sister Ruth sings.", "My friend Ruth lives in Leeds.")
    assert add(memories, "Ruth lives in York.") == [("ADD", None)]
