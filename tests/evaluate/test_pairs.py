"""The file of questions: readable, whole, and refused with a sentence when it is not one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from simplemem.errors import Invalid, NotFound
from simplemem.evaluate.pairs import Held, Pair, Questions, in_order, read_questions, write_questions

SET = Questions(
    (
        Pair("title", "Élise’s kettle\u2028twice", ("a/b", "c"), (Held("a/b", "title", "Élise’s kettle"),)),
        Pair("my own", "Where is the spare key?", ("home/Keys",)),
    ),
    12,
    7,
)


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "new folder" / "eval.json"
    write_questions(file, SET)
    assert read_questions(file) == SET
    assert [found.name for found in file.parent.iterdir()] == ["eval.json"]


def test_a_person_can_read_and_edit_the_file(tmp_path: Path) -> None:
    file = tmp_path / "eval.json"
    write_questions(file, SET)
    text = file.read_text(encoding="utf-8")
    assert "Élise’s kettle" in text and '      "question": "Where is the spare key?",\n' in text
    data = json.loads(text)
    data["pairs"] = [{"kind": "mine", "question": "Who sings alto?", "gold": ["music/Choir"], "held_out": []}]
    file.write_text("\ufeff" + json.dumps(data), encoding="utf-8")
    assert read_questions(file).pairs == (Pair("mine", "Who sings alto?", ("music/Choir",)),)


def test_a_missing_file_is_told_with_the_command_that_makes_one(tmp_path: Path) -> None:
    with pytest.raises(NotFound) as failed:
        read_questions(tmp_path / "eval.json")
    assert "eval init" in failed.value.hint


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no json", "JSONDecodeError"),
        ("[]", "TypeError"),
        ('{"format": 1, "notes": 1}', "'pairs'"),
        ('{"format": 9, "notes": 1, "pairs": []}', "format 9"),
        ('{"format": 1, "notes": 1, "pairs": [{"kind": "x", "question": "?", "gold": [], "held_out": []}]}', "gold"),
        ('{"format": 1, "notes": 1, "pairs": [{"kind": "x", "question": 3, "gold": ["a"], "held_out": []}]}', "3"),
        (
            '{"format": 1, "notes": 1, "pairs": [{"kind": "x", "question": "q", "gold": ["a"], '
            '"held_out": [{"note": "a", "what": "smell", "text": "t"}]}]}',
            "'smell'",
        ),
    ],
)
def test_a_file_that_is_none_is_refused_with_what_is_wrong(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "eval.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(Invalid) as failed:
        read_questions(file)
    assert said in failed.value.message and str(file) in failed.value.message and failed.value.hint


def test_a_write_that_fails_leaves_the_file_that_was_there(tmp_path: Path) -> None:
    file = tmp_path / "eval.json"
    write_questions(file, SET)
    half_a_character = Questions((Pair("title", "\ud800", ("a",)),), 1)
    with pytest.raises(UnicodeEncodeError):
        write_questions(file, half_a_character)
    assert read_questions(file) == SET
    assert [found.name for found in tmp_path.iterdir()] == ["eval.json"]


def test_our_kinds_come_first_and_others_by_name() -> None:
    assert in_order({"zebra", "sentence", "title", "apple"}) == ["title", "sentence", "apple", "zebra"]
