"""A context pack: the best passages, cited, never over its budget; one voice a fact, and no word is lost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from simplemem.note.words import count_tokens
from simplemem.search.packing import MAX_QUOTES, Group, Piece, group_pieces, pack

WORDS = st.text(st.sampled_from("ab cd\n東京 #-é."), max_size=120)
DAY = "2026-01-24T12:00:00"


def piece(text: str, name: str = "n", score: float = 1.0, **more: object) -> Piece:
    return Piece(name, "Title", "A > B", 7, DAY, text, score, **more)  # type: ignore[arg-type]


def letters(text: str) -> int:
    """A tokenizer that finds a token in every letter."""
    return len(text)


def strange(text: str) -> int:
    """A tokenizer of which a whole is more than its parts."""
    return len(text) ** 2 // 40


@given(
    st.lists(WORDS, max_size=16),
    st.integers(1, 200),
    st.sampled_from([count_tokens, letters, strange]),
)
def test_a_pack_never_exceeds_its_budget_and_counts_what_it_left_out(
    texts, budget: int, count
) -> None:
    packed = pack([piece(text, f"n{k}") for k, text in enumerate(texts)], budget, count)
    assert packed.tokens == count(packed.text) <= budget
    assert len(packed.items) + packed.left_out + packed.duplicates == sum(
        bool(text.strip()) for text in texts
    )
    assert len(packed.omitted) == packed.left_out + packed.duplicates
    for item in packed.items:
        text = texts[int(item["name"][1:])]
        first = next(line for line in text.strip().split("\n"))
        assert item["line"] >= 7
        assert f"[{item['name']}:{item['line']}]" in packed.text
        assert first.strip() in packed.text or packed.text.endswith(" …")


def test_pieces_keep_their_order_and_a_smaller_one_goes_in_where_a_large_one_does_not() -> None:
    packed = pack([piece("first"), piece("large " * 500, "b"), piece("last", "c")], 60)
    assert [item["name"] for item in packed.items] == ["n", "c"]
    assert packed.omitted == ({"name": "b", "line": 7, "why": "budget"},)
    assert packed.text.index("first") < packed.text.index("last")


def test_the_same_passage_goes_in_once_with_the_other_place_beside_it() -> None:
    packed = pack([piece("The crane."), piece("the  CRANE", "copy"), piece("  ", "empty")], 500)
    assert [item["name"] for item in packed.items] == ["n"]
    assert packed.items[0]["also"] == ["copy:7"]
    assert "[n:7] A > B · also in [copy:7]\n" in packed.text
    assert (packed.left_out, packed.duplicates) == (0, 1)
    assert packed.omitted == ({"name": "copy", "line": 7, "why": "duplicate", "of": "n:7"},)


def test_an_older_sentence_that_disagrees_stands_beneath_with_its_place_and_day() -> None:
    old = Piece(
        "old", "Old", "", 3, "2024-05-01T00:00:00", "The wind limit for launches is 8 m/s.", 1.0
    )
    packed = pack([old, piece("The wind limit for launches is 6 m/s.")], 500)
    assert packed.text == (
        "### Title · 2026-01-24\n[n:7] A > B\n\nThe wind limit for launches is 6 m/s.\n\n"
        'older: "The wind limit for launches is 8 m/s." [old:3] 2024-05-01'
    )
    assert packed.items[0]["said"] == [
        {
            "label": "older",
            "text": "The wind limit for launches is 8 m/s.",
            "cited": "old:3",
            "when": "2024-05-01",
        }
    ]


def test_a_piece_is_cited_with_title_heading_name_line_and_day() -> None:
    assert (
        pack([piece("The crane.", "a/b")], 500).text
        == "### Title · 2026-01-24\n[a/b:7] A > B\n\nThe crane."
    )
    under_its_title = Piece("a", "Crane", "Crane > Rust", 7, DAY, "Red.", 1.0, via="linked from b")
    assert (
        pack([under_its_title], 500).text
        == "### Crane · 2026-01-24 · linked from b\n[a:7] Rust\n\nRed."
    )
    only_its_title = Piece("a", "Crane", "Crane", 7, DAY, "Red.", 1.0)
    assert pack([only_its_title], 500).text.startswith("### Crane · 2026-01-24\n[a:7]\n")
    with_heading = Piece("a", "Crane", "Crane > Old > Rust", 7, DAY, "## Rust\n\nRed.", 1.0)
    assert "\n[a:7] Old\n\n## Rust\n" in pack([with_heading], 500).text


def test_overlapping_passages_of_a_note_say_each_line_once_under_its_own_number() -> None:
    lines = [
        f"Line {word} of the log.\r\n" for word in ("one", "two", "three", "four", "five", "six")
    ]
    text = "".join(lines)
    first, second = text[: text.index("Line five")], text[text.index("Line three") :]
    for order in ([first, second], [second, first]):
        pieces = [
            Piece(
                "log",
                "Log",
                "",
                10 + text.count("\n", 0, text.index(part)),
                DAY,
                part,
                1.0,
                text.index(part),
            )
            for part in order
        ]
        packed = pack(pieces, 500)
        assert all(packed.text.count(line.strip()) == 1 for line in lines)
        assert "\r" not in packed.text
        cited = {item["line"] for item in packed.items}
        assert cited == ({10, 14} if order[0] is first else {12, 10})
    packed = pack(
        [pieces[0], Piece("log", "Log", "", 13, DAY, lines[3], 1.0, text.index("Line four"))], 500
    )
    assert (len(packed.items), packed.duplicates) == (1, 1)


def test_the_best_passage_is_cut_after_a_sentence_rather_than_left_out() -> None:
    text = (
        "It rained all day long in the harbour of Sandhaven.\n\nThe crane was sold. It was red. "
        + "More. " * 90
    )
    packed = pack([piece(text, at=text.index("The crane")), piece("x " * 400, "b")], 50)
    assert packed.text.startswith(
        "### Title · 2026-01-24\n[n:9] A > B\n\nThe crane was sold. It was red."
    )
    assert packed.text.endswith(" …")
    assert packed.tokens <= 50
    assert packed.left_out == 1
    packed = pack([piece(text, at=text.index("The crane")), piece("Small.", "b")], 50)
    assert packed.items[0]["name"] == "n"
    assert packed.tokens <= 50


def test_a_note_is_named_once_with_its_day_above_its_passages_in_their_order() -> None:
    end = piece("The crane was sold.", score=0.9, start=400)
    other = piece("Bees.", "b", score=0.8)
    beginning = piece("The crane was built.", score=0.7, start=10)
    packed = pack([end, other, beginning], 500)
    assert packed.text == (
        "### Title · 2026-01-24\n[n:7] A > B\n\nThe crane was built.\n\n"
        "[n:7] A > B\n\nThe crane was sold.\n\n"
        "### Title · 2026-01-24\n[b:7] A > B\n\nBees."
    )
    assert [item["name"] for item in packed.items] == ["n", "b", "n"]  # the best first


def test_what_is_left_of_the_budget_is_filled_with_the_beginning_of_one_more_passage() -> None:
    long = "The crane lifts ten tons. " * 60
    packed = pack([piece("Small."), piece(long, "b"), piece(long, "c")], 200)
    assert [item["name"] for item in packed.items] == ["n", "b"]
    assert packed.text.endswith(" …")
    assert 150 < packed.tokens <= 200
    assert [item["name"] for item in packed.omitted] == ["c"]


def test_pinned_passages_come_first_within_a_quarter_of_the_budget() -> None:
    rule = piece("Never fill indoors.", "rule", via="pinned")
    long = piece("The crane lifts ten tons. " * 200, "long", via="pinned")
    packed = pack([piece("The crane."), piece("Bees.", "b")], 400, pinned=[rule, long])
    assert [item["name"] for item in packed.items] == ["rule", "long", "n", "b"]
    assert packed.pinned == 2
    assert packed.text.startswith("### Title · 2026-01-24 · pinned\n[rule:7]")
    assert sum(item["tokens"] for item in packed.items[:2]) <= 100
    without_room = pack([piece("The crane.")], 60, pinned=[long])
    assert [item["name"] for item in without_room.items] == ["n"]
    assert without_room.pinned == 0
    assert without_room.omitted[0]["name"] == "long"


@given(st.lists(WORDS, max_size=6), st.lists(WORDS, max_size=6), st.integers(1, 200))
def test_a_pack_with_pinned_passages_never_exceeds_its_budget(
    pinned: list[str], texts: list[str], budget: int
) -> None:
    packed = pack(
        [piece(text, f"n{k}") for k, text in enumerate(texts)],
        budget,
        pinned=[piece(text, f"p{k}") for k, text in enumerate(pinned)],
    )
    assert packed.tokens <= budget
    assert [item["name"][0] for item in packed.items].count("p") == packed.pinned
    assert len(packed.items) + len(packed.omitted) == sum(
        bool(text.strip()) for text in (*pinned, *texts)
    )


LONG = (
    "Filling takes an hour when the wind is low. The cylinder is earthed by two people who have done it before. "
    "Nobody else stands within ten metres of the hose until the neck is tied."
)


def a_piece(name: str, text: str, day: str = "2026-01-01", line: int = 1, start: int = 0) -> Piece:
    return Piece(name, name.title(), "", line, f"{day}T12:00:00", text, 1.0, start)


def said(voice: Group) -> list[tuple[str, ...]]:
    return [tuple(quote) for quote in voice.quotes]


def test_an_older_passage_that_says_more_stays_behind_the_newer_one() -> None:
    old = a_piece("old", f"The wind limit for launches is 8 m/s. {LONG}", "2024-05-01")
    between = a_piece("other", "Bees and honey.")
    new = a_piece("new", "The wind limit for launches is 6 m/s.", "2025-09-01")
    speaking, _ = group_pieces([old, between, new])
    assert [voice.piece.name for voice in speaking] == ["new", "old", "other"]
    assert [each[0] for each in said(speaking[0])] == ["older"]
    assert said(speaking[1]) == []


def test_no_more_is_quoted_than_a_reader_wants_and_the_rest_speaks_for_itself() -> None:
    pieces = [
        a_piece(
            f"n{chr(97 + k)}", f"The tide gauge at the pier reads {k} metres.", f"2026-01-{k + 10}"
        )
        for k in range(9)
    ]
    speaking, taken_up = group_pieces(pieces)
    assert speaking[0].piece.name == "ni"
    assert [each[3] for each in said(speaking[0])] == [
        "2026-01-17",
        "2026-01-16",
        "2026-01-15",
        "2026-01-14",
    ]
    assert speaking[0].unquoted_count == 9 - 1 - MAX_QUOTES
    assert len(speaking) == 9 - MAX_QUOTES and len(taken_up) == MAX_QUOTES


SENTENCES = st.sampled_from([
    "The wind limit is 6 metres a second.", "The wind limit is 8 metres a second.", "The tracker is waterproof today.",
    "The tracker is not waterproof today.", "Bees make honey from nectar.", "# Heading", "- an item of a list",
])  # fmt: skip
PIECES = st.lists(
    st.tuples(
        st.sampled_from("abcd"), st.lists(SENTENCES, min_size=1, max_size=4), st.sampled_from(["2025-01-01", "2026-01-01"])
    ),
    max_size=7,
)  # fmt: skip


@given(PIECES)
def test_every_sentence_of_every_passage_is_said_somewhere(
    given_pieces: list[tuple[str, list[str], str]],
) -> None:
    pieces = [a_piece(name, "\n\n".join(lines), day) for name, lines, day in given_pieces]
    speaking, taken_up = group_pieces(pieces)
    assert len(speaking) + len(taken_up) == len(pieces)
    heard = "\n".join(
        voice.piece.text + "".join(f"\n{quote.text}" for quote in voice.quotes)
        for voice in speaking
    )
    for each in pieces:
        for line in each.text.split("\n\n"):
            assert line.startswith("#") or line.removeprefix("- ") in heard
