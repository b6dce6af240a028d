"""What holds of every merge: nothing that a side added is lost, nothing it removed comes back, whoever is called
ours."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from simplemem.note.diff import match_lines
from simplemem.note.header import read_header
from simplemem.note.merge import merge

_PIECES = [
    "a", "b", "c", "- item", "# Head", "", "", "---", "title: T", "tags: [x, y]", "tags: [y, z]", "modified: 2026-01-02",
    "modified: 2026-01-03", "broken: [", "<<<<<<< ours", "=======", "é\u2028odd", "key: value # comment", "\ufeff",
]  # fmt: skip


@st.composite
def _notes(draw: st.DrawFn) -> str:
    lines = draw(st.lists(st.sampled_from(_PIECES), max_size=12))
    if draw(st.booleans()):
        lines = [
            "---",
            draw(st.sampled_from(_PIECES)),
            draw(st.sampled_from(_PIECES)),
            "---",
            *lines,
        ]
    ends = st.sampled_from(["\n", "\n", "\n", "\r\n", "\r"])
    end = draw(ends)
    text = "".join(line + (draw(ends) if draw(st.integers(0, 9)) == 0 else end) for line in lines)
    return text.rstrip("\r\n") if draw(st.booleans()) else text


def _edited(lines: list[str], mark: str, seed: int) -> tuple[list[str], set[str], set[str]]:
    """A text after somebody's edits, the lines they added, and the lines they took away. No line stands twice."""
    chance, result, added = random.Random(seed), list[str](), set[str]()
    for at, line in enumerate([*lines, ""]):
        if chance.random() < 0.12:
            new = [f"{mark} {at}.{k}" for k in range(chance.randint(1, 3))]
            result += new
            added |= set(new)
        if line and chance.random() > 0.12:
            result.append(line)
    return result, added, set(lines) - set(result)


@given(base=_notes(), other=_notes())
def test_a_side_that_changed_nothing_leaves_the_other_as_it_is(base: str, other: str) -> None:
    assert merge(base, other, base).text == other and merge(base, base, other).text == other
    assert merge(base, other, other).text == other and merge(None, other, other).text == other


@given(base=_notes(), ours=_notes(), theirs=_notes())
def test_whoever_is_called_ours_the_merge_is_clean_or_not_and_says_the_same(
    base: str, ours: str, theirs: str
) -> None:
    one, other = merge(base, ours, theirs), merge(base, theirs, ours)
    assert one.is_clean == other.is_clean
    if one.is_clean:
        first, second = read_header(one.text), read_header(other.text)
        assert dict(first.properties) == dict(second.properties)
        assert _lines(one.text[first.body_start :]) == _lines(other.text[second.body_start :])


@given(size=st.integers(0, 40), seed=st.integers(0, 10**9))
def test_a_clean_merge_holds_what_either_added_and_nothing_that_either_removed(
    size: int, seed: int
) -> None:
    lines = [f"line {k}" for k in range(size)]
    ours, added, removed = _edited(lines, "ours", seed)
    theirs, added_too, removed_too = _edited(lines, "theirs", seed + 1)
    texts = ["".join(f"{line}\n" for line in each) for each in (lines, ours, theirs)]
    merged = merge(*texts)
    there = set(merged.text.split("\n"))
    assert added | added_too <= there
    if merged.is_clean:
        assert not (removed | removed_too) & there
    else:
        assert f"{'<' * 7} ours" in there


@given(
    one=st.lists(st.sampled_from("abcdefgh"), max_size=60),
    other=st.lists(st.sampled_from("abcdefgh"), max_size=60),
)
def test_matched_lines_are_equal_and_never_cross(one: list[str], other: list[str]) -> None:
    found = match_lines(one, other)
    pairs = [(at, there) for at, there in enumerate(found) if there >= 0]
    assert all(one[at] == other[there] for at, there in pairs)
    assert [there for _, there in pairs] == sorted({there for _, there in pairs})
    assert match_lines(one, one) == list(range(len(one)))


def _lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
