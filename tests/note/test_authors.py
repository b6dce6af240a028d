"""A line belongs to whoever last changed it, as far as the versions of its note tell."""

from __future__ import annotations

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplemem.note.authors import COMMAND_LINE, HUMAN, Authorship, Origin, State, is_by, origin_of, origins

ADA, BOB = Origin("agent", "ada 1.0", "2026-01-01"), Origin("agent", "bob 2.0", "2026-01-02")


def told(now: str, *past: tuple[Origin, str | None], lost: tuple[str, ...] = ()) -> list[str]:
    """Who wrote each line, with the states of a note newest first."""
    texts = {_sha(text): text for _, text in past if text is not None and text not in lost}
    states = [State(None if text is None else _sha(text), by) for by, text in past]
    return [origin.shown for origin in origins(now, states, texts.get)]


def _sha(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def test_every_line_of_a_new_note_is_by_who_made_it() -> None:
    assert told("a\nb\n", (ADA, "a\nb\n")) == ["ada 1.0"] * 3


def test_a_changed_line_is_by_who_changed_it_and_the_others_stay_who_they_were_by() -> None:
    assert told("a\nB\nc", (BOB, "a\nB\nc"), (ADA, "a\nb\nc")) == ["ada 1.0", "bob 2.0", "ada 1.0"]


def test_lines_keep_their_author_wherever_others_are_put_in_and_taken_out() -> None:
    now = "new\na\nb\nnew\nd"
    assert told(now, (BOB, now), (ADA, "a\nb\nc\nd")) == ["bob 2.0", "ada 1.0", "ada 1.0", "bob 2.0", "ada 1.0"]


def test_bringing_an_earlier_text_back_writes_nothing() -> None:
    assert told("a\nb", (BOB, "a\nb"), (BOB, "a\nX"), (ADA, "a\nb")) == ["ada 1.0", "ada 1.0"]


def test_a_note_made_again_after_its_end_hands_nothing_on() -> None:
    assert told("a", (BOB, "a\nb"), (ADA, None), (ADA, "a")) == ["bob 2.0"]


def test_other_line_ends_and_blanks_at_the_end_of_a_line_change_no_author() -> None:
    assert told("a\r\nb\r\n", (BOB, "a\r\nb\r\n"), (ADA, "a  \nb\n")) == ["ada 1.0"] * 3


def test_where_a_text_is_lost_and_two_could_have_written_a_line_nobody_is_named() -> None:
    past = ((BOB, "a\nb\nc"), (HUMAN, "a\nb"), (ADA, "a"))
    assert told("a\nb\nc", *past, lost=("a\nb",)) == ["ada 1.0", "unknown", "unknown"]
    past = ((BOB, "a\nb\nc"), (ADA, "a\nb"), (HUMAN, "a"))
    assert told("a\nb\nc", *past, lost=("a\nb",)) == ["human", "agent", "agent"]  # which of them is not known


def test_where_a_text_is_lost_and_one_made_all_of_it_the_one_is_named() -> None:
    assert told("a\nb\nc", (ADA, "a\nb\nc"), (ADA, "a\nb"), (HUMAN, "a"), lost=("a\nb",)) == [
        "human",
        "ada 1.0",
        "ada 1.0",
    ]


def test_a_line_separator_of_unicode_ends_no_line() -> None:
    assert len(told("a\u2028b\x85c\x0cd", (ADA, "a"))) == 1


@given(st.lists(st.sampled_from("abcdefg"), max_size=12), st.lists(st.sampled_from("abcdefg"), max_size=12))
def test_no_line_that_was_not_there_before_is_given_to_who_came_before(old: list[str], new: list[str]) -> None:
    before, now = "\n".join(old), "\n".join(new)
    by = told(now, (BOB, now), (ADA, before))
    kept = [line for line, who in zip(new, by, strict=False) if who == "ada 1.0"]
    rest = iter(old)
    assert all(line in rest for line in kept)  # in the same order, none of them twice
    if before == now:
        assert set(by) == {"ada 1.0"}


def test_a_text_of_many_lines_is_compared_as_a_whole() -> None:
    """Neither the anchors nor what lies between them may depend on how long a text is."""
    old = [f"line {k}" for k in range(5_000)]
    new = [*old[:100], "put in", *old[2_000:], "put behind"]
    by = told("\n".join(new), (BOB, "\n".join(new)), (ADA, "\n".join(old)))
    assert [line for line, who in zip(new, by, strict=True) if who == "bob 2.0"] == ["put in", "put behind"]


def test_a_stretch_is_by_who_wrote_most_of_it() -> None:
    text = "short\na much longer line\n"
    written = Authorship(text, [ADA, BOB, BOB])
    assert written.of(0, len(text)) == BOB
    assert written.of(0, 5) == ADA
    assert written.of(3, 10) == BOB
    assert written.all_of(0, len(text)) == [BOB, ADA]
    assert written.all_of(5, 6) == []


def test_of_two_who_wrote_as_much_the_later_is_told() -> None:
    assert Authorship("one\ntwo", [BOB, ADA]).of(0, 7) == BOB


def test_a_command_is_a_persons_and_a_tool_is_an_agents_whatever_it_calls_itself() -> None:
    assert origin_of(COMMAND_LINE, "edit", "").kind == "human"
    assert origin_of(COMMAND_LINE, "update_memory", "").kind == "agent"
    assert origin_of("", "create", "") == Origin("agent", "a program")
    assert origin_of("human", "update_memory", "").shown == "an agent called human"


@pytest.mark.parametrize(
    ("wanted", "passes"),
    [
        ("agent", True),
        ("ada", True),
        ("ADA 1.0", True),
        ("human", False),
        ("da", False),
        ("unknown", False),
    ],
)
def test_an_author_is_asked_for_by_kind_or_by_how_the_name_begins(wanted: str, passes: bool) -> None:
    assert is_by(ADA, wanted) is passes


def test_of_changes_by_one_author_in_a_row_only_the_last_is_read_where_the_day_does_not_matter() -> None:
    texts = {_sha(text): text for text in ("a", "a\nb", "a\nb\nc", "a\nb\nc\nd")}
    states = [
        State(_sha(text), by) for text, by in zip(list(texts.values())[::-1], (BOB, ADA, ADA, HUMAN), strict=True)
    ]
    read: list[str] = []

    def text_of(sha: str) -> str | None:
        read.append(texts[sha])
        return texts[sha]

    by = origins("a\nb\nc\nd", states, text_of, to_the_day=False)
    assert [origin.shown for origin in by] == ["human", "ada 1.0", "ada 1.0", "bob 2.0"]
    assert read == ["a\nb\nc", "a"]
