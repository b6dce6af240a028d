"""Conversations in a vault: turns, facts and the person as notes, whoever changes them meanwhile."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from simplemem.errors import Ambiguous, Invalid, NotFound, SimplememError, TooLong, Unreadable
from simplemem.features.answers import ArchiveResult, RecordedTurn
from simplemem.features.conversations.context import build_context
from simplemem.features.conversations.exchange import new_exchange
from simplemem.features.conversations.recall import recall
from simplemem.features.conversations.service import (
    ConversationService,
    conversation_service,
)
from simplemem.features.conversations.topic import Topic
from simplemem.features.fact import Fact
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

KEY = "My API key for the tide table service is TT-4471-QX."
TOKEN = "b7Qx2LmZ9pKd4RtY1vNc8HsW3gJf6TaE5uVo"


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[ConversationService]:
    with EnhancedStore(tmp_path, Settings()) as store:
        yield conversation_service(store)


def tell(
    talk: ConversationService, message: str, at: str = "2026-11-20T09:00:00Z", **more: object
) -> RecordedTurn:
    return talk.record(new_exchange(message, timestamp=at, **more))  # type: ignore[arg-type]


def notes(talk: ConversationService, kind: str) -> list[Path]:
    return sorted(
        path for path in talk.store.root.rglob("*.md") if f"type: {kind}\n" in path.read_text()
    )


def labels(talk: ConversationService, done: ArchiveResult) -> list[str]:
    return [talk.find(each).label for each in done["closed"]]


def texts(talk: ConversationService) -> dict[Path, bytes]:
    every = talk.store.root.rglob("*.md")
    return {path: path.read_bytes() for path in every if ".simplemem" not in path.parts}


def edit(talk: ConversationService, path: Path, old: str, new: str) -> None:
    path.write_text(path.read_text().replace(old, new))
    talk.store.sync()


def test_a_turn_is_one_step_that_one_undo_takes_back(talk: ConversationService) -> None:
    tell(talk, "I want to build a rain gauge.", topic="Rain gauge")
    before = texts(talk)
    stored = tell(
        talk, f"{KEY} My name is Ruth Brandt.", "2026-11-20T10:00:00Z", topic="Tide clock"
    )
    assert len(notes(talk, "topic")) == 2 and notes(talk, "fact") and notes(talk, "profile")
    version = talk.store.history(limit=1)[0].version
    talk.store.undo(version)
    assert texts(talk) == before
    assert [each.id for each in talk.topics()] != [
        stored["block_id"]
    ] and not talk.profile().user_name


def test_what_is_told_late_takes_its_place_and_does_not_become_the_newest(
    talk: ConversationService,
) -> None:
    tell(talk, "The dial is brass.", topic="Tide clock")
    now = tell(talk, "Our kitten needs a name.", "2026-11-21T09:00:00Z", topic="Kitten")
    late = tell(talk, "The case is oak.", "2026-11-19T09:00:00Z", topic="Tide clock")
    assert [turn.message for turn in talk.find(late["block_id"]).turns] == [
        "The case is oak.",
        "The dial is brass.",
    ]
    assert next((each.id, each.status) for each in talk.topics()) == (now["block_id"], "active")
    other = tell(talk, "An old idea.", "2026-11-01T09:00:00Z", topic="Sundial")
    assert talk.find(other["block_id"]).status == "paused"
    between = tell(talk, "The hands are steel.", "2026-11-20T12:00:00Z", topic="Tide clock")
    assert (between["block_id"], talk.find(between["block_id"]).status) == (
        late["block_id"],
        "paused",
    )
    assert talk.find(now["block_id"]).status == "active"
    assert tell(talk, "Is it a tabby?", "2026-11-21T09:01:00Z")["block_id"] == now["block_id"]


def test_two_sessions_have_a_block_each(talk: ConversationService) -> None:
    one = tell(talk, "I write a parser for dates.", session="one")
    two = tell(talk, "The logo should be green.", "2026-11-20T09:01:00Z", session="two")
    assert {each.status for each in talk.topics()} == {"active"} and one["block_id"] != two[
        "block_id"
    ]
    assert tell(talk, "Why?", "2026-11-20T09:02:00Z", session="one")["block_id"] == one["block_id"]
    assert tell(talk, "Why?", "2026-11-20T09:03:00Z", session="two")["block_id"] == two["block_id"]
    near = tell(
        talk,
        "The parser of dates reads what months and what days?",
        "2026-11-20T09:04:00Z",
        session="two",
    )
    assert near["block_id"] != one["block_id"] and talk.find(one["block_id"]).status == "active"


def test_a_full_block_goes_on_in_one_that_links_back(
    talk: ConversationService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("simplemem.features.conversations.topic._MAX_TURNS", 2)
    first = tell(talk, "one", topic="Counting")
    tell(talk, "two", "2026-11-20T09:01:00Z")
    third = tell(talk, "three", "2026-11-20T09:02:00Z")
    assert (
        third["block_id"] != first["block_id"] and talk.find(first["block_id"]).status == "closed"
    )
    link = re.escape(f"[[{Path(talk.find(first['block_id']).path).stem}]]")
    assert any(
        re.search(f"\\ncontinues: .{link}.\\n", path.read_text()) for path in notes(talk, "topic")
    )
    assert tell(talk, "four", "2026-11-20T09:03:00Z")["block_id"] == third["block_id"]
    assert (
        tell(talk, "five", "2026-11-20T09:04:00Z", topic=first["block_id"])["topic"] == "Counting"
    )
    assert sum(len(each.turns) for each in talk.items(Topic)) == 5


def test_gardening_says_which_blocks_another_goes_on_for(
    talk: ConversationService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("simplemem.features.conversations.topic._MAX_TURNS", 2)
    tell(talk, "one", topic="Counting")
    other = tell(talk, "Our kitten needs a name.", "2026-11-20T10:00:00Z", topic="Kitten")
    tell(
        talk, "two", "2026-11-20T09:01:00Z", topic="Counting"
    )  # told late: the block is full, and stays paused
    tell(talk, "The dial is brass.", "2026-11-20T11:00:00Z", topic="Tide clock")
    done = talk.archive_stale(after_days=1, dry_run=True)
    assert sorted(labels(talk, done)) == ["Counting", "Kitten"]
    assert [talk.find(each).label for each in done["continued"]] == ["Counting"]
    assert talk.archive_stale(after_days=1)["continued"] == done["continued"]
    assert talk.archive_stale(other["block_id"])["continued"] == []
    later = tell(talk, "three", "2026-11-20T12:00:00Z", topic=done["continued"][0])
    assert later["topic"] == "Counting" and later["block_id"] != done["continued"][0]


def test_a_person_may_rename_retag_and_delete(talk: ConversationService) -> None:
    stored = tell(talk, "Plum jam or quince?", topic="Jam")
    (note,) = notes(talk, "topic")
    note = note.rename(talk.store.root / "Mine.md")
    edit(talk, note, "title: Jam", "title: Preserves")
    edit(talk, note, "status/active", "status/closed")
    assert talk.topics() == [] and talk.find("Preserves").id == stored["block_id"]
    again = tell(talk, "Quince, then.", "2026-11-20T09:05:00Z", topic=stored["block_id"])
    assert again["routing_scenario"] == "topic_resumption" and len(talk.find("Mine").turns) == 2
    note.unlink()
    talk.store.sync()
    with pytest.raises(NotFound, match="no topic"):
        talk.find(stored["block_id"])


def test_a_header_that_cannot_be_read_is_never_written(talk: ConversationService) -> None:
    stored = tell(talk, f"{KEY} I am vegetarian.", topic="Tide clock")
    for note in talk.store.root.rglob("*.md"):
        edit(talk, note, "type: ", "type: [unclosed\nkind: ")
    before = texts(talk)
    with pytest.raises(Unreadable, match="cannot be changed"):
        tell(talk, "Does it tick?", "2026-11-20T09:05:00Z", topic=stored["block_id"])
    other = tell(
        talk,
        "I'm allergic to nuts. The API key for the tide table service is TT-9020-RB.",
        "2026-11-20T09:06:00Z",
    )
    assert other["block_id"] != stored["block_id"]
    assert all(path.read_bytes() == data for path, data in before.items())


def test_a_copied_block_is_ambiguous_and_a_wrong_id_names_near_ones(
    talk: ConversationService,
) -> None:
    stored = tell(talk, "Plum jam or quince?", topic="Jam")
    (note,) = notes(talk, "topic")
    (talk.store.root / "topics" / "Other.md").write_text(note.read_text())
    talk.store.sync()
    with pytest.raises(Ambiguous) as many:
        tell(talk, "Both.", "2026-11-20T09:05:00Z", topic=stored["block_id"])
    assert len(many.value.details["candidates"]) == 2
    with pytest.raises(NotFound) as none:
        talk.find(stored["block_id"][:-1] + "x")
    assert stored["block_id"] in none.value.details["candidates"]


def test_a_credential_is_private_with_the_block_it_was_said_in(talk: ConversationService) -> None:
    stored = tell(talk, KEY, topic="Tide clock")
    kept = [
        talk.find(stored["block_id"]).path,
        *(each.path for each in talk.items(Fact)),
    ]
    assert len(kept) == 2 and talk.extension.private_among(kept) == set(kept)
    given = tell(
        talk, "Here it is.", "2026-11-20T09:01:00Z", topic="Wifi", facts=[("wifi password", "abc")]
    )
    assert talk.extension.private_among([talk.find(given["block_id"]).path])
    pasted = tell(
        talk,
        "Why is this refused?",
        "2026-11-20T09:02:00Z",
        topic="CI",
        response=f"Is ghp_{TOKEN} old?",
    )
    assert talk.extension.private_among([talk.find(pasted["block_id"]).path])


def test_a_vault_that_refuses_secrets_refuses_a_turn_with_one(tmp_path: Path) -> None:
    settings = Settings.model_validate({"write": {"secrets": "refuse"}})
    with EnhancedStore(tmp_path, settings) as store, pytest.raises(Invalid, match="credential"):
        tell(conversation_service(store), KEY)
    assert not list(tmp_path.rglob("*.md"))


def test_an_earlier_value_is_kept_and_never_given_as_the_fact(talk: ConversationService) -> None:
    told = [
        ("TT-2", "2026-11-02T09:00:00Z"),
        ("TT-3", "2026-11-03T09:00:00Z"),
        ("TT-1", "2026-11-01T09:00:00Z"),
    ]
    for value, at in told:
        tell(talk, f"My API key for the tide table service is {value}X9.", at, topic="Tide clock")
    assert [each["value"] for each in recall(talk, "tide table credential")["facts"]] == ["TT-3X9"]
    (note,) = notes(talk, "fact")
    lines = [line for line in note.read_text().splitlines() if line.startswith("- TT")]
    assert [line[2:8] for line in lines] == ["TT-1X9", "TT-2X9", "TT-3X9"]
    tell(talk, "Rotated. The key is TT-4X9.", "2026-11-04T09:00:00Z", topic="Tide clock")
    assert [each.value for each in talk.items(Fact)] == ["TT-4X9"]


def test_a_context_keeps_constraints_and_says_what_had_no_room(talk: ConversationService) -> None:
    tell(talk, "I'm strictly teetotal. I prefer metric units.", topic="Menus")
    for number in range(20):
        tell(
            talk,
            f"Course number {number} has leeks and potatoes.",
            f"2026-11-20T10:{number:02}:00Z",
        )
    wide = build_context(talk, "What goes with leeks?", 2000)
    assert (
        "Course number 19" in wide["text"]
        and wide["text"].endswith("with leeks?")
        and not wide["left_out"]
    )
    tight = build_context(talk, "What goes with leeks?", 160)
    assert tight["tokens"] <= 160 and "teetotal" in tight["text"] and tight["left_out"]
    assert (
        f"({21 - sum(item['kind'] == 'turn' for item in tight['items'])} earlier turns omitted)"
        in tight["text"]
    )
    with pytest.raises(TooLong, match="need") as refused:
        build_context(talk, "What goes with leeks?", 5)
    least = int(refused.value.hint.rpartition(" ")[2].rstrip("."))
    assert build_context(talk, "What goes with leeks?", least)["tokens"] <= least


def test_a_context_has_what_the_session_said_last_whatever_it_is_about(
    talk: ConversationService,
) -> None:
    tell(talk, "We bought a boat.", topic="Boat", session="mine")
    tell(talk, "Quinces are ripe.", "2026-11-20T09:01:00Z", topic="Jam", session="other")
    tell(talk, "Our kitten needs a name.", "2026-11-20T09:02:00Z", topic="Kitten", session="mine")
    context = build_context(talk, "And so?", 2000, "mine")["text"]
    assert (
        context.index("kitten needs") < context.index("bought a boat") and "Quinces" not in context
    )


def test_a_name_that_most_blocks_hold_says_nothing_of_where_an_answer_is(
    talk: ConversationService,
) -> None:
    tell(talk, "Nate and Joanna saw Nate. Joanna saw Nate.", topic="Party")
    tell(talk, f"{'We walked on along the river. ' * 5}Joanna told Nate of the mill.", topic="Walk")
    assert (
        recall(talk, "What did Nate and Joanna see at the mill?")["memories"][0]["topic"] == "Walk"
    )


@pytest.mark.parametrize(
    "marked",
    ["type:fact {}", "tag:none {}", "path:x/ {}", "archive: {}", '"a name" {}', "-leaks {}"],
)
def test_a_question_is_words_and_nothing_else(talk: ConversationService, marked: str) -> None:
    tell(talk, "The rain gauge leaks at the seam.", topic="Rain gauge")
    tell(talk, "Our kitten needs a name.", topic="Kitten")
    found = recall(talk, marked.format("where rain gauge leaks"))["memories"]
    assert "Rain gauge" in [each["topic"] for each in found]


def test_gardening_closes_what_is_long_paused_as_one_step(talk: ConversationService) -> None:
    tell(talk, "Plum jam or quince?", "2026-01-20T09:00:00Z", topic="Jam")
    tell(talk, "The dial is brass.", "2026-01-21T09:00:00Z", topic="Clock")
    tell(talk, "Our kitten needs a name.", "2026-11-21T09:00:00Z", topic="Kitten")
    assert labels(talk, talk.archive_stale(dry_run=True)) == ["Jam", "Clock"]
    assert len(talk.topics()) == 3
    assert labels(talk, talk.archive_stale()) == ["Jam", "Clock"] and len(talk.topics()) == 1
    assert "“Plum jam or quince?”" in notes(talk, "topic")[0].read_text()
    assert recall(talk, "quince jam")["memories"][0]["topic"] == "Jam"
    talk.store.undo(talk.store.history(limit=1)[0].version)
    assert len(talk.topics()) == 3
    assert labels(talk, talk.archive_stale("Kitten")) == ["Kitten"]


def test_several_threads_lose_and_double_nothing(talk: ConversationService) -> None:
    def work(number: int) -> None:
        for k in range(6):
            tell(
                talk,
                f"Line {k} of {number}.",
                f"2026-11-20T09:{k:02}:{number:02}Z",
                topic=f"Topic {number % 2}",
            )

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(talk.items(Topic)) == 2
    said = sorted(turn.message for each in talk.items(Topic) for turn in each.turns)
    assert said == sorted(f"Line {k} of {number}." for k in range(6) for number in range(4))


@pytest.mark.parametrize(
    "wrong",
    [{"message": " \n"}, {"message": "a\0b"}, {"message": "half \ud800"}, {"message": "x" * 100_001},
     {"message": "x", "response": "y" * 100_001}, {"message": "x", "timestamp": "soon"},
     {"message": "x", "timestamp": "2999-01-01"}, {"message": "x", "timestamp": "0001-01-01T00:00:00+14:00"},
     {"message": "x", "facts": [("", "v")]}, {"message": "x", "facts": [("the", "v")]},
     {"message": "x", "facts": [("k", " ")]}, {"message": "x", "topic": "t" * 121}],
)  # fmt: skip
def test_what_cannot_be_kept_is_refused_with_a_reason(wrong: dict[str, object]) -> None:
    with pytest.raises(SimplememError) as refused:
        new_exchange(**wrong)  # type: ignore[arg-type]
    assert refused.value.code in ("invalid", "too_long") and len(refused.value.message) < 300


def test_a_session_keeps_its_block_when_another_names_the_same_topic(
    talk: ConversationService,
) -> None:
    one = tell(talk, "The parser reads dates.", session="one", topic="Parser")
    two = tell(talk, "A parser for logs.", "2026-11-20T09:01:00Z", session="two", topic="parser")
    assert two["block_id"] != one["block_id"]
    assert tell(talk, "Why?", "2026-11-20T09:02:00Z", session="one")["block_id"] == one["block_id"]
    tell(talk, "Mine now.", "2026-11-20T09:03:00Z", topic=one["block_id"])
    assert (freed := talk.find(one["block_id"])).session == ""
    assert "session:" not in (talk.store.root / freed.path).read_text()


def test_a_fact_in_two_notes_goes_on_in_the_one_that_was_told_last(
    talk: ConversationService,
) -> None:
    tell(talk, KEY, topic="Tide clock")
    (note,) = notes(talk, "fact")
    note.with_name("A copy.md").write_text(
        note.read_text().replace("TT-4471", "TT-0000").replace("2026-11", "2025-11")
    )
    talk.store.sync()
    tell(talk, KEY.replace("4471", "9020"), "2026-11-21T09:00:00Z", topic="Tide clock")
    assert sorted(each.value for each in talk.items(Fact)) == [
        "TT-0000-QX",
        "TT-9020-QX",
    ]
