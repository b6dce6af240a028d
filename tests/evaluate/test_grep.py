"""The row of grep is what grep would have found."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from simplemem.evaluate.grep import Grep

TEXTS = {
    "b": "Tea and TEA on one line.\nMore tea.\n",
    "a": "tea\nno leaf\ncoffee",
    "c": "nothing\n",
    "teapot": "steam\n",  # grep looks inside words
    "d": "",
}


def test_notes_are_ranked_by_the_lines_that_hold_a_word() -> None:
    grep = Grep(TEXTS)
    assert grep.lines("tea leaf", {}) == {"b": 2, "a": 2, "teapot": 1}
    assert grep.ranked("tea leaf", {}, 10) == ["a", "b", "teapot"]
    assert grep.ranked("tea leaf", {}, 1) == ["a"]


def test_words_that_only_hold_a_sentence_together_are_not_looked_for() -> None:
    assert Grep(TEXTS).lines("where is the tea on", {}) == {"b": 2, "a": 1, "teapot": 1}


def test_a_changed_note_is_looked_at_as_it_is_now() -> None:
    assert Grep(TEXTS).lines("tea", {"b": "coffee\n", "c": "tea\n"}) == {"a": 1, "c": 1, "teapot": 1}


def test_what_is_printed_are_the_lines_that_were_counted() -> None:
    printed = Grep(TEXTS).printed("tea", ["b", "a"], TEXTS)
    assert printed == "b.md:tea and tea on one line.\nb.md:more tea.\na.md:tea"


@pytest.mark.skipif(shutil.which("grep") is None, reason="grep is not installed")
@pytest.mark.parametrize("question", ["metronome thirds", "the kitchen", "limestone water coil", "straw", "xyzzy"])
def test_the_counts_are_those_of_the_program(notes: Path, question: str) -> None:
    files = sorted(notes.rglob("*.md"))
    texts = {file.relative_to(notes).with_suffix("").as_posix(): file.read_text(encoding="utf-8") for file in files}
    words = [word for word in question.split() if word != "the"]
    patterns = [part for word in words for part in ("-e", word)]
    ran = subprocess.run(["grep", "-icF", *patterns, *map(str, files)], capture_output=True, text=True, check=False)
    counts = (line.rsplit(":", 1) for line in ran.stdout.strip().split("\n"))
    told = {Path(path).relative_to(notes).with_suffix("").as_posix(): int(count) for path, count in counts}
    assert Grep(texts).lines(question, {}) == {name: count for name, count in told.items() if count}
