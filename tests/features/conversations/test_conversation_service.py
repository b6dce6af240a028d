"""Conversations in a vault: turns, facts and the profile as notes, whoever changes them."""

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
def conversations(tmp_path: Path) -> Iterator[ConversationService]:
    with EnhancedStore(tmp_path, Settings()) as store:
        yield conversation_service(store)


def record(
    conversations: ConversationService,
    message: str,
    at: str = "2026-11-20T09:00:00Z",
    **more: object,
) -> RecordedTurn:
    return conversations.record(new_exchange(message, timestamp=at, **more))  # type: ignore[arg-type]


def notes(conversations: ConversationService, kind: str) -> list[Path]:
    return sorted(
        path
        for path in conversations.store.root.rglob("*.md")
        if f"type: {kind}\n" in path.read_text()
    )


def labels(conversations: ConversationService, result: ArchiveResult) -> list[str]:
    return [conversations.find(topic_id).label for topic_id in result["closed"]]


def texts(conversations: ConversationService) -> dict[Path, bytes]:
    paths = conversations.store.root.rglob("*.md")
    return {path: path.read_bytes() for path in paths if ".simplemem" not in path.parts}


def edit(conversations: ConversationService, path: Path, old: str, new: str) -> None:
    path.write_text(path.read_text().replace(old, new))
    conversations.store.sync()


def test_a_turn_is_one_step_that_one_undo_takes_back(conversations: ConversationService) -> None:
    record(conversations, "I want to build a rain gauge.", topic="Rain gauge")
    texts_before = texts(conversations)
    stored = record(
        conversations, f"{KEY} My name is Ruth Brandt.", "2026-11-20T10:00:00Z", topic="Tide clock"
    )
    assert (
        len(notes(conversations, "topic")) == 2
        and notes(conversations, "fact")
        and notes(conversations, "profile")
    )
    version = conversations.store.history(limit=1)[0].version
    conversations.store.undo(version)
    assert texts(conversations) == texts_before
    assert [topic.id for topic in conversations.topics()] != [
        stored["block_id"]
    ] and not conversations.profile().user_name


def test_a_back_dated_turn_is_inserted_in_order_and_does_not_become_the_newest(
    conversations: ConversationService,
) -> None:
    record(conversations, "The dial is brass.", topic="Tide clock")
    now = record(conversations, "Our kitten needs a name.", "2026-11-21T09:00:00Z", topic="Kitten")
    late = record(conversations, "The case is oak.", "2026-11-19T09:00:00Z", topic="Tide clock")
    assert [turn.message for turn in conversations.find(late["block_id"]).turns] == [
        "The case is oak.",
        "The dial is brass.",
    ]
    assert next((topic.id, topic.status) for topic in conversations.topics()) == (
        now["block_id"],
        "active",
    )
    other = record(conversations, "An old idea.", "2026-11-01T09:00:00Z", topic="Sundial")
    assert conversations.find(other["block_id"]).status == "paused"
    between = record(
        conversations, "The hands are steel.", "2026-11-20T12:00:00Z", topic="Tide clock"
    )
    assert (between["block_id"], conversations.find(between["block_id"]).status) == (
        late["block_id"],
        "paused",
    )
    assert conversations.find(now["block_id"]).status == "active"
    assert (
        record(conversations, "Is it a tabby?", "2026-11-21T09:01:00Z")["block_id"]
        == now["block_id"]
    )


def test_two_sessions_have_a_topic_each(conversations: ConversationService) -> None:
    one = record(conversations, "I write a parser for dates.", session="one")
    two = record(conversations, "The logo should be green.", "2026-11-20T09:01:00Z", session="two")
    assert {topic.status for topic in conversations.topics()} == {"active"} and one[
        "block_id"
    ] != two["block_id"]
    assert (
        record(conversations, "Why?", "2026-11-20T09:02:00Z", session="one")["block_id"]
        == one["block_id"]
    )
    assert (
        record(conversations, "Why?", "2026-11-20T09:03:00Z", session="two")["block_id"]
        == two["block_id"]
    )
    similar = record(
        conversations,
        "The parser of dates reads what months and what days?",
        "2026-11-20T09:04:00Z",
        session="two",
    )
    assert (
        similar["block_id"] != one["block_id"]
        and conversations.find(one["block_id"]).status == "active"
    )


def test_a_full_topic_is_continued_by_one_that_links_back(
    conversations: ConversationService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("simplemem.features.conversations.topic._MAX_TURNS", 2)
    first = record(conversations, "one", topic="Counting")
    record(conversations, "two", "2026-11-20T09:01:00Z")
    third = record(conversations, "three", "2026-11-20T09:02:00Z")
    assert (
        third["block_id"] != first["block_id"]
        and conversations.find(first["block_id"]).status == "closed"
    )
    link = re.escape(f"[[{Path(conversations.find(first['block_id']).path).stem}]]")
    assert any(
        re.search(f"\\ncontinues: .{link}.\\n", path.read_text())
        for path in notes(conversations, "topic")
    )
    assert record(conversations, "four", "2026-11-20T09:03:00Z")["block_id"] == third["block_id"]
    assert (
        record(conversations, "five", "2026-11-20T09:04:00Z", topic=first["block_id"])["topic"]
        == "Counting"
    )
    assert sum(len(topic.turns) for topic in conversations.items(Topic)) == 5


def test_archiving_lists_the_topics_that_another_one_continues(
    conversations: ConversationService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("simplemem.features.conversations.topic._MAX_TURNS", 2)
    record(conversations, "one", topic="Counting")
    other = record(
        conversations, "Our kitten needs a name.", "2026-11-20T10:00:00Z", topic="Kitten"
    )
    record(
        conversations, "two", "2026-11-20T09:01:00Z", topic="Counting"
    )  # back-dated: the topic is full, and stays paused
    record(conversations, "The dial is brass.", "2026-11-20T11:00:00Z", topic="Tide clock")
    result = conversations.archive_stale(after_days=1, dry_run=True)
    assert sorted(labels(conversations, result)) == ["Counting", "Kitten"]
    assert [conversations.find(topic_id).label for topic_id in result["continued"]] == ["Counting"]
    assert conversations.archive_stale(after_days=1)["continued"] == result["continued"]
    assert conversations.archive_stale(other["block_id"])["continued"] == []
    later = record(conversations, "three", "2026-11-20T12:00:00Z", topic=result["continued"][0])
    assert later["topic"] == "Counting" and later["block_id"] != result["continued"][0]


def test_a_person_may_rename_retag_and_delete(conversations: ConversationService) -> None:
    stored = record(conversations, "Plum jam or quince?", topic="Jam")
    (note,) = notes(conversations, "topic")
    note = note.rename(conversations.store.root / "Mine.md")
    edit(conversations, note, "title: Jam", "title: Preserves")
    edit(conversations, note, "status/active", "status/closed")
    assert conversations.topics() == [] and conversations.find("Preserves").id == stored["block_id"]
    again = record(conversations, "Quince, then.", "2026-11-20T09:05:00Z", topic=stored["block_id"])
    assert (
        again["routing_scenario"] == "topic_resumption"
        and len(conversations.find("Mine").turns) == 2
    )
    note.unlink()
    conversations.store.sync()
    with pytest.raises(NotFound, match="no topic"):
        conversations.find(stored["block_id"])


def test_a_header_that_cannot_be_read_is_never_written(conversations: ConversationService) -> None:
    stored = record(conversations, f"{KEY} I am vegetarian.", topic="Tide clock")
    for note in conversations.store.root.rglob("*.md"):
        edit(conversations, note, "type: ", "type: [unclosed\nkind: ")
    texts_before = texts(conversations)
    with pytest.raises(Unreadable, match="cannot be changed"):
        record(conversations, "Does it tick?", "2026-11-20T09:05:00Z", topic=stored["block_id"])
    other = record(
        conversations,
        "I'm allergic to nuts. The API key for the tide table service is TT-9020-RB.",
        "2026-11-20T09:06:00Z",
    )
    assert other["block_id"] != stored["block_id"]
    assert all(path.read_bytes() == data for path, data in texts_before.items())


def test_a_copied_topic_is_ambiguous_and_a_wrong_id_suggests_similar_ones(
    conversations: ConversationService,
) -> None:
    stored = record(conversations, "Plum jam or quince?", topic="Jam")
    (note,) = notes(conversations, "topic")
    (conversations.store.root / "topics" / "Other.md").write_text(note.read_text())
    conversations.store.sync()
    with pytest.raises(Ambiguous) as ambiguous:
        record(conversations, "Both.", "2026-11-20T09:05:00Z", topic=stored["block_id"])
    assert len(ambiguous.value.details["candidates"]) == 2
    with pytest.raises(NotFound) as not_found:
        conversations.find(stored["block_id"][:-1] + "x")
    assert stored["block_id"] in not_found.value.details["candidates"]


def test_a_credential_is_private_with_the_topic_that_states_it(
    conversations: ConversationService,
) -> None:
    stored = record(conversations, KEY, topic="Tide clock")
    private_paths = [
        conversations.find(stored["block_id"]).path,
        *(fact.path for fact in conversations.items(Fact)),
    ]
    assert len(private_paths) == 2 and conversations.extension.private_among(private_paths) == set(
        private_paths
    )
    named = record(
        conversations,
        "Here it is.",
        "2026-11-20T09:01:00Z",
        topic="Wifi",
        facts=[("wifi password", "abc")],
    )
    assert conversations.extension.private_among([conversations.find(named["block_id"]).path])
    pasted = record(
        conversations,
        "Why is this refused?",
        "2026-11-20T09:02:00Z",
        topic="CI",
        response=f"Is ghp_{TOKEN} old?",
    )
    assert conversations.extension.private_among([conversations.find(pasted["block_id"]).path])


def test_a_vault_that_refuses_secrets_refuses_a_turn_with_one(tmp_path: Path) -> None:
    settings = Settings.model_validate({"write": {"secrets": "refuse"}})
    with EnhancedStore(tmp_path, settings) as store, pytest.raises(Invalid, match="credential"):
        record(conversation_service(store), KEY)
    assert not list(tmp_path.rglob("*.md"))


def test_an_earlier_value_stays_in_the_history_and_is_not_the_value(
    conversations: ConversationService,
) -> None:
    versions = [
        ("TT-2", "2026-11-02T09:00:00Z"),
        ("TT-3", "2026-11-03T09:00:00Z"),
        ("TT-1", "2026-11-01T09:00:00Z"),
    ]
    for value, at in versions:
        record(
            conversations,
            f"My API key for the tide table service is {value}X9.",
            at,
            topic="Tide clock",
        )
    assert [fact["value"] for fact in recall(conversations, "tide table credential")["facts"]] == [
        "TT-3X9"
    ]
    (note,) = notes(conversations, "fact")
    lines = [line for line in note.read_text().splitlines() if line.startswith("- TT")]
    assert [line[2:8] for line in lines] == ["TT-1X9", "TT-2X9", "TT-3X9"]
    record(conversations, "Rotated. The key is TT-4X9.", "2026-11-04T09:00:00Z", topic="Tide clock")
    assert [fact.value for fact in conversations.items(Fact)] == ["TT-4X9"]


def test_a_context_has_all_constraints_and_counts_what_it_leaves_out(
    conversations: ConversationService,
) -> None:
    record(conversations, "I'm strictly teetotal. I prefer metric units.", topic="Menus")
    for number in range(20):
        record(
            conversations,
            f"Course number {number} has leeks and potatoes.",
            f"2026-11-20T10:{number:02}:00Z",
        )
    wide = build_context(conversations, "What goes with leeks?", 2000)
    assert (
        "Course number 19" in wide["text"]
        and wide["text"].endswith("with leeks?")
        and not wide["left_out"]
    )
    tight = build_context(conversations, "What goes with leeks?", 160)
    assert tight["tokens"] <= 160 and "teetotal" in tight["text"] and tight["left_out"]
    assert (
        f"({21 - sum(item['kind'] == 'turn' for item in tight['items'])} earlier turns omitted)"
        in tight["text"]
    )
    with pytest.raises(TooLong, match="need") as refused:
        build_context(conversations, "What goes with leeks?", 5)
    least = int(refused.value.hint.rpartition(" ")[2].rstrip("."))
    assert build_context(conversations, "What goes with leeks?", least)["tokens"] <= least


def test_a_context_has_what_the_session_said_last_whatever_it_is_about(
    conversations: ConversationService,
) -> None:
    record(conversations, "We bought a boat.", topic="Boat", session="mine")
    record(conversations, "Quinces are ripe.", "2026-11-20T09:01:00Z", topic="Jam", session="other")
    record(
        conversations,
        "Our kitten needs a name.",
        "2026-11-20T09:02:00Z",
        topic="Kitten",
        session="mine",
    )
    context = build_context(conversations, "And so?", 2000, "mine")["text"]
    assert (
        context.index("kitten needs") < context.index("bought a boat") and "Quinces" not in context
    )


def test_a_name_that_most_topics_contain_does_not_rank_them(
    conversations: ConversationService,
) -> None:
    record(conversations, "Nate and Joanna saw Nate. Joanna saw Nate.", topic="Party")
    record(
        conversations,
        f"{'We walked on along the river. ' * 5}Joanna told Nate of the mill.",
        topic="Walk",
    )
    assert (
        recall(conversations, "What did Nate and Joanna see at the mill?")["memories"][0]["topic"]
        == "Walk"
    )


@pytest.mark.parametrize(
    "marked",
    ["type:fact {}", "tag:none {}", "path:x/ {}", "archive: {}", '"a name" {}', "-leaks {}"],
)
def test_a_question_is_words_and_nothing_else(
    conversations: ConversationService, marked: str
) -> None:
    record(conversations, "The rain gauge leaks at the seam.", topic="Rain gauge")
    record(conversations, "Our kitten needs a name.", topic="Kitten")
    found = recall(conversations, marked.format("where rain gauge leaks"))["memories"]
    assert "Rain gauge" in [topic["topic"] for topic in found]


def test_archiving_closes_topics_paused_for_long_as_one_step(
    conversations: ConversationService,
) -> None:
    record(conversations, "Plum jam or quince?", "2026-01-20T09:00:00Z", topic="Jam")
    record(conversations, "The dial is brass.", "2026-01-21T09:00:00Z", topic="Clock")
    record(conversations, "Our kitten needs a name.", "2026-11-21T09:00:00Z", topic="Kitten")
    assert labels(conversations, conversations.archive_stale(dry_run=True)) == ["Jam", "Clock"]
    assert len(conversations.topics()) == 3
    assert (
        labels(conversations, conversations.archive_stale()) == ["Jam", "Clock"]
        and len(conversations.topics()) == 1
    )
    assert "“Plum jam or quince?”" in notes(conversations, "topic")[0].read_text()
    assert recall(conversations, "quince jam")["memories"][0]["topic"] == "Jam"
    conversations.store.undo(conversations.store.history(limit=1)[0].version)
    assert len(conversations.topics()) == 3
    assert labels(conversations, conversations.archive_stale("Kitten")) == ["Kitten"]


def test_no_topic_is_older_than_the_calendar(conversations: ConversationService) -> None:
    record(conversations, "Plum jam or quince?", "2026-01-20T09:00:00Z", topic="Jam")
    record(conversations, "Our kitten needs a name.", "2026-11-21T09:00:00Z", topic="Kitten")
    assert conversations.archive_stale(after_days=10_000_000_000)["closed"] == []
    assert labels(conversations, conversations.archive_stale(after_days=1)) == ["Jam"]


def test_several_threads_lose_and_double_nothing(conversations: ConversationService) -> None:
    def work(number: int) -> None:
        for k in range(6):
            record(
                conversations,
                f"Line {k} of {number}.",
                f"2026-11-20T09:{k:02}:{number:02}Z",
                topic=f"Topic {number % 2}",
            )

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(conversations.items(Topic)) == 2
    messages = sorted(turn.message for topic in conversations.items(Topic) for turn in topic.turns)
    assert messages == sorted(f"Line {k} of {number}." for k in range(6) for number in range(4))


@pytest.mark.parametrize(
    "wrong",
    [{"message": " \n"}, {"message": "a\0b"}, {"message": "half \ud800"}, {"message": "x" * 100_001},
     {"message": "x", "response": "y" * 100_001}, {"message": "x", "timestamp": "soon"},
     {"message": "x", "timestamp": "2999-01-01"}, {"message": "x", "timestamp": "0001-01-01T00:00:00+14:00"},
     {"message": "x", "facts": [("", "v")]}, {"message": "x", "facts": [("the", "v")]},
     {"message": "x", "facts": [("k", " ")]}, {"message": "x", "topic": "t" * 121}],
)  # fmt: skip
def test_an_exchange_that_cannot_be_stored_is_refused_with_a_reason(
    wrong: dict[str, object],
) -> None:
    with pytest.raises(SimplememError) as refused:
        new_exchange(**wrong)  # type: ignore[arg-type]
    assert refused.value.code in ("invalid", "too_long") and len(refused.value.message) < 300


def test_a_session_keeps_its_topic_when_another_names_the_same_label(
    conversations: ConversationService,
) -> None:
    one = record(conversations, "The parser reads dates.", session="one", topic="Parser")
    two = record(
        conversations, "A parser for logs.", "2026-11-20T09:01:00Z", session="two", topic="parser"
    )
    assert two["block_id"] != one["block_id"]
    assert (
        record(conversations, "Why?", "2026-11-20T09:02:00Z", session="one")["block_id"]
        == one["block_id"]
    )
    record(conversations, "Mine now.", "2026-11-20T09:03:00Z", topic=one["block_id"])
    assert (freed := conversations.find(one["block_id"])).session == ""
    assert "session:" not in (conversations.store.root / freed.path).read_text()


def test_of_two_notes_of_a_fact_the_one_stated_last_gets_the_new_version(
    conversations: ConversationService,
) -> None:
    record(conversations, KEY, topic="Tide clock")
    (note,) = notes(conversations, "fact")
    note.with_name("A copy.md").write_text(
        note.read_text().replace("TT-4471", "TT-0000").replace("2026-11", "2025-11")
    )
    conversations.store.sync()
    record(conversations, KEY.replace("4471", "9020"), "2026-11-21T09:00:00Z", topic="Tide clock")
    assert sorted(fact.value for fact in conversations.items(Fact)) == [
        "TT-0000-QX",
        "TT-9020-QX",
    ]


def test_an_unclear_label_is_refined_by_the_next_exchange(
    conversations: ConversationService,
) -> None:
    first = record(conversations, "there my friend", response="Hello!")
    second = record(
        conversations,
        "the greenhouse pump is loud at night",
        "2026-11-20T09:02:00Z",
        response="A pump on rubber feet is quiet.",
    )
    assert second["block_id"] == first["block_id"]
    assert second["topic"] == "Greenhouse pump is loud at night"
    assert conversations.find(first["block_id"]).label == second["topic"]


def test_a_label_that_an_agent_gave_stays(conversations: ConversationService) -> None:
    record(conversations, "there my friend", response="Hello!", topic="there my friend")
    second = record(conversations, "the greenhouse pump is loud at night", "2026-11-20T09:02:00Z")
    assert second["topic"] == "there my friend"


def test_the_summary_of_a_paused_topic_says_how_it_ended(
    conversations: ConversationService,
) -> None:
    first = record(conversations, "Which pump for the greenhouse?", topic="Pump")
    record(
        conversations,
        "Greenhouse pump: we decided on the small pump. It hums.",
        "2026-11-20T09:02:00Z",
    )
    record(conversations, "We bought a boat.", "2026-11-20T09:04:00Z", topic="Boat")
    summary = conversations.find(first["block_id"]).summary
    assert summary == "“Greenhouse pump: we decided on the small pump.”"
