"""Patterns from a vault's settings: the answers of a backtracking engine, for linear work."""

from __future__ import annotations

import re
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simplemem.errors import Invalid
from simplemem.vault.patterns import compile_pattern

atoms = st.sampled_from(["a", "b", "B", ".", "/", r"\/", r"\.", r"\d", r"\W", "[ab]", "[^a]", "[a-c1]", r"[^\d/]"])
counts = st.sampled_from(["", "", "", "?", "*", "+", "{2}", "{1,3}", "{0,2}", "{2,}", "*?"])


def joined(parts: st.SearchStrategy[str], most: int) -> st.SearchStrategy[str]:
    item = st.tuples(parts, counts).map("".join)
    return st.lists(st.lists(item, max_size=most).map("".join), min_size=1, max_size=3).map("|".join)


# Small on purpose: the standard engine, which is asked for the right answer, may take a lifetime on larger ones.
groups = joined(atoms, 2).map(lambda inner: f"({inner})") | joined(atoms, 2).map(lambda inner: f"(?:{inner})")
patterns = st.tuples(st.sampled_from(["", "", "^"]), joined(atoms | groups, 3), st.sampled_from(["", "", "$"])).map(
    "".join
)


@settings(max_examples=400)
@given(pattern=patterns, texts=st.lists(st.text("abcB1./ ", max_size=7), min_size=1, max_size=5))
def test_a_pattern_finds_what_the_standard_engine_finds(pattern: str, texts: list[str]) -> None:
    compiled = compile_pattern(pattern)
    expected = re.compile(pattern, re.IGNORECASE | re.ASCII)
    for text in texts:
        assert compiled.search(text) == (expected.search(text) is not None), text


@pytest.mark.parametrize(
    "pattern", ["(a+)+$", "(a|a)*$", "(a*)*b", "a?" * 30 + "a" * 30 + "$", ".*.*.*.*.*x", "(.*a){12}b"]
)
def test_the_work_is_proportional_to_the_text(pattern: str) -> None:
    """A backtracking engine takes more than a lifetime on some of these. Lines run are counted, not time."""
    short, long = steps_of(pattern, 250), steps_of(pattern, 1_000)
    assert long < 6 * short


def steps_of(pattern: str, length: int) -> int:
    compiled = compile_pattern(pattern)
    lines = 0

    def count(*_: object) -> object:
        nonlocal lines
        lines += 1
        return count

    sys.settrace(count)  # type: ignore[arg-type]
    try:
        compiled.search("ab" * (length // 2) + "!")
    finally:
        sys.settrace(None)
    return lines


@pytest.mark.parametrize(
    ("pattern", "found", "missed"),
    [
        ("{{title}}", "Templates/{{Title}}.md", "title.md"),
        (r"\u0041bc\x2e", "abc.md", "abcd"),
        ("ÉTÉ", "un été", "ete"),
        ("a{0}b", "b", "a"),
        ("^$", "", "a"),
        ("[]", None, "anything"),
        ("[^]", "a", ""),
        (r"[\d\-x]", "a-b", "ab"),
        ("[a-]", "-", "b"),
        (r"[\d-z]", "-", "y"),
    ],
)
def test_patterns_mean_what_they_mean_in_javascript(pattern: str, found: str | None, missed: str) -> None:
    compiled = compile_pattern(pattern)
    assert found is None or compiled.search(found)
    assert not compiled.search(missed)


@pytest.mark.parametrize(
    "pattern",
    [
        "(?=a)",
        "(?!a)",
        "(?<=a)b",
        "(?<name>a)",
        r"(a)\1",
        r"\ba",
        r"\p{L}",
        "(a",
        "a)",
        "[a",
        "*a",
        "a**",
        "a{3,2}",
        "[z-a]",
        r"\u12",
        "\\",
        "a" * 501,
        "((a{999}){999}){999}",
        "(" * 200 + ")" * 200,
    ],
)
def test_what_is_not_supported_is_refused(pattern: str) -> None:
    with pytest.raises(Invalid) as refused:
        compile_pattern(pattern)
    assert refused.value.hint


@given(st.text("()[]{}*+?|^$.\\ab/-,123:!=<dxu", max_size=40))
def test_no_text_raises_anything_else(pattern: str) -> None:
    try:
        compiled = compile_pattern(pattern)
    except Invalid:
        return
    assert compiled.search("ab/a-1") in (True, False)
