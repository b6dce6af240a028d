"""Two texts are compared block by block, and changed blocks word by word."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from simplemem.note.word_diff import compare_blocks, compare_words, shared_words, split_into_words

WORDS = st.lists(st.sampled_from(["a", "b", "c", " ", ",", "\n"]), max_size=12)


def marked(old: str, new: str) -> str:
    """Return the comparison of two lines, with [-removed-] and {+added+} words."""
    old_words = split_into_words(old)
    new_words = split_into_words(new)
    marks = {"same": "%s", "removed": "[-%s-]", "added": "{+%s+}"}
    parts = []
    for span in compare_words(old_words, new_words):
        words = old_words if span.kind == "removed" else new_words
        parts.append(marks[span.kind] % "".join(words[span.start : span.end]))
    return "".join(parts)


def test_a_changed_word_is_marked_and_the_rest_is_not() -> None:
    assert marked("The port is 5432.", "The port is 5433.") == "The port is [-5432-]{+5433+}."


def test_spaces_between_changed_words_belong_to_the_change() -> None:
    assert marked("a red fox ran", "a blue cat ran") == "a [-red fox-]{+blue cat+} ran"


def test_words_that_were_only_added_or_removed_have_no_counterpart() -> None:
    assert marked("one two", "one and two") == "one {+and +}two"
    assert marked("one and two", "one two") == "one [-and -]two"
    assert marked("", "new") == "{+new+}" and marked("old", "") == "[-old-]"
    assert marked("same", "same") == "same"


def test_blocks_that_share_words_are_paired_and_others_are_replaced() -> None:
    old = [split_into_words(line) for line in ("# Title", "- milk and bread", "- eggs", "end")]
    new = [split_into_words(line) for line in ("# Title", "- milk and butter", "end", "more")]
    changes = [(change.old, change.new, change.is_changed) for change in compare_blocks(old, new)]
    assert changes == [
        (0, 0, False),
        (1, 1, True),
        (2, None, True),
        (3, 2, False),
        (None, 3, True),
    ]


def test_texts_without_common_words_share_nothing() -> None:
    assert shared_words(["a", " ", "b"], ["c", " ", "d"]) == 0
    assert shared_words(["a", "b"], ["b", "a"]) == 1
    assert shared_words([","], [","]) == 0


@given(WORDS, WORDS)
def test_the_spans_contain_every_word_of_both_blocks_once(old: list[str], new: list[str]) -> None:
    spans = compare_words(old, new)
    removed = [
        word for span in spans if span.kind == "removed" for word in old[span.start : span.end]
    ]
    result = [
        word for span in spans if span.kind != "removed" for word in new[span.start : span.end]
    ]
    same = [word for span in spans if span.kind == "same" for word in new[span.start : span.end]]
    assert result == new
    assert len(removed) + len(same) == len(old)


@given(st.lists(WORDS, max_size=6), st.lists(WORDS, max_size=6))
def test_every_block_of_both_texts_is_in_the_comparison_once_and_in_order(
    old: list[list[str]], new: list[list[str]]
) -> None:
    changes = compare_blocks(old, new)
    assert [change.old for change in changes if change.old is not None] == [*range(len(old))]
    assert [change.new for change in changes if change.new is not None] == [*range(len(new))]
    for change in changes:
        if not change.is_changed:
            assert old[change.old] == new[change.new]
