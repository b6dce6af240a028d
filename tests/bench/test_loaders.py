"""Benchmarks are read as they are published, and no name of a note gives the evidence away."""

from __future__ import annotations

import gzip
import json
import lzma
from pathlib import Path
from typing import Any

import pytest

from bench.retrieval.loaders import (
    LANGUAGES_FILE,
    WrongFormat,
    load_beam,
    load_languages,
    load_locomo,
    load_longmemeval,
)


def write_json(file: Path, data: Any) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(data), encoding="utf-8")
    return file


OFFICIAL_LONGMEMEVAL = [
    {
        "question_id": "q1",
        "question_type": "single-session-user",
        "question": "Where is the anchor?",
        "answer": "In the shed",
        "question_date": "2023/05/30 (Tue) 10:18",
        "haystack_session_ids": ["answer_q1_1", "other_7"],
        "haystack_dates": ["2023/05/20 (Sat) 07:47", "2023/05/21 (Sun) 21:44"],
        "haystack_sessions": [
            [
                {"role": "user", "content": "The anchor is in the shed.", "has_answer": True},
                {"role": "assistant", "content": "Noted."},
            ],
            [{"role": "user", "content": "Tea, please."}],
        ],
        "answer_session_ids": ["answer_q1_1"],
    },
    {
        "question_id": "q2_abs",
        "question_type": "single-session-user",
        "question": "Where is the kite?",
        "answer": "Not mentioned",
        "question_date": "2023/05/30 (Tue) 10:18",
        "haystack_session_ids": ["answer_q1_1"],
        "haystack_dates": ["2023/05/22 (Mon) 07:47"],
        "haystack_sessions": [[{"role": "user", "content": "The anchor is in the shed."}]],
        "answer_session_ids": ["answer_q1_1"],
    },
]


def test_longmemeval_as_it_is_published(tmp_path: Path) -> None:
    benchmark = load_longmemeval(write_json(tmp_path / "s.json", OFFICIAL_LONGMEMEVAL))
    question, absent = benchmark.questions
    evidence, other = benchmark.haystacks["q1"]

    assert question.evidence == {evidence.name}
    assert evidence.text == (
        "---\ncreated: 2023-05-20T07:47:00\n---\n\n"
        "**User:** The anchor is in the shed.\n\n**Assistant:** Noted.\n"
    )
    assert other.lines == ["**User:** Tea, please."]
    assert not absent.evidence
    assert "answer" not in evidence.name


def test_a_session_has_the_date_of_its_haystack_and_is_once_in_the_corpus(tmp_path: Path) -> None:
    benchmark = load_longmemeval(write_json(tmp_path / "s.json", OFFICIAL_LONGMEMEVAL))
    first = benchmark.haystacks["q1"][0]
    second = benchmark.haystacks["q2_abs"][0]
    assert first.name == second.name
    assert first.text != second.text
    assert benchmark.corpus == benchmark.haystacks["q1"]


def test_a_part_of_longmemeval_with_shared_sessions(tmp_path: Path) -> None:
    part = {
        "sessions": {"s1": {"date": "", "turns": [["user", "The anchor is in the shed."]]}},
        "questions": [
            {
                "id": "q1",
                "type": "multi-session",
                "question": "Where is the anchor?",
                "haystack": ["s1", "s1"],
                "dates": ["2023/05/20 (Sat) 07:47", "2023/05/21 (Sun) 07:47"],
                "evidence": ["s1"],
            }
        ],
    }
    file = tmp_path / "part.json.xz"
    file.write_bytes(lzma.compress(json.dumps(part).encode()))
    benchmark = load_longmemeval(file)
    assert [document.name for document in benchmark.haystacks["q1"]] == ["s1"]
    assert benchmark.questions[0].evidence == {"s1"}


OFFICIAL_LOCOMO = [
    {
        "sample_id": "conv-26",
        "conversation": {
            "speaker_a": "Ann",
            "speaker_b": "Ben",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "Ann", "dia_id": "D1:1", "text": "I bought\na kayak."},
                {"speaker": "Ben", "dia_id": "D1:2", "text": "Nice.", "blip_caption": "a kayak"},
            ],
            "session_2_date_time": "2 pm on 9 May, 2023",
            "session_2": [{"speaker": "Ben", "dia_id": "D2:1", "text": "I sold my violin."}],
        },
        "qa": [
            {
                "question": "What did Ann buy?",
                "answer": "a kayak",
                "evidence": ["D1:1"],
                "category": 4,
            },
            {"question": "What changed?", "answer": "", "evidence": ["D1:1; D:2:1"], "category": 1},
            {"question": "Who?", "adversarial_answer": "Ann", "evidence": [], "category": 5},
        ],
    }
]


def test_locomo_as_it_is_published(tmp_path: Path) -> None:
    benchmark = load_locomo(write_json(tmp_path / "locomo10.json", OFFICIAL_LOCOMO))
    notes = benchmark.haystacks["locomo-c00"]
    assert [note.name for note in notes] == ["locomo-c00-s01", "locomo-c00-s02"]
    assert notes[0].text == (
        '---\ntitle: "locomo-c00-s01 (1:56 pm on 8 May, 2023)"\n---\n\n'
        "# Chat session at 1:56 pm on 8 May, 2023\n\n"
        "- **Ann:** I bought a kayak.\n- **Ben:** Nice.\n"
    )
    single, several = benchmark.questions
    assert (single.kind, single.evidence) == ("4 single-hop", {"locomo-c00-s01"})
    assert several.evidence == {"locomo-c00-s01", "locomo-c00-s02"}


def test_our_half_of_locomo_gives_the_notes_of_the_published_file(tmp_path: Path) -> None:
    half = {
        "docs": [
            {
                "id": "locomo-c00-s01",
                "date": "1:56 pm on 8 May, 2023",
                "turns": [["Ann", "I bought\na kayak."], ["Ben", "Nice."]],
            },
        ],
        "queries": [{"query": "What did Ann buy?", "category": 4, "gold": ["locomo-c00-s01"]}],
    }
    file = tmp_path / "half.json.gz"
    file.write_bytes(gzip.compress(json.dumps(half).encode()))
    benchmark = load_locomo(file)
    published = load_locomo(write_json(tmp_path / "locomo10.json", OFFICIAL_LOCOMO))
    assert benchmark.corpus == published.corpus[:1]
    assert benchmark.questions == published.questions[:1]


def beam_folder(folder: Path) -> Path:
    """Write a chat as BEAM publishes it: batches of turns of messages, and probing questions."""
    messages = [
        {
            "role": "user",
            "id": 0,
            "time_anchor": "March-15-2024",
            "content": "I want a kayak. ->-> 1,1",
        },
        {"role": "assistant", "id": 1, "content": "Which one?"},
        {"role": "user", "id": 2, "content": "The blue one."},
    ]
    later = [{"role": "user", "id": 3, "content": "I sold it. ->-> 2,1"}]
    chat = [
        {"batch_number": 1, "turns": [messages]},
        {"batch_number": 2, "time_anchor": "April-02-2024", "turns": [later]},
    ]
    questions = {
        "abstention": [{"question": "What is my cat called?", "rubric": []}],
        "information_extraction": [{"question": "What do I want?", "source_chat_ids": [0, 1]}],
        "contradiction_resolution": [
            {
                "question": "Do I have a kayak?",
                "source_chat_ids": {"first_statement": [2], "second_statement": [3]},
            }
        ],
        "summarization": [{"question": "Sum it up.", "rubric": []}],
    }
    write_json(folder / "1" / "chat.json", chat)
    write_json(folder / "1" / "probing_questions" / "probing_questions.json", questions)
    return folder


def test_beam_as_it_is_published(tmp_path: Path) -> None:
    benchmark = load_beam(beam_folder(tmp_path))
    first, second, third = benchmark.haystacks["1"]
    assert (
        first.text
        == "# Chat at March-15-2024\n\n**User:** I want a kayak.\n\n**Assistant:** Which one?\n"
    )
    assert third.text == "# Chat at April-02-2024\n\n**User:** I sold it.\n"
    evidence = {question.kind: question.evidence for question in benchmark.questions}
    assert evidence == {
        "abstention": frozenset(),
        "information_extraction": {first.name},
        "contradiction_resolution": {second.name, third.name},
    }


def test_our_languages_ask_each_fact_in_its_language_and_the_english_ones_in_all() -> None:
    benchmark = load_languages(LANGUAGES_FILE)
    languages = len(benchmark.haystacks)
    facts = len(benchmark.haystacks["en"])
    assert len(benchmark.questions) == facts * (2 * languages - 1)
    assert len(benchmark.corpus) == facts * languages
    names = {note.name for note in benchmark.corpus}
    assert all(question.evidence <= names for question in benchmark.questions)


@pytest.mark.parametrize("load", [load_longmemeval, load_locomo])
def test_a_file_of_another_format_is_refused(load: Any, tmp_path: Path) -> None:
    with pytest.raises(WrongFormat):
        load(write_json(tmp_path / "other.json", {"rows": []}))


def test_a_folder_without_chats_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WrongFormat):
        load_beam(tmp_path)
