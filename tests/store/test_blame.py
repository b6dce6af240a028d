"""A line belongs to whoever last changed it, as far as the texts of the past that are kept can tell; and so does a
note."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplemem.index.changes import HUMAN, Origin
from simplemem.models import Filter
from simplemem.note.diff import blame
from simplemem.store import EnhancedStore

Write = Callable[[str, str | bytes], Path]
ADA, BOB = Origin("agent", "ada 1.0", "2026-01-01"), Origin("agent", "bob 2.0", "2026-02-01")


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def by_line(*versions: tuple[str, Origin], lost: str | None = None) -> list[Origin | None]:
    """Who wrote the lines of the last of some texts, each by somebody; `lost` is no longer kept."""
    texts = {sha(text): text.encode() for text, _ in versions if text != lost}
    states = [(sha(text), by) for text, by in reversed(versions)]
    return blame(versions[-1][0].encode(), states, texts.get)


def test_every_line_has_who_changed_it_last() -> None:
    assert by_line(("a\nb\nc\n", HUMAN), ("a\nB\nc\n", ADA), ("new\na\nB\nc\n", BOB)) == [
        BOB,
        HUMAN,
        ADA,
        HUMAN,
    ]
    assert by_line(("a\nb\n", HUMAN)) == [HUMAN, HUMAN]


def test_a_text_that_comes_back_brings_its_authors_along() -> None:
    assert by_line(("a\nb\n", ADA), ("a\nB\n", BOB), ("a\nb\n", HUMAN)) == [ADA, ADA]


def test_where_a_text_is_lost_nobody_is_named_who_may_not_have_written_a_line() -> None:
    versions = (("a\n", HUMAN), ("a\nb\n", ADA), ("a\nb\nc\n", BOB))
    assert by_line(*versions, lost="a\nb\n") == [HUMAN, None, None]
    assert by_line(("a\n", ADA), ("a\nb\n", HUMAN), ("a\nb\nc\n", BOB), lost="a\nb\n") == [
        ADA,
        None,
        None,
    ]


@given(
    st.lists(
        st.tuples(st.text("ab\n", max_size=12), st.sampled_from([HUMAN, ADA, BOB])),
        min_size=1,
        max_size=6,
    )
)
def test_every_line_has_an_author_among_those_who_wrote(versions: list[tuple[str, Origin]]) -> None:
    found = by_line(*versions)
    assert len(found) == versions[-1][0].count("\n") + (
        not versions[-1][0].endswith("\n") and versions[-1][0] != ""
    )
    assert set(found) <= {by for _, by in versions}


def test_of_a_memory_lines_by_hand_and_by_agents_are_told_apart(
    plain_store: EnhancedStore, vault: Path
) -> None:
    (vault / "a.md").write_text("one\ntwo\n")
    plain_store.sync()
    plain_store.update("a", append="three", who="claude-ai 1.2", tool="update_memory")
    (vault / "a.md").write_text("one, by hand\n" + (vault / "a.md").read_text().partition("\n")[2])
    plain_store.sync()
    lines = plain_store.blame("a")
    assert [(line.text, line.kind, line.who) for line in lines] == [
        ("one, by hand", "human", ""), ("two", "human", ""),
        ("", "agent", "claude-ai 1.2"), ("three", "agent", "claude-ai 1.2"),
    ]  # fmt: skip
    assert (lines[0].when, lines[3].when) == ("", plain_store.history("a")[0].when)


def test_the_kind_of_a_call_counts_more_than_that_of_the_process(
    plain_store: EnhancedStore,
) -> None:
    plain_store.create("a", "one", who="claude-ai 1.2", tool="create_memory")
    plain_store.update("a", append="two", who="owner", tool="page", kind="human")
    kinds = {line.text: line.kind for line in plain_store.blame("a")}
    assert (kinds["one"], kinds["two"]) == ("agent", "human")
    assert [entry.kind for entry in plain_store.history("a")] == ["human", "agent"]

    plain_store.undo("a", who="owner", tool="page", kind="human")
    assert plain_store.history("a")[0].kind == "human"


def test_the_kind_in_old_lines_of_the_log_follows_from_the_tool(
    plain_store: EnhancedStore, vault: Path
) -> None:
    plain_store.create("a", "one", who="command line", tool="create")
    plain_store.update("a", append="two", who="claude-ai 1.2", tool="update_memory")
    log = vault / ".simplemem" / "history" / "log.jsonl"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        del line["kind"]
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert [entry.kind for entry in plain_store.history("a")] == ["agent", "human"]


# -- the last author of a note

AGENT: dict[str, Any] = {"who": "ada-code 1.0"}
OTHER: dict[str, Any] = {"who": "bob 2.0"}


def names(store: EnhancedStore, question: str, **more: Any) -> set[str]:
    return {hit.name for hit in store.search(question, mode="text", limit=50, **more).hits}


@pytest.fixture
def harbour(plain_store: EnhancedStore, write: Write) -> EnhancedStore:
    """A note by a person, and one by an agent."""
    write("hand.md", "# Hand\n\nThe crane at the north pier needs grease.\n")
    plain_store.sync()
    plain_store.create("machine", "The crane was inspected in May.", tool="create_memory", **AGENT)
    return plain_store


def test_a_filter_by_author_leaves_the_notes_that_they_changed_last(harbour: EnhancedStore) -> None:
    assert names(harbour, "crane author:human") == {"hand"}
    assert names(harbour, "crane author:agent") == names(harbour, "crane author:ada") == {"machine"}
    assert names(harbour, "crane", filter=Filter(author="bob")) == set()
    assert names(harbour, "author:agent") == {"machine"}
    assert "grease" in harbour.context("crane author:human").text
    assert "inspected" not in harbour.context("crane author:human").text


def test_a_hit_says_who_changed_its_note_last_and_when_if_that_is_asked(
    harbour: EnhancedStore,
) -> None:
    found = {hit.name: hit for hit in harbour.search("crane", authors=True).hits}
    assert {name: hit.authors for name, hit in found.items()} == {
        "hand": ("human",),
        "machine": ("ada-code 1.0",),
    }
    made = harbour.history("machine")[0].when
    assert found["machine"].written is not None and made[14:16] == found["machine"].written[14:16]
    assert found["hand"].written is None  # nobody knows
    assert {hit.authors for hit in harbour.search("crane").hits} == {()}
    assert () not in {hit.authors for hit in harbour.search("crane author:any").hits}
    assert () not in {hit.authors for hit in harbour.search("crane author:Any").hits}
    any_author = Filter(author=" ANY ")
    assert () not in {hit.authors for hit in harbour.search("crane", filter=any_author).hits}
    assert names(harbour, "crane author:any") == names(harbour, "crane")


def test_a_note_keeps_its_author_under_another_name(harbour: EnhancedStore, vault: Path) -> None:
    harbour.move("machine", "log/May", tool="move_memory", **OTHER)
    assert names(harbour, "crane author:ada") == {"log/May"}
    (vault / "log" / "May.md").rename(vault / "June.md")  # by another program
    harbour.sync()
    assert names(harbour, "crane author:ada") == {"June"}
    harbour.delete("June", tool="delete_memory", **OTHER)
    harbour.undo("June", who="command line")
    assert names(harbour, "crane author:ada") == {"June"}
