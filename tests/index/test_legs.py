"""Words in a large vault find what they find in a small one: the same notes, with the same scores."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import apsw
import pytest

from simplemem.index import door, legs, notes, text
from simplemem.index.database import Database, open_database
from simplemem.index.door import Match, Question, Stat, Term
from simplemem.index.legs import LEGS, Counts
from simplemem.index.notes import Rows
from simplemem.note.note import read_note

WORDS = [
    f"{first}{second}{third}"
    for first in "bdfgk"
    for second in ("ara", "ele", "ino", "ulu")
    for third in "mnprst"
]
NOTES = 240
ALL = Counts(0)  # every row is scored


def a_note(chance: random.Random) -> str:
    """A title and some paragraphs, a few words in most notes and most words in few."""
    lengths = [chance.randint(3, 25) for _ in range(chance.randint(1, 4))]
    drawn = [
        " ".join(WORDS[int(len(WORDS) ** chance.random()) - 1] for _ in range(length))
        for length in lengths
    ]
    return f"# {drawn[0][:20].strip()}\n\n" + "\n\n".join(drawn) + "\n"


def put(db: apsw.Connection, name: str, body: str) -> int:
    note = read_note(body.encode())
    read = text.understood(f"{name}.md", note, Stat(0, 0, 0))
    known = notes.known(db, read.path)
    rows = Rows(db)
    note_id = notes.put(rows, None if known is None else known.id, read, None, None)
    text.put(rows, note_id, read, new=known is None)
    rows.write()
    return note_id


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """Notes that no test changes."""
    database = open_database(tmp_path_factory.mktemp("legs") / "index.db", nullcontext)
    chance = random.Random(3)
    with database.writing() as db:
        for k in range(NOTES):
            put(db, f"n{k}", a_note(chance))
    yield database
    database.close()


def asked(chance: random.Random) -> list[Term]:
    words = dict.fromkeys(
        WORDS[int(len(WORDS) ** chance.random()) - 1] for _ in range(chance.randint(2, 6))
    )
    return [Term((word,)) for word in words]


def phrases_asked(chance: random.Random) -> list[Term]:
    pairs = dict.fromkeys((chance.choice(WORDS[:6]), chance.choice(WORDS[:6])) for _ in range(4))
    return [Term(pair) for pair in pairs]


def scores(found: list[Match]) -> dict[tuple[int, int], float]:
    return {(match.note, match.place): match.score for match in found}


@pytest.mark.parametrize("name", LEGS)
@pytest.mark.parametrize("ask", [asked, phrases_asked])
def test_chosen_notes_have_the_scores_that_sqlite_gives_them(
    filled: Database, name: str, ask: object
) -> None:
    chance = random.Random(5)
    counts = Counts(NOTES, most_scored=0)
    seen = 0
    with filled.reading() as db:
        for _ in range(60):
            terms = ask(chance)  # type: ignore[operator]
            for ids in ([], [7], chance.sample(range(1, NOTES + 1), 25), list(range(1, NOTES + 1))):
                found = counts.leg(db, name, terms, 10_000, ids)
                assert scores(found) == pytest.approx(scores(ALL.leg(db, name, terms, 10_000, ids)))
                assert [match.score for match in found] == sorted(
                    (match.score for match in found), reverse=True
                )
                seen += len(found)
    assert seen > 500


@pytest.mark.parametrize("limit", [5, NOTES])
@pytest.mark.parametrize("narrowed", [False, True])
def test_rare_words_choose_and_all_words_rank(
    filled: Database, narrowed: bool, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever holds one of the rarest words is found, with its full score; what holds none is passed over."""
    monkeypatch.setattr(legs, "_CHOSEN", 1)
    monkeypatch.setattr(legs, "_FEW", 0)
    monkeypatch.setattr(legs, "_WORTH", 0)
    chance = random.Random(8)
    counts = Counts(NOTES, most_scored=0)
    passed_over = 0
    with filled.reading() as db:
        for _ in range(60):
            terms = asked(chance)
            ids = chance.sample(range(1, NOTES + 1), 150) if narrowed else None
            full = ALL.leg(db, "note", terms, NOTES, ids)
            found = counts.leg(db, "note", terms, limit, ids)
            rarest = sorted(
                terms, key=lambda term: counts.of(db, "note_text", legs.fts_terms([term])[0])
            )
            rare = ALL.leg(db, "note", rarest[:2], NOTES, ids)
            holding = {match.note for match in rare}
            wanted = [match for match in full if match.note in holding]
            assert [match.score for match in found] == pytest.approx(
                [match.score for match in wanted[:limit]]
            )
            of_found = {(match.note, 0): scores(wanted)[match.note, 0] for match in found}
            assert scores(found) == pytest.approx(of_found)
            passed_over += len(full) - len(wanted)
    assert passed_over > 500  # or nothing was chosen, and everything scored


@pytest.mark.parametrize("narrowed", [False, True])
def test_frequent_words_pass_no_note_over_where_all_can_be_scored(
    filled: Database, narrowed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(legs, "_FEW", 0)
    frequent = [Term((word,)) for word in WORDS[:7]]
    ids = list(range(1, NOTES, 2)) if narrowed else None
    with filled.reading() as db:
        found = Counts(NOTES, most_scored=0).leg(db, "note", frequent, NOTES, ids)
        assert found == ALL.leg(db, "note", frequent, NOTES, ids) and len(found) > (
            100 if narrowed else 200
        )


@pytest.mark.parametrize("groups", [2, 3])
@pytest.mark.parametrize("narrowed", [False, True])
def test_of_frequent_words_those_notes_rank_that_hold_one_of_each_group(
    filled: Database, narrowed: bool, groups: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With their full scores; where too few notes do, all are scored after all."""
    monkeypatch.setattr(legs, "_CHOSEN", 10)
    monkeypatch.setattr(legs, "_FEW", 0)
    monkeypatch.setattr(legs, "_MOST_NOTES", 0)
    monkeypatch.setattr(legs, "_WORTH", 1_000)
    monkeypatch.setattr(legs, "_IN_PAIRS", 0 if groups == 3 else NOTES)
    frequent = [Term((word,)) for word in WORDS[:7]]
    ids = list(range(1, NOTES, 2)) if narrowed else None
    counts = Counts(NOTES, most_scored=0)
    with filled.reading() as db:
        full = ALL.leg(db, "note", frequent, NOTES, ids)
        found = counts.leg(db, "note", frequent, 50, ids)
        dealt = sorted(
            frequent, key=lambda term: counts.of(db, "note_text", legs.fts_terms([term])[0])
        )
        each = [
            {m.note for m in ALL.leg(db, "note", dealt[k::groups], NOTES, ids)}
            for k in range(groups)
        ]
        holding = set.intersection(*each)
        assert 10 <= len(holding) < len(full)
        assert scores(found) == pytest.approx(
            scores([match for match in full if match.note in holding][:50])
        )
        rare = [Term((word,)) for word in WORDS[-3:]]
        few = counts.leg(db, "note", rare, NOTES, ids)  # no note holds all three
        assert few == ALL.leg(db, "note", rare, NOTES, ids) != []


def test_blocks_that_are_sought_note_by_note_have_the_same_scores(
    filled: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(12)
    counts = Counts(NOTES, most_scored=0)
    seen = 0
    with filled.reading() as db:
        for _ in range(20):
            terms, ids = asked(chance), chance.sample(range(1, NOTES + 1), 40)
            for limit in (5, 10_000):
                monkeypatch.setattr(legs, "_A_SEEK", 1_000_000)
                walked = counts.leg(db, "block", terms, limit, ids)
                monkeypatch.setattr(legs, "_A_SEEK", 0)
                sought = counts.leg(db, "block", terms, limit, ids)
                assert scores(sought) == pytest.approx(scores(walked))
                seen += len(sought)
    assert seen > 100


def test_words_that_most_notes_hold_are_not_scored_and_no_note_is_passed_over(
    filled: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BM25 gives them nothing, and in a large vault they are nearly all of the entries."""
    monkeypatch.setattr(door, "FEW_NOTES", 30)
    expressions: list[str] = []
    best = legs._best

    def noted(
        db: apsw.Connection, name: str, match: str, *more: object, **rest: object
    ) -> list[Match]:
        expressions.append(match)
        return best(db, name, match, *more, **rest)  # type: ignore[arg-type]

    monkeypatch.setattr(legs, "_best", noted)
    chance, common = random.Random(8), Term((WORDS[0],))
    with filled.reading() as db:
        assert 2 * Counts(NOTES).of(db, "note_text", f'"{WORDS[0]}"') > NOTES
        for _ in range(40):
            terms = [common, *asked(chance)]
            every = ALL.leg(db, "note", terms, NOTES, None)
            expressions.clear()
            found, *_ = Counts(NOTES, most_scored=90).rank(
                db, Question(tuple(terms), notes=20, closer=10), None
            )
            assert [match.score for match in found] == pytest.approx(
                [match.score for match in every[:20]], abs=1e-4
            )
            if any(
                2 * Counts(NOTES).of(db, "note_text", *legs.fts_terms([term])) <= NOTES
                for term in terms
            ):
                assert f'"{WORDS[0]}"' not in expressions[0]


def test_notes_that_are_gone_have_no_say_in_how_words_are_scored(tmp_path: Path) -> None:
    database = open_database(tmp_path / "index.db", nullcontext)
    chance = random.Random(6)
    with database.writing() as db:
        made = [put(db, f"n{k}", a_note(chance)) for k in range(60)]
        for note_id in made[:50]:
            text.remove(db, note_id)
            notes.remove(db, note_id)
    with database.reading() as db:
        for most_scored in (60, 27):  # ten notes are few, whatever their ids
            counts = Counts(10, most_scored)
            counts.leg(db, "note", asked(chance), 20, None)
            assert bool(counts._of) == (most_scored == 27)
    database.close()


def test_among_very_many_notes_the_forms_of_words_score_as_among_few(filled: Database) -> None:
    chance = random.Random(11)
    words = chance.sample(WORDS, 3)
    stems = [Term((chance.choice(WORDS),), stem_of=(word,)) for word in words]
    asked = [*(Term((word,)) for word in words), *stems]
    with filled.reading() as db:
        few = scores(ALL.leg(db, "note", asked, NOTES, None))
        many = scores(Counts(NOTES, most_scored=0).leg(db, "note", asked, 20, None))
    assert many
    assert many == pytest.approx({row: few[row] for row in many})
