"""Which questions a vault gives: of every kind, the same for the same seed, none that means many notes."""

from __future__ import annotations

import os
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from simplemem.config import Settings
from simplemem.evaluate.pairs import KINDS, Held, Pair
from simplemem.evaluate.sampling import sample
from simplemem.evaluate.scratch import Read, read_vault
from tests.evaluate.conftest import sources_of


def of_kind(pairs: tuple[Pair, ...], kind: str) -> dict[str, Pair]:
    return {pair.question: pair for pair in pairs if pair.kind == kind}


@pytest.fixture
def pairs(read: Read) -> tuple[Pair, ...]:
    return sample(read.sources, list(read.times), 100, 1).pairs


def ask(texts: dict[str, str], size: int = 100) -> tuple[Pair, ...]:
    return sample(sources_of(texts), list(texts), size, 1).pairs


LONG = "Here stand enough words to be found by, on a subject of their own."


def test_every_kind_is_asked_for(pairs: tuple[Pair, ...]) -> None:
    assert {pair.kind for pair in pairs} == set(KINDS)


def test_a_title_is_asked_with_its_heading_held_out(pairs: tuple[Pair, ...]) -> None:
    titles = of_kind(pairs, "title")
    assert titles["Kettle repair"] == Pair(
        "title",
        "Kettle repair",
        ("Kettle repair",),
        (Held("Kettle repair", "title", "Kettle repair"), Held("Kettle repair", "heading", "Kettle repair")),
    )


def test_an_alias_whose_words_are_nowhere_else_asks_nothing(pairs: tuple[Pair, ...]) -> None:
    assert ask({"a.md": f"---\naliases: [Samovar clinic]\n---\n{LONG}"}) == ()
    asked = ask({"a.md": f"---\naliases: [Samovar clinic]\n---\nThe samovar hisses. {LONG}"})
    assert [(pair.kind, pair.question) for pair in asked if pair.kind == "alias"] == [("alias", "Samovar clinic")]


def test_what_a_link_shows_is_asked_of_the_note_it_leads_to(pairs: tuple[Pair, ...]) -> None:
    links = of_kind(pairs, "link")
    assert set(links) == {"boiling vessel handbook", "string warm-up routine", "the metronome"}
    assert links["boiling vessel handbook"].gold == ("Kettle repair",)
    assert links["boiling vessel handbook"].held_out == (Held("garden/Tomatoes", "link", "boiling vessel handbook"),)


def test_a_link_that_shows_the_title_is_no_question_of_its_own() -> None:
    asked = ask(
        {
            "Samovar.md": f"The samovar hisses. {LONG}",
            "b.md": "Our [samovar](Samovar.md) hums.",
        }
    )
    assert of_kind(asked, "link") == {}


def test_a_heading_that_many_notes_have_is_not_asked(pairs: tuple[Pair, ...]) -> None:
    assert set(of_kind(pairs, "heading")) == {"Thermostat replacement steps"}
    many = {
        f"{name}.md": f"# {name}\n\n## Spare parts\n\nAbout {name} only. {LONG}"
        for name in ("ape", "bee", "cow", "doe")
    }
    assert of_kind(ask(many), "heading") == {}


def test_a_heading_that_few_notes_have_is_answered_by_all_of_them() -> None:
    few = {f"{name}.md": f"## Spare parts\n\nAbout {name} only. {LONG}" for name in ("ape", "bee", "cow")}
    pair = of_kind(ask(few), "heading")["Spare parts"]
    assert pair.gold == ("ape", "bee", "cow")
    assert pair.held_out == tuple(Held(name, "heading", "Spare parts") for name in pair.gold)


def test_a_date_is_no_question(pairs: tuple[Pair, ...]) -> None:
    assert not any("2026" in pair.question for pair in pairs if pair.kind == "title")


def test_a_sentence_that_another_note_says_too_is_not_asked(pairs: tuple[Pair, ...]) -> None:
    said = "Blight arrives with wet August weather and spoils green fruit overnight."
    assert said in of_kind(pairs, "sentence")
    around = "Wear gloves against blight when pruning old orchard trees in winter."
    twice = {"a.md": f"{around} {said}", "b.md": f"{said.replace('spoils', 'ruins')} Weather is blight enough."}
    assert not any(said.startswith(question[:30]) for question in of_kind(ask(twice), "sentence"))
    assert said in of_kind(ask({"a.md": twice["a.md"]}), "sentence")


@pytest.mark.parametrize("title", ['The "Samovar"', "Samovar -kettle", "Samovar tag:tea"])
def test_what_a_search_would_take_for_a_filter_is_not_asked(title: str) -> None:
    asked = ask({"a.md": f"---\ntitle: '{title}'\n---\nThe samovar hisses. {LONG}"})
    assert title not in of_kind(asked, "title")
    plainly = title.translate(str.maketrans('":-', "   ")).strip()
    assert of_kind(ask({"a.md": f"---\ntitle: '{plainly}'\n---\nThe samovar hisses. {LONG}"}), "title")


def test_a_note_of_which_nothing_would_be_left_is_not_asked_for() -> None:
    assert ask({"Samovar.md": "The samovar hisses."}) == ()


def test_a_note_whose_header_nobody_may_rewrite_is_not_asked_by_its_title() -> None:
    assert of_kind(ask({"Samovar.md": f"---\ntitle: [unclosed\n---\nThe samovar hisses. {LONG}"}), "title") == {}


def test_the_same_seed_gives_the_same_questions_and_another_seed_others(notes: Path) -> None:
    def taken(seed: int) -> tuple[Pair, ...]:
        read = read_vault(notes, Settings())
        return sample(read.sources, list(read.times), 12, seed).pairs

    for file in notes.rglob("*.md"):
        os.utime(file)  # what is asked does not hang on when a note was touched
    assert taken(3) == taken(3)
    assert len({taken(seed) for seed in range(5)}) > 1


def test_there_are_as_many_as_wanted_and_the_kinds_share_alike(read: Read) -> None:
    counted = Counter(pair.kind for pair in sample(read.sources, list(read.times), 6, 1).pairs)
    assert counted == dict.fromkeys(KINDS, 1)
    many = Counter(pair.kind for pair in sample(read.sources, list(read.times), 30, 1).pairs)
    assert max(many.values()) <= 8  # half as many again as a sixth


def test_no_note_is_asked_for_much_more_often_than_others(pairs: tuple[Pair, ...]) -> None:
    sentences = Counter(pair.gold[0] for pair in pairs if pair.kind == "sentence")
    assert max(sentences.values()) <= 3


def test_pairs_stand_in_the_order_of_kinds_and_names(pairs: tuple[Pair, ...]) -> None:
    places = [(KINDS.index(pair.kind), pair.gold[0]) for pair in pairs]
    assert all(before <= after for before, after in pairwise(places))


def test_notes_that_take_no_part_in_recall_are_not_asked_for(notes: Path) -> None:
    (notes / ".obsidian").mkdir()
    (notes / ".obsidian" / "app.json").write_text('{"userIgnoreFilters": ["garden/"]}', encoding="utf-8")
    read = read_vault(notes, Settings())
    gold = {name for pair in sample(read.sources, list(read.times), 100, 1).pairs for name in pair.gold}
    assert gold and not any(name.startswith("garden/") for name in gold)
