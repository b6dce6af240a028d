"""A line belongs to whoever last changed it, as far as the texts of the past that are kept can tell."""

from __future__ import annotations

import hashlib
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from simplemem.index.changes import HUMAN, Origin, is_called
from simplemem.note.diff import blame
from simplemem.store import EnhancedStore

ADA, BOB = Origin("agent", "ada 1.0", "2026-01-01"), Origin("agent", "bob 2.0", "2026-02-01")


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def by_line(*versions: tuple[str, Origin], lost: str | None = None) -> list[Origin | None]:
    """Who wrote the lines of the last of some texts, each by somebody; `lost` is no longer kept."""
    texts = {sha(text): text.encode() for text, _ in versions if text != lost}
    states = [(sha(text), by) for text, by in reversed(versions)]
    return blame(versions[-1][0].encode(), states, texts.get)


def test_every_line_has_who_changed_it_last() -> None:
    assert by_line(("a\nb\nc\n", HUMAN), ("a\nB\nc\n", ADA), ("new\na\nB\nc\n", BOB)) == [BOB, HUMAN, ADA, HUMAN]
    assert by_line(("a\nb\n", HUMAN)) == [HUMAN, HUMAN]


def test_a_text_that_comes_back_brings_its_authors_along() -> None:
    assert by_line(("a\nb\n", ADA), ("a\nB\n", BOB), ("a\nb\n", HUMAN)) == [ADA, ADA]


def test_where_a_text_is_lost_nobody_is_named_who_may_not_have_written_a_line() -> None:
    versions = (("a\n", HUMAN), ("a\nb\n", ADA), ("a\nb\nc\n", BOB))
    assert by_line(*versions, lost="a\nb\n") == [HUMAN, None, None]
    assert by_line(("a\n", ADA), ("a\nb\n", HUMAN), ("a\nb\nc\n", BOB), lost="a\nb\n") == [ADA, None, None]


@given(st.lists(st.tuples(st.text("ab\n", max_size=12), st.sampled_from([HUMAN, ADA, BOB])), min_size=1, max_size=6))
def test_every_line_has_an_author_among_those_who_wrote(versions: list[tuple[str, Origin]]) -> None:
    found = by_line(*versions)
    assert len(found) == versions[-1][0].count("\n") + (not versions[-1][0].endswith("\n") and versions[-1][0] != "")
    assert set(found) <= {by for _, by in versions}


def test_a_name_is_asked_for_with_or_without_its_version() -> None:
    assert is_called("claude-ai 1.2", "Claude-AI") and is_called("claude-ai 1.2", "claude-ai  1.2")
    assert is_called("anybody", "") and not is_called("claude-ai 1.2", "claude") and not is_called("Ada Marsh", "ada")


def test_of_a_memory_lines_by_hand_and_by_agents_are_told_apart(plain_store: EnhancedStore, vault: Path) -> None:
    (vault / "a.md").write_text("one\ntwo\n")
    plain_store.sync()
    plain_store.update("a", append="three", who="claude-ai 1.2", tool="update_memory")
    (vault / "a.md").write_text("one, by hand\n" + (vault / "a.md").read_text().partition("\n")[2])
    plain_store.sync()
    lines = plain_store.blame("a")
    assert [(line.text, line.kind, line.who) for line in lines] == [
        ("one, by hand", "human", ""), ("two", "human", ""), ("three", "agent", "claude-ai 1.2"),
    ]  # fmt: skip
    assert (lines[0].when, lines[2].when) == ("", plain_store.history("a")[0].when)
