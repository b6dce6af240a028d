"""`why`: where a named note is in a search, or what keeps it out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simplemem.config import Settings
from simplemem.errors import Ambiguous, Invalid, NotFound
from simplemem.memory import Filter
from simplemem.store import EnhancedStore

Write = Callable[[str, str | bytes], Path]


def why(store: EnhancedStore, question: str, name: str, **more: Any) -> dict[str, Any]:
    told = store.search(question, why=name, **more).why
    assert told is not None
    return dict(told)


@pytest.fixture
def harbour(plain_store: EnhancedStore, write: Write) -> EnhancedStore:
    for k in range(8):
        write(f"log/{k}.md", f"# Day {k}\n\n" + "The crane. " * (8 - k) + "Rain and wind and waves. " * k)
    write("bees.md", "---\ntitle: The hive\n---\nHoney and wax.")
    plain_store.sync()
    return plain_store


def test_a_hit_is_told_its_place_and_its_numbers(harbour: EnhancedStore) -> None:
    hits = harbour.search("crane", limit=3).hits
    told = why(harbour, "crane", hits[1].name, limit=3)
    assert (told["verdict"], told["rank"], told["of"]) == ("hit", 2, 8)
    assert told["score"] == pytest.approx(hits[1].score, abs=1e-3)
    assert told["legs"]["note"]["rank"] == 2
    assert told["matched"] == ["crane"]


def test_a_note_behind_the_last_hit_is_told_its_number_and_what_it_lacked(harbour: EnhancedStore) -> None:
    every = [hit.name for hit in harbour.search("crane storm", limit=50).hits]
    told = why(harbour, "crane storm", every[6], limit=2)
    assert (told["verdict"], told["rank"], told["of"], told["limit"]) == ("below", 7, 8, 2)
    assert told["last_hit"]["name"] == every[1]
    assert told["last_hit"]["score"] > told["score"]
    assert told["missing"] == ["storm"]
    assert told["hint"] == "A limit of 7 shows it."
    assert every[6] in [hit.name for hit in harbour.search("crane storm", limit=7).hits]


def test_equal_scores_come_in_order_of_names(plain_store: EnhancedStore, write: Write) -> None:
    for name in ("d", "b", "a", "c"):
        write(f"{name}/Same.md", "The crane.")
    plain_store.sync()
    assert [why(plain_store, "crane", f"{name}/Same", limit=1)["rank"] for name in "abcd"] == [1, 2, 3, 4]


def test_a_note_behind_all_that_ranking_looks_at_has_a_number_too(plain_store: EnhancedStore, write: Write) -> None:
    for k in range(420):
        write(f"n{k:03}.md", "The crane.\n")
    write("z.md", "A crane stood somewhere, among very many other words that are about other things.\n")
    plain_store.sync()
    told = why(plain_store, "crane", "z")
    assert (told["verdict"], told["rank"], told["of"]) == ("below", 421, 421)
    assert told["legs"]["note"]["rank"] == 421
    assert told["hint"] == ""  # no limit is that large


def test_a_note_without_a_word_of_it_is_no_match(harbour: EnhancedStore) -> None:
    told = why(harbour, "crane", "The hive")
    assert (told["name"], told["verdict"]) == ("bees", "no_match")
    assert "none of the question's words" in told["because"]
    assert told["missing"] == ["crane"]
    assert "rank" not in told


def test_the_filter_that_removes_it_is_named_and_where_it_would_be_without(harbour: EnhancedStore) -> None:
    first = harbour.search("crane").hits[0].name
    told = why(harbour, "crane -rain", first, filter=Filter.of(prefix="bees", type="memory"))
    assert told["verdict"] == "filtered"
    assert told["filters"] == [{"filter": "path", "value": "bees"}]
    assert told["rank_without_filters"] == 1
    assert "number 1" in told["because"]
    told = why(harbour, "crane -rain", "log/5", filter=Filter.of(tags=["none"]))
    assert [each["filter"] for each in told["filters"]] == ["tag", "without"]


@pytest.mark.parametrize("question", ["", "how was the crane of the harbour repaired?"])
def test_the_place_without_filters_is_that_of_a_search_without_them(
    store: EnhancedStore, write: Write, question: str
) -> None:
    for k, text in enumerate(
        ("The crane.", "The crane was repaired.", "How the harbour crane was built.", "A harbour.")
    ):
        write(f"n{k}.md", f"---\nmodified: 203{k}-01-01T00:00:00\n---\n{text} It was in year {k}.")
    store.sync()
    every = [hit.name for hit in store.search(question, limit=10).hits]
    for place, name in enumerate(every, 1):
        assert why(store, question, name, filter=Filter.of(type="none"))["rank_without_filters"] == place


def test_what_is_left_out_of_recall_is_told_by_which_rule(harbour: EnhancedStore, write: Write) -> None:
    write(".obsidian/app.json", '{"userIgnoreFilters": ["attic/"]}')
    write(".obsidian/templates.json", '{"folder": "forms"}')
    write("attic/old.md", "An old crane.")
    write("forms/Day.md", "The crane of {{date}}.")
    write("log/0.sync-conflict-20260124-120000-ABCDEF.md", "The crane.")
    write("log/0.md", "The crane again.")
    harbour.sync()
    rules = {
        "attic/old": "attic/",
        "forms/Day": "template",
        "log/0.sync-conflict-20260124-120000-ABCDEF": "conflict",
    }
    for name, rule in rules.items():
        told = why(harbour, "crane", name)
        assert told["verdict"] == "hidden"
        assert rule in told["because"]
        assert told["hint"]


def test_a_note_that_is_too_large_says_so_and_which_setting_lets_it_in(vault: Path, write: Write) -> None:
    settings = Settings.model_validate({"embed": {"provider": "none"}, "index": {"max_note_mb": 0.001}})
    write("large.md", "crane " * 1000)
    with EnhancedStore(vault, settings) as store:
        store.sync()
        told = why(store, "crane", "large")
    assert told["verdict"] == "not_indexed"
    assert "6000 bytes" in told["because"]
    assert "index.max_note_mb" in told["hint"]


def test_a_file_that_is_no_note_says_so(harbour: EnhancedStore, write: Write) -> None:
    write("photo.png", b"\x89PNG")
    write(".drafts/crane.md", "The crane.")
    harbour.sync()
    assert why(harbour, "crane", "photo.png")["verdict"] == "not_a_note"
    told = why(harbour, "crane", ".drafts/crane")
    assert told["verdict"] == "not_a_note"
    assert "begin with a dot" in told["because"]


def test_whether_something_lies_outside_the_vault_is_not_told(harbour: EnhancedStore, vault: Path) -> None:
    outside = vault.parent / ".keys"
    outside.mkdir()
    (outside / "id").write_text("x")
    (vault / "way").symlink_to("../.keys")
    (vault / ".way").symlink_to("../.keys")
    for name in (
        f"{outside}/id",
        f"/{outside}/id",
        "way/.hidden/../id",
        ".way/id",
        ".way/none",
        "." * 300,
        ".x/" * 500,
    ):
        with pytest.raises((NotFound, Invalid)):
            harbour.search("crane", why=name)


def test_a_name_that_nothing_has_is_an_error_with_those_that_are_near(harbour: EnhancedStore, write: Write) -> None:
    with pytest.raises(NotFound) as missing:
        harbour.search("crane", why="beees")
    assert missing.value.details["candidates"] == ["bees"]
    write("a/Same.md", "x")
    write("b/Same.md", "x")
    harbour.sync()
    with pytest.raises(Ambiguous):
        harbour.search("crane", why="Same")


def test_a_note_that_was_just_written_is_indexed_before_it_is_accounted_for(
    harbour: EnhancedStore, write: Write
) -> None:
    write("fresh.md", "The crane, the crane, the crane.")
    assert why(harbour, "crane", "fresh")["rank"] >= 1


def test_a_note_that_waits_for_its_vectors_says_so(store: EnhancedStore, write: Write) -> None:
    write("a.md", "The crane.")
    store.sync()
    write("late.md", "The crane by the quay.")
    store.sync(embed=False)
    assert "no vectors yet" in why(store, "crane", "late")["because"]
    told = why(store, "hoisting machinery", "late")
    assert told["verdict"] == "no_match"
    assert "no vectors yet" in told["because"]
    store.sync()
    assert "no vectors" not in why(store, "crane", "late")["because"]


def test_meaning_alone_gives_a_number(store: EnhancedStore, write: Write) -> None:
    write("vet.md", "The puppy was taken to the veterinarian.")
    write("pets.md", "Cats and birds live in houses with people.")
    store.sync()
    told = why(store, "dog doctor", "pets", limit=1)
    assert told["verdict"] in ("hit", "below")
    assert "passage_meaning" in told["legs"] and "note" not in told["legs"]


def test_without_words_the_newest_come_first_and_a_note_has_its_number(
    plain_store: EnhancedStore, write: Write
) -> None:
    for year in range(2030, 2034):
        write(f"{year}.md", f"---\nmodified: {year}-01-01T00:00:00\n---\nx")
    plain_store.sync()
    told = why(plain_store, "", "2030", limit=1)
    assert (told["verdict"], told["rank"], told["of"]) == ("below", 4, 4)
    assert why(plain_store, "", "2033", limit=1)["verdict"] == "hit"
    assert why(plain_store, "???", "2033")["verdict"] == "no_match"


def test_a_note_left_out_by_another_form_of_an_excluded_word_is_said_to_be_so(
    plain_store: EnhancedStore, write: Write
) -> None:
    write("a.md", "---\nlang: de\n---\nDie alten H\u00e4user an der Stra\u00dfe sind nicht mehr bewohnt.\n")
    write("b.md", "---\nlang: de\n---\nDie lange Stra\u00dfe ist heute nicht mehr zu sehen.\n")
    plain_store.sync()
    told = why(plain_store, "Stra\u00dfe -Haus", "a")
    assert (told["verdict"], told["filters"]) == ("filtered", [{"filter": "without", "value": "Haus"}])
    found = plain_store.search("Stra\u00dfe -Haus", explain=True).explain
    assert found is not None and found["filters"][0]["removed"] == 1
