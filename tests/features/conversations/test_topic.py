"""A topic: any message is read back unchanged, and what the user writes between turns stays."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplemem.features.conversations.topic import (
    Topic,
    insert_turn,
    read_topic,
    render_new_topic,
    topic_name,
)
from simplemem.features.conversations.turns import Turn, render_turn
from simplemem.note.dates import format_moment
from simplemem.note.note import read_note
from simplemem.note.tag_changes import change_tags
from simplemem.store import Read

BEGAN = datetime(2026, 11, 20, 14, 5, 10, tzinfo=UTC)
_NUMBERS = count(1)
PIECES = [
    "# Title", "```", "~~~", "````", "%%", "$$", "<!--", "<div>", "[[Nowhere]]", "#tag", "^turn-20990101-000000-ffffff",
    "^id", "---", "===", "> [!quote] You, 14:05", "> quoted", "- [ ] task", "[ref]: http://x", "\t", " ", "", "word",
    "type: topic", "| a | b |", "|---|---|", "`", "tick ` open", "    code", "1. item", "日本語 🐝", "\x0b", "\u2028",
]  # fmt: skip
TEXTS = st.lists(
    st.one_of(st.sampled_from(PIECES), st.text(max_size=12)), min_size=1, max_size=8
).map(
    lambda lines: (
        "\n".join(lines).replace("\r", "").replace("\0", "").encode("utf-8", "replace").decode()
    )
)


def turn(message: str, minutes: int = 0, answer: str = "", context: str = "") -> Turn:
    at = BEGAN + timedelta(minutes=minutes)
    return Turn(f"turn_{at:%Y%m%d_%H%M%S}_{next(_NUMBERS):06x}", at, message, answer, context)


def read(text: str, path: str = "topics/2026/11/2026-11-20 Weather.md") -> Topic:
    return read_topic(Read(path, text, "", ""))


def new_topic(first: Turn) -> str:
    text = render_new_topic("Weather", first, ["rain"], "", "block_20261120_140510")
    return change_tags(text, {"status": "active"})


def texts_of(topic: Topic) -> list[tuple[str, str, str]]:
    return [(turn.message, turn.answer, turn.context) for turn in topic.turns]


@given(st.lists(st.tuples(TEXTS, TEXTS, TEXTS, st.integers(0, 6000)), min_size=1, max_size=5))
def test_any_turns_in_any_order_are_read_back_unchanged(
    exchanges: list[tuple[str, str, str, int]],
) -> None:
    turns = [
        turn(message, minutes, answer, context) for message, answer, context, minutes in exchanges
    ]
    text = new_topic(turns[0])
    for later_turn in turns[1:]:
        text = insert_turn(read(text), later_turn)
    expected = sorted(turns, key=lambda turn: turn.at)
    assert texts_of(read(text)) == [turn[2:5] for turn in expected]
    assert [turn.at for turn in read(text).turns] == [turn.at for turn in expected]


@given(TEXTS)
def test_a_message_is_no_structure_of_the_note(message: str) -> None:
    note = read_note(new_topic(turn(message)).encode())
    assert [heading.text for heading in note.body.headings] == ["Friday 20 November 2026"]
    assert len(note.body.block_ids) == 1
    assert not note.links and not note.open_tasks
    assert [tag.name for tag in note.tags] == ["status/active", "rain"]


@given(TEXTS.filter(lambda text: "^turn" not in text), TEXTS, st.sampled_from(["\n", "\r\n"]))
def test_what_a_person_writes_between_turns_stays_and_is_in_no_turn(
    remark: str, message: str, newline: str
) -> None:
    edited = new_topic(turn("one")) + f"\nMine:\n{remark}\n"
    edited = edited.replace("\n", newline)
    after = insert_turn(read(edited), turn(message, 5))
    assert after.startswith(edited)
    assert read(after).turns[0].message == "one"
    assert read(after).turns[-1].message == message


def test_a_plain_message_is_markdown_and_an_odd_one_is_in_a_fence() -> None:
    assert render_turn(turn("A list:\n- one\n- **two**")).startswith("> [!quote] You, ")
    assert "> - **two**\n" in render_turn(turn("A list:\n- one\n- **two**"))
    assert "```" not in render_turn(turn("plain words, it's 5 > 3"))
    assert "> ````\n> ```\n> code\n> ```\n> ````\n" in render_turn(turn("```\ncode\n```"))


def test_a_back_dated_turn_is_inserted_under_the_heading_of_its_day() -> None:
    text = new_topic(turn("first"))
    for minutes, message in (
        (3 * 1440, "third"),
        (1440, "second"),
        (-1440, "before"),
        (1, "also first"),
    ):
        text = insert_turn(read(text), turn(message, minutes))
    assert [turn.message for turn in read(text).turns] == [
        "before",
        "first",
        "also first",
        "second",
        "third",
    ]
    headings = [heading.text for heading in read_note(text.encode()).body.headings]
    assert headings == [f"{day} {date} November 2026" for day, date in
                        (("Thursday", 19), ("Friday", 20), ("Saturday", 21), ("Monday", 23))]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "messages"),
    [
        (lambda text: text.replace("> second", "> corrected"), ["first", "corrected"]),
        (lambda text: text[: text.index("> [!quote] You", text.index("> first"))], ["first"]),
        (lambda text: text.replace("> [!quote] You", "> [!QUOTE] Me"), ["first", "second"]),
        (lambda text: text.replace("\n\n^turn", "\n^turn"), ["first", "second"]),
        (lambda text: text.replace("\n", "\r\n"), ["first", "second"]),
        (lambda text: text.replace("> first\n", ""), ["", "second"]),
    ],
)
def test_a_person_may_correct_and_cut(change, messages: list[str]) -> None:  # type: ignore[no-untyped-def]
    text = insert_turn(read(new_topic(turn("first", answer="Yes."))), turn("second", 2))
    assert [turn.message for turn in read(change(text)).turns] == messages


def test_the_frontmatter_describes_the_topic() -> None:
    topic = read(new_topic(turn("first")))
    assert (topic.id, topic.label, topic.status, topic.keywords) == (
        "block_20261120_140510", "Weather", "active", ("rain",))  # fmt: skip
    assert format_moment(topic.created) == "2026-11-20T14:05:10Z"
    assert topic.is_own and not topic.problem
    assert topic_name("A / long: label" * 20, BEGAN).startswith("topics/2026/11/2026-11-20 A")


def test_a_status_changes_in_its_place_and_a_persons_tags_stay() -> None:
    text = new_topic(turn("first")).replace(
        "  - status/active\n", "  - mine\n  - status/active # kept\n  - other\n"
    )
    assert read(change_tags(text, {"status": "paused"})).status == "paused"
    tags = [
        tag.name
        for tag in read_note(change_tags(text, {"status": "closed"}).encode()).tags
        if tag.source == "property"
    ]
    assert tags == ["mine", "status/closed", "other"]
    assert change_tags(text, {"status": "active"}) == text


@pytest.mark.parametrize(
    ("header", "id_"),
    [
        ("---\ntype: topic\n---\n", "block_20261120_140510"),
        ("---\ntype: topic\naliases: block_20250101_000000_2\n---\n", "block_20250101_000000_2"),
        (
            "---\ntitle: [unclosed\naliases:\n  - block_20250101_000000\n---\n",
            "block_20250101_000000",
        ),
    ],
)
def test_a_header_by_hand_or_broken_is_read_as_far_as_it_goes(header: str, id_: str) -> None:
    topic = read(header + new_topic(turn("first")).split("---\n")[2])
    assert topic.id == id_ and len(topic.turns) == 1
    assert bool(topic.problem) is ("unclosed" in header)
