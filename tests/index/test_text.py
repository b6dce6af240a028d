"""The words of a note are found where they stand, in every script, and nothing of them stays behind."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from index.terms.vault_of_words import term_index

from simplemem.index.api import Stat
from simplemem.index.engine import Connection
from simplemem.index.notes import PendingRows
from simplemem.index.sqlite.engine import SqliteEngine, open_engine
from simplemem.index.terms.tokens import NoteTokens, SegmentBuilder, TextTokens, tokenize
from simplemem.index.terms.writer import add_notes, remove_note
from simplemem.index.text import parse_note, put_text
from simplemem.note.note import read_note
from simplemem.note.words import searchable, unique_words
from simplemem.search.query import read_query

Write = Callable[[str, str | bytes], Path]

# Latin to Cyrillic, Hebrew to Devanagari, Thai, punctuation and signs, kana, Han, Hangul, emoji
BLOCKS = [(0x20, 0x4FF), (0x5D0, 0x97F), (0xE01, 0xE5B), (0x1E00, 0x27BF), (0x3040, 0x30FF), (0x4E00, 0x9FA5),
          (0xAC00, 0xD7A3), (0x1F300, 0x1FAFF)]  # fmt: skip


def is_old_letter_or_any_sign(character: str) -> bool:
    """SQLite and Python need not agree on how letters are folded that came after Unicode 3.2."""
    return unicodedata.ucd_3_2_0.category(character) != "Cn" or unicodedata.category(
        character
    ).startswith("S")


ALPHABET = st.one_of(*(st.characters(min_codepoint=a, max_codepoint=b) for a, b in BLOCKS)).filter(
    is_old_letter_or_any_sign
)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SqliteEngine]:
    """An index of its own, with nothing in it."""
    opened = open_engine(tmp_path / "index.db", nullcontext)
    yield opened
    opened.close()


def put(db: Connection, note_id: int, body: str, path: str = "Note.md") -> list[tuple[int, str]]:
    new = db.execute("SELECT 1 FROM places WHERE id >> 20 = ?", (note_id,)).fetchone() is None
    rows = PendingRows(db)
    missing = put_text(
        rows, note_id, parse_note(path, read_note(body.encode()), Stat(0, 0, 0)), new=new
    )
    rows.write()
    return missing


def found(
    db: Connection, question: str, leg: str = "note", ids: list[int] | None = None
) -> list[int]:
    terms = read_query(question).terms()
    if leg == "note":
        return list(term_index(db).best_notes(db, terms, 50, ids))
    return [match.note for match in term_index(db).rank_blocks(db, terms, 50, ids)]


@pytest.mark.parametrize("leg", ["note", "block"])
@pytest.mark.parametrize(
    ("body", "question"),
    [
        ("The cranes were repaired.", "repair crane"),
        ("昨日私は京都に行きました。", "京都"),
        ("図書館で勉強した。", "勉強"),
        ("我们决定在上海港口使用氢气。", "上海"),
        ("我们决定在上海港口使用氢气。", "氢气"),
        ("한국어를 공부하고 있습니다.", "한국"),
        ("서울에서 만나요", "서울"),
        ("ฉันชอบดื่มชาทุกวัน", "ชา"),
        ("ฉันชอบดื่มน้ำทุกวัน", "น้ำ"),
        ("Le café de l'été", "cafe ete"),
        ("Le cafe\u0301 du coin", "café"),
        ("un cafe sans accent", "CAFÉ"),
        ("Die Straße ist groß.", "straße"),
        ("Die Straße ist groß.", "STRAßE"),
        ("Ιστορία του Οδυσσέως", "ΙΣΤΟΡΊΑ"),
        ("Привет из Москвы", "привет"),
        ("मुझे हिन्दी पसंद है", "हिन्दी"),
        ("version 38.101 of foo/bar in C++", "foo/bar"),
    ],
)
def test_a_word_inside_a_sentence_is_found(
    database: SqliteEngine, leg: str, body: str, question: str
) -> None:
    with database.writing() as db:
        put(db, 1, body)
        put(db, 2, "Something else altogether, 別の話, 다른, อื่น.")
        assert found(db, question, leg) == [1]


@pytest.mark.parametrize(
    ("word", "written"),
    [
        ("제주도", "제주도 여행"),
        ("ガラス", "ガラスの器"),
        ("Zürich", "nach Zürich"),
        ("Việt", "Việt Nam"),
    ],
)
def test_how_a_system_writes_accents_and_syllables_makes_no_difference(
    database: SqliteEngine, word: str, written: str
) -> None:
    with database.writing() as db:
        for form_of_note in ("NFC", "NFD"):
            put(db, 1, unicodedata.normalize(form_of_note, written))
            for form_of_question in ("NFC", "NFD"):
                assert found(db, unicodedata.normalize(form_of_question, word)) == [1]


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(ALPHABET, max_size=40))
@example("Straße weiß daß")
@example("ﬁnal ﬂoor")
@example("Ὀδυσσεύς ΟΔΥΣΣΕΎΣ ὁδός")
@example("İstanbul IŞIK ışık")
@example("ǅungla ŉ ẞ")
@example("my robot🤖 likes 🥑avocado")
@example("東京都 서울에서 น้ำชา")
@example("´")
@example("a ´ b ´")
def test_a_note_is_found_by_every_word_of_its_own(database: SqliteEngine, body: str) -> None:
    with database.writing() as db:
        remove_note(db, 1)
        words = TextTokens(tokenize(searchable(body)))
        builder = SegmentBuilder()
        builder.add(NoteTokens(1, TextTokens(()), TextTokens(()), [words]))
        add_notes(db, builder)
        for word in unique_words(body):
            assert found(db, word) == [1], word


def test_the_file_name_is_searched_where_the_title_is_another(database: SqliteEngine) -> None:
    with database.writing() as db:
        body = "---\ntitle: Minutes\ndescription: of the assembly\naliases: [Thing]\n---\nBody.\n"
        put(db, 1, body, "x/2026-01-24 Skovgaard.md")
        for question in ("skovgaard", "minutes", "assembly", "thing"):
            assert found(db, question) == [1], question


def test_only_texts_without_a_vector_are_given_to_the_embedder(database: SqliteEngine) -> None:
    with database.writing() as db:
        asked = put(db, 1, "# One\n\nalpha\n\nbeta\n")
        assert {line for _, text_ in asked for line in text_.split("\n")} >= {"alpha", "beta"}
        db.vectors.create(1)
        db.vectors.write((id_, b"v") for id_, _ in asked)
        assert put(db, 1, "---\nrating: 5\n---\n# One\n\nalpha\n\nbeta\n") == []
        again = [text_ for _, text_ in put(db, 1, "# One\n\nalpha\n\ngamma\n")]
        assert "One\ngamma" in again and "One\nalpha" not in again
