"""Conversations in LoCoMo's shape become notes and questions."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from simplemem.config import Settings
from simplemem.errors import Invalid, NotFound
from simplemem.evaluate.asking import measure
from simplemem.evaluate.locomo import write_locomo
from simplemem.evaluate.pairs import Pair
from simplemem.evaluate.scratch import read_vault
from simplemem.note.note import read_note

DATA: dict[str, Any] = {
    "docs": [
        {"id": "c0_s1", "date": "8 May 2023", "turns": [["Ann", 'I adopted\na "spaniel".'], ["Ben", "Lovely."]]},
        {"id": "c0:s2", "date": "9 May 2023", "turns": [["Ann", "The violin lesson went well."]]},
    ],
    "queries": [
        {"query": "Which dog did Ann adopt, a spaniel?", "gold": ["c0_s1"], "category": 4},
        {"query": "How was the violin lesson?", "gold": ["c0:s2"], "category": 2},
        {"query": "What about the moon?", "gold": [], "category": 5},
    ],
}


@pytest.mark.parametrize("packed", [False, True])
def test_a_session_is_a_note_and_a_turn_an_item(tmp_path: Path, packed: bool) -> None:
    file = tmp_path / "data.json"
    raw = json.dumps(DATA).encode()
    file.write_bytes(gzip.compress(raw) if packed else raw)
    questions = write_locomo(file, tmp_path / "vault")
    assert questions.pairs == (
        Pair("category 4", "Which dog did Ann adopt, a spaniel?", ("chats/c0_s1",)),
        Pair("category 2", "How was the violin lesson?", ("chats/c0-s2",)),
        Pair("category 5", "What about the moon?", ()),
    )
    note = read_note((tmp_path / "vault" / "chats" / "c0_s1.md").read_bytes())
    assert note.string("title") == "c0_s1 (8 May 2023)"
    assert (
        note.content.strip() == '# Chat session at 8 May 2023\n\n- **Ann:** I adopted a "spaniel".\n- **Ben:** Lovely.'
    )


def test_its_questions_are_asked_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / "data.json"
    file.write_text(json.dumps(DATA), encoding="utf-8")
    questions = write_locomo(file, tmp_path / "vault")
    settings = Settings.model_validate({"embed": {"provider": "none"}})
    read = read_vault(tmp_path / "vault", settings)
    measured = measure(read, questions.pairs, {"simplemem": settings}, lambda *_: "", grep=False)
    assert [each.mrr for each in measured.rows["simplemem"]] == [1, 1, 0]
    assert measured.skipped == 0


@pytest.mark.parametrize(
    "raw",
    [
        b"no json",
        b"\x1f\x8bbroken",
        b"[]",
        b'{"docs": []}',
        b'{"docs": [{"id": "a"}], "queries": []}',
        b'{"docs": [], "queries": []}',
        b"\xff\xfe",
    ],
)
def test_another_shape_is_refused_with_the_name_of_the_file(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "data.json").write_bytes(raw)
    with pytest.raises(Invalid, match=r"data\.json"):
        write_locomo(tmp_path / "data.json", tmp_path / "vault")


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"data\.json"):
        write_locomo(tmp_path / "data.json", tmp_path / "vault")
