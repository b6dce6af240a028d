"""What stands first and why: words, meaning and how much of a question one place covers, by numbers that explain
shows."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np
import pytest

from simplemem.errors import Invalid
from simplemem.index.api import BlockMatches, Matches
from simplemem.models import Filter
from simplemem.providers.word_vectors import WordLlama
from simplemem.search import rank
from simplemem.search.judgement import Coverage, Passages
from simplemem.search.rank import is_question, names_in
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

Write = Callable[[str, str | bytes], Path]


def ranked(store: EnhancedStore, query: str, mode: str = "text") -> list[str]:
    return [hit.name for hit in store.search(query, mode=mode, limit=50).hits]


def _passages(*texts: str) -> Passages:
    """Return the passages of a note that consists of some texts."""
    ends = list(accumulate(map(len, texts), initial=0))
    return Passages(texts, list(pairwise(ends)), lambda: "".join(texts))


def test_words_that_stand_together_beat_words_spread_over_a_long_note(
    plain_store: EnhancedStore, write: Write
) -> None:
    pad = "\n\n".join("Minutes of a meeting with many other subjects." for _ in range(40))
    write("spread.md", f"The anchor came first.\n\n{pad}\n\nThen spoke the treasurer.\n")
    write("together.md", f"{pad}\n\nThe treasurer sold the anchor.\n\nIt was so.\n")
    plain_store.sync()
    assert ranked(plain_store, "treasurer anchor")[0] == "together"


def test_equal_scores_come_in_order_of_name_every_time(store: EnhancedStore, write: Write) -> None:
    for name in ("d", "a", "c", "b"):
        write(f"x/{name}/Same.md", "The very same words.")
    store.sync()
    for mode in ("text", "hybrid", "semantic"):
        assert ranked(store, "same words", mode) == ["x/a/Same", "x/b/Same", "x/c/Same", "x/d/Same"]


def test_meaning_finds_what_shares_no_word_with_the_question(
    store: EnhancedStore, write: Write
) -> None:
    write("vet.md", "The puppy was taken to the veterinarian.")
    write("tax.md", "Income must be declared before April.")
    write("sea.md", "The tide comes in at noon.")
    store.sync()
    assert ranked(store, "dog doctor", "text") == []
    assert ranked(store, "dog doctor", "hybrid")[0] == "vet"
    assert ranked(store, "dog doctor", "semantic")[0] == "vet"


def test_a_setting_moves_the_balance_between_words_and_meaning(
    store: EnhancedStore, write: Write
) -> None:
    write("words.md", "Crane, crane, crane: feathers, eggs and long legs in the marsh.")
    write("meaning.md", "Hoisting machinery, derricks and winches for loading ships at the docks.")
    write("bees.md", "Honey and wax.")
    store.sync()
    for weight, alone in ((0.0, "semantic"), (1.0, "text")):
        settings = Settings.model_validate({"search": {"lexical_weight": weight}})
        with EnhancedStore(store.root, settings) as weighed:
            assert ranked(weighed, "crane", "hybrid") == ranked(store, "crane", alone)
    assert ranked(store, "crane", "semantic") != ranked(store, "crane", "text")


def test_a_limit_is_kept_and_none_below_one_is_taken(
    plain_store: EnhancedStore, write: Write
) -> None:
    for k in range(8):
        write(f"n{k}.md", "The crane.")
    plain_store.sync()
    assert len(plain_store.search("crane", limit=3).hits) == 3
    assert len(plain_store.search("crane").hits) == plain_store.settings.search.limit
    assert len(plain_store.search("crane", limit=10_000).hits) == 8
    with pytest.raises(Invalid):
        plain_store.search("crane", limit=0)


def test_an_empty_question_lists_the_newest_that_pass(
    plain_store: EnhancedStore, write: Write
) -> None:
    write("old.md", "---\nmodified: 2030-01-01T00:00:00\ntags: [x]\n---\na")
    write("new.md", "---\nmodified: 2031-01-01T00:00:00\ntags: [x]\n---\nb")
    write("other.md", "---\nmodified: 2032-01-01T00:00:00\n---\nc")
    plain_store.sync()
    for question in ("", "   "):
        hits = plain_store.search(question, filter=Filter.of(tags=["x"])).hits
        assert [hit.name for hit in hits] == ["new", "old"]


@pytest.mark.parametrize("question", ["???", "🎈", "\x00", "— … —"])
def test_a_question_without_a_word_is_not_taken_for_an_empty_one(
    store: EnhancedStore, write: Write, question: str
) -> None:
    """It was asked, and nothing answers it: notes that have nothing to do with it are no answer."""
    write("a.md", "The harbour crane.")
    store.sync()
    for mode in ("text", "hybrid", "semantic"):
        assert store.search(question, mode=mode).hits == ()
    assert store.context(question).items == ()


def test_what_asks_is_a_question_and_what_only_names_something_is_none() -> None:
    asks = [
        "When did Ada paint the boat?",
        "when did Ada paint the boat",
        "the boat, painted when?",
        "How to embed a file",
    ]
    asks += [
        "\u00bfCu\u00e1ndo pint\u00f3 Ada el barco",
        "Wann hat Ada das Boot gestrichen",
        "  Where is it?  ",
    ]
    asks += ["Pourquoi le bateau est-il rouge", "\u8239\u306f\u4f55\u8272\u3067\u3059\u304b\uff1f"]
    names = [
        "",
        "?!",
        "boat paint",
        "Ada painted the boat.",
        "when",
        "wholesale prices",
        "Whatsapp export",
    ]
    assert [text for text in asks + names if is_question(text)] == asks


def test_a_question_finds_the_note_that_answers_it_before_one_that_is_only_about_it(
    store: EnhancedStore, write: Write
) -> None:
    write(
        "about.md",
        "# Boat\n\nThe boat, the boat. A boat is a boat.\n\n"
        + "Harbour fees.\n\n" * 40
        + "Ada painted a wall.\n",
    )
    write("answer.md", "# Tuesday\n\nAda painted the hull of the boat in May.\n")
    write("other.md", "# Weather\n\nIt rained in May, and Ada slept.\n")
    store.sync()
    found = store.search("When did Ada paint the boat?", explain=True)
    assert found.hits[0].name == "answer"
    assert found.hits[0].why is not None
    assert found.hits[0].why["covered"] == 1.0
    statement = store.search("Ada, boat, paint", explain=True)
    assert all(hit.why is not None and "covered" not in hit.why for hit in statement.hits)


def test_the_names_of_a_question_stand_amid_its_sentences_with_a_capital() -> None:
    assert names_in("What did Ada tell Mrs O'Neill? Answer in English.") == {
        "ada",
        "mrs",
        "o",
        "neill",
        "english",
    }
    for text in ("where has she been?", "Where Was Ada Painting The Boat?", "Berlin", "ADA", ""):
        assert not names_in(text)


def test_a_question_about_a_person_finds_what_is_said_of_her_before_the_same_of_another(
    store: EnhancedStore, write: Write
) -> None:
    write("a.md", "Marie painted the boat blue.\n")
    write("b.md", "Maria wanted a blue boat.\n")
    write("c.md", "Rain.\n")
    store.sync()
    assert ranked(store, "What colour did Maria paint the old boat?", "hybrid") == ["b", "a", "c"]
    assert ranked(store, "what colour did maria paint the old boat?", "hybrid") == ["a", "b", "c"]
    said = [_passages("Marie painted the boat blue."), _passages("Maria rowed.")]
    asked, coverage = ["maria", "paint", "boat"], Coverage(WordLlama())
    of_another, of_her = coverage.of(asked, said, {"maria"})
    assert of_her > of_another
    assert coverage.of(asked, said)[0] > coverage.of(asked, said)[1]


@pytest.mark.parametrize("question", ["Sync", "sync?", '"Sync"'])
def test_a_title_equal_to_the_question_comes_first(
    store: EnhancedStore, write: Write, question: str
) -> None:
    write(
        "Sync.md",
        "It keeps notes alike on several computers. " + "Nothing else is said of that here. " * 200,
    )
    write("b.md", "---\ntitle: sync\ntags: [x]\n---\nOther words.")
    for k in range(60):
        write(f"Sync {k} Sync.md", "Sync, sync. Sync syncs: sync.")
    store.sync()
    for mode in ("text", "hybrid"):
        assert set(ranked(store, question, mode)[:2]) == {"Sync", "b"}
    assert store.search(question).hits[0].score == 1.0
    assert [hit.name for hit in store.search(question, filter=Filter.of(tags=["x"])).hits] == ["b"]
    assert ranked(store, "sync computers")[0] == "Sync"


def test_a_title_may_end_with_the_mark_of_a_question(store: EnhancedStore, write: Write) -> None:
    write("a.md", "---\ntitle: Why sync?\n---\nBecause.")
    write("b.md", "---\ntitle: Why sync\n---\nBecause. Why sync, why sync, why sync?")
    write("c.md", "---\ntitle: Why sync, why sync, why?\n---\nWhy sync?")
    store.sync()
    assert set(ranked(store, "why sync?", "hybrid")[:2]) == {"a", "b"}


def test_a_question_is_covered_better_by_a_few_lines_together_than_by_a_passage_here_and_there() -> (
    None
):
    others = ["Rain fell.", "Bread was baked.", "A dog barked.", "Trains stood still."]
    said = ["Ada took a brush.", "It was the hull.", "She painted."]
    spread = [line for pair in zip(said, others[:3], strict=True) for line in pair] + others[3:]
    notes = [["\n".join(lines)] for lines in (said + others, spread, said[:1] + others)]
    passages = [_passages(*texts) for texts in notes]
    together, scattered, apart = Coverage(WordLlama()).of(["brush", "hull", "painted"], passages)
    assert together > scattered > apart > 0
    two = [_passages("Ada took a brush.\nIt was the hull.", "She painted.")]
    assert Coverage(WordLlama()).of(["brush", "hull", "painted"], two)[0] < together
    assert Coverage(WordLlama()).of(["brush"], [_passages("", " \n"), _passages()]) == [0.0, 0.0]


@pytest.mark.parametrize(
    "others",
    [
        "Rain fell.",
        "Rain fell … on the café.\n\nAnd the 東京タワー.",
        "\n\n the\nof the\n",
        "Rain. " * 800,
    ],
)
def test_the_coverage_of_a_note_does_not_depend_on_the_notes_that_are_compared_with_it(
    others: str,
) -> None:
    asked = ["brush", "hull", "painted"]
    note = _passages("Ada took a brush.\nIt was the hull.", "She painted.", " ", "the\n")
    (alone,) = Coverage(WordLlama()).of(asked, [note])
    assert alone > 0

    other = _passages(others)
    both = Coverage(WordLlama()).of(asked, [other, note, other])
    assert both[1] == pytest.approx(alone)
    assert both[0] == both[2] < alone


def test_what_a_note_covers_is_the_same_before_and_after_it_was_ranked() -> None:
    weights = {"brush": 1.0, "hull": 2.0, "painted": 0.5}
    note = _passages("Ada took a brush.\nIt was the hull.", "She rowed.")
    label = "Painting"
    coverage = Coverage(WordLlama())
    share = coverage.share(weights, label, note)
    by_word = coverage.by_word(weights, label, note)
    coverage.of(list(weights), [_passages("Rain fell."), note])
    assert coverage.share(weights, label, note) == pytest.approx(share)
    after = coverage.by_word(weights, label, note)
    assert after == pytest.approx(by_word)
    assert coverage.share({"hull": 1.0}, "", note) == pytest.approx(1.0)
    assert coverage.share(weights, "", _passages("Rain fell.")) < share


STYLE = "---\naliases:\n- Style Settings\n---\nOffers controls for adjusting theme and snippet variables.\n"


def others_about_style_settings(write: Write) -> None:
    """Notes that say "Style Settings" much more often than the one that is called so."""
    for k in range(30):
        text = "Style settings here, style settings there: install Style Settings for the settings of this style.\n"
        write(f"themes/Theme {k} style settings.md", text * 3)


@pytest.mark.parametrize(
    "question",
    ["Style Settings", "style settings", "STYLE-SETTINGS", "StyleSettings", "style_settings", "the Style Settings",
     "What is Style Settings?", "\"Style Settings\""],
)  # fmt: skip
@pytest.mark.parametrize("mode", ["hybrid", "text", "semantic"])
def test_a_note_whose_alias_is_the_question_comes_first(
    store: EnhancedStore, write: Write, question: str, mode: str
) -> None:
    write("plugins/obsidian-variables.md", STYLE)
    others_about_style_settings(write)
    store.sync()
    answer = store.search(question, limit=5, mode=mode)
    assert answer.hits[0].name == "plugins/obsidian-variables"
    assert not answer.only_nearest


def test_a_file_name_comes_first_however_its_words_are_joined(
    store: EnhancedStore, write: Write
) -> None:
    write(
        "plugins/style-settings.md", "Offers controls for adjusting theme and snippet variables.\n"
    )
    others_about_style_settings(write)
    store.sync()
    for question in ("Style Settings", "style settings?", "StyleSettings"):
        assert store.search(question, limit=1).hits[0].name == "plugins/style-settings"


def test_a_name_amid_further_words_lifts_its_note(store: EnhancedStore, write: Write) -> None:
    maps = "---\naliases: [MOC]\n---\nA note of links about one topic. Nick Milo coined the term.\n"
    write("concepts/Maps of content.md", maps)
    for k in range(30):
        write(
            f"lists/List {k}.md",
            f"This MOC lists MOC notes: MOC {k}, another MOC and a further MOC of this part.\n",
        )
    store.sync()
    for question in ("What is a MOC and who coined it?", "the MOC term"):
        assert store.search(question, limit=1).hits[0].name == "concepts/Maps of content", question


def test_all_notes_of_one_alias_come_before_the_others_and_a_title_before_an_alias(
    store: EnhancedStore, write: Write
) -> None:
    write("a/Maps of content.md", "---\naliases: [MOC]\n---\nNotes of links.\n")
    write("b/Meeting of chiefs.md", "---\naliases: [moc, council]\n---\nOn Mondays.\n")
    write("c/MOC.md", "To be written.\n")
    for k in range(30):
        write(
            f"lists/List {k}.md",
            f"This MOC lists MOC notes: MOC {k}, another MOC and a further MOC of this part.\n",
        )
    store.sync()
    names = [hit.name for hit in store.search("MOC", limit=10).hits]
    assert names[0] == "c/MOC"
    assert set(names[1:3]) == {"a/Maps of content", "b/Meeting of chiefs"}
    kept = store.search("MOC", filter=Filter.of(prefix="lists/"), limit=40).hits
    assert {hit.name.partition("/")[0] for hit in kept} == {"lists"}


def test_a_name_that_differs_in_its_numbers_or_signs_is_another_name(
    store: EnhancedStore, write: Write
) -> None:
    write("C++.md", "A language with classes.\n")
    write("C.md", "A language without classes.\n")
    write("Chapter 1.1.md", "Of beginnings.\n")
    write("Chapter 11.md", "Of ends.\n")
    store.sync()
    for name in ("C++", "C", "Chapter 1.1", "Chapter 11"):
        assert store.search(name, limit=1).hits[0].name == name


def test_a_block_whose_text_many_notes_have_counts_less() -> None:
    notes = {1: 2.0, 2: 2.0}

    def words_of(notes_with_text: dict[int, int]) -> dict[int, float]:
        counts = [notes_with_text.get(place, 1) for place in (11, 21)]
        blocks = BlockMatches(
            np.array([1, 2]), np.array([11, 21]), np.array([3.0, 3.0]), np.array(counts)
        )
        answer = Matches(notes, blocks, {}, None, {}, note_count=10_000)
        return dict(rank.signals_of(answer)[0].values)

    same = words_of({11: 10, 21: 3})
    assert same[1] == same[2]
    for many in (11, 50, 5_000):
        signal = words_of({11: many})
        assert signal[1] < signal[2] == same[2]
    assert words_of({11: 100}) == words_of({11: 5_000})
