"""Questions made of a vault's own notes, asked in a copy in which the answers' own words are not there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from embedding_service import EmbeddingService, failing

from simplemem.errors import Invalid, NotFound
from simplemem.evaluate import (
    KINDS,
    HeldOut,
    Pair,
    Questions,
    make_questions,
    read_questions,
    run,
    without,
    write_questions,
)
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

NOTES = {
    "Kettle repair.md": (
        "---\ndescription: Descaling with citric vinegar mornings\naliases:\n  - Samovar clinic\n  - Teapot ward\n---\n"
        "# Kettle repair\n\nThe heating coil gathers limestone in hard water.\n\n## Thermostat replacement steps\n\n"
        "Unplug everything and open the base with a torx driver. Limestone on the coil makes a rumbling\n"
        "noise before boiling and wastes electricity every day.\n\nKettles and the samovar last longer in soft water.\n"
    ),
    "garden/Tomatoes.md": (
        "---\ntitle: Growing tomatoes\n---\n\nSow under glass in March. Blight arrives with wet August weather and spoils "
        "green fruit overnight.\n\n- Pinch out the side shoots weekly.\n- Feed with comfrey tea once trusses form.\n\n"
        "Ripe tomatoes go to the kitchen, where the [[Kettle repair|boiling vessel handbook]] lies.\n"
    ),
    "garden/Compost.md": (
        "# Heap\n\nLayers of straw and kitchen waste heat up within days. Turning the straw monthly with a garden fork lets "
        "air reach the middle layers.\n\n## Overview\n\nA heap needs one cubic metre. Worms arrive by themselves.\n"
    ),
    "music/Violin practice.md": (
        "---\ndescription: Scales before pieces\n---\n\nBegin with slow scales in thirds. A metronome at sixty beats keeps "
        "bowing honest and thirds in tune.\n\n## Overview\n\nRosin the bow. Mute strings at night for the neighbours.\n"
    ),
    "music/Choir.md": (
        "Rehearsals are on Thursdays in the chapel. Altos sit by the heater; tenors bring biscuits for the chapel "
        "interval.\n\nSee [[Violin practice|string warm-up routine]] and [the metronome](Violin%20practice.md).\n"
    ),
    "daily/2026-01-05.md": "Walked along the canal until the lock. Herons fished beside the lock gates all morning.\n",
}
KETTLE = NOTES["Kettle repair.md"]
WORDS = Settings.model_validate({"embed": {"provider": "none"}})


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    for path, text in NOTES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(text.encode())
    return folder


@pytest.fixture
def store(notes: Path) -> Iterator[EnhancedStore]:
    with EnhancedStore(notes, WORDS) as store:
        store.sync()
        yield store


@pytest.fixture
def service() -> Iterator[EmbeddingService]:
    with EmbeddingService() as running:
        yield running


def held(note: str, what: str, text: str) -> tuple[HeldOut, ...]:
    return (HeldOut(note, what, text),)


# -- what is held out


@pytest.mark.parametrize(
    ("text", "gone", "left"),
    [
        ("Samovar clinic", "Samovar", "Teapot ward"),
        ("Descaling with citric vinegar mornings", "description", "aliases"),
        ("Thermostat replacement steps", "Thermostat", "Unplug everything"),
        (
            "Limestone on the coil makes a rumbling noise before boiling and wastes electricity every day.",
            "rumbling",
            "torx driver",
        ),
    ],
)
def test_what_is_asked_goes_and_the_rest_stays(text: str, gone: str, left: str) -> None:
    rest = without(KETTLE, [text])
    assert gone not in rest and left in rest and "last longer" in rest


def test_a_title_goes_with_the_heading_that_repeats_it() -> None:
    text = "---\ntitle: Growing tomatoes\ntags: [a]\n---\n# Growing tomatoes\n\nTomatoes like sun; growing is slow.\n"
    left = without(text, ["Growing tomatoes"], title=True)
    assert (
        left.startswith("---\ntags: [a]\n---\n")
        and "Growing tomatoes" not in left
        and "like sun" in left
    )


def test_what_says_nearly_the_same_goes_too() -> None:
    text = "---\ndescription: New coils for samovars in winter\n---\nThe samovar needs coils before winter.\n\nTea.\n"
    left = without(text, ["Before winter comes, the samovar needs coils that are new."])
    assert "coils" not in left and left.endswith("Tea.\n")
    assert without(text, ["Tea with milk"]) == text


# -- the questions


def test_every_kind_is_asked_once_a_note_and_the_same_for_the_same_seed(
    store: EnhancedStore,
) -> None:
    questions = make_questions(store, 100, 1)
    assert questions.notes == len(NOTES)
    assert len({pair.kind for pair in questions.pairs}) >= 2 and {
        pair.kind for pair in questions.pairs
    } <= set(KINDS)
    assert max(Counter(pair.gold for pair in questions.pairs).values()) == 1
    assert make_questions(store, 100, 1) == questions and make_questions(store, 100, 2) != questions
    assert len(make_questions(store, 2, 1).pairs) == 2
    assert not any(
        "2026" in pair.question or pair.question == "Overview" for pair in questions.pairs
    )


def test_nothing_private_is_asked(notes: Path) -> None:
    (notes / "Diary.md").write_bytes(
        b"---\nprivate: true\n---\n" + KETTLE.split("---\n", 2)[2].encode()
    )
    with EnhancedStore(notes, WORDS) as store:
        store.sync()
        assert not any(
            "Diary" in pair.gold
            for seed in range(5)
            for pair in make_questions(store, 100, seed).pairs
        )


def test_a_file_of_questions_is_read_as_it_was_written(
    tmp_path: Path, store: EnhancedStore
) -> None:
    questions = make_questions(store, 10, 1)
    file = tmp_path / "deep" / "eval.json"
    write_questions(file, questions)
    assert read_questions(file) == questions


@pytest.mark.parametrize(
    "text",
    [
        *("{", "[]", '{"format": 2, "pairs": [], "notes": 1}', '{"format": 1, "notes": 1}'),
        '{"format": 1, "notes": 1, "pairs": [{"kind": "mine", "question": " ", "gold": ["a"], "held_out": []}]}',
        '{"format": 1, "notes": 1, "pairs": [{"kind": "mine", "question": "x", "gold": [], "held_out": []}]}',
    ],
)
def test_a_file_that_is_none_is_told_with_its_way_out(tmp_path: Path, text: str) -> None:
    (file := tmp_path / "eval.json").write_text(text)
    with pytest.raises(Invalid) as refused:
        read_questions(file)
    assert "eval init" in refused.value.hint
    with pytest.raises(NotFound, match="no questions at"):
        read_questions(tmp_path / "none.json")


# -- the run


def test_notes_are_found_by_what_is_left_of_them_and_nothing_is_written(
    store: EnhancedStore,
) -> None:
    before = {path: path.read_bytes() for path in store.root.rglob("*.md")}
    pairs = (
        Pair(
            "title",
            "Growing tomatoes",
            ("garden/Tomatoes",),
            held("garden/Tomatoes", "title", "Growing tomatoes"),
        ),
        Pair(
            "alias",
            "Samovar clinic",
            ("Kettle repair",),
            held("Kettle repair", "alias", "Samovar clinic"),
        ),
        Pair("mine", "zebra crossing", ("music/Choir",)),
        Pair("mine", "anything", ("gone",)),
    )
    report = run(store, Questions(pairs, 6), {"simplemem": WORDS, "other": WORDS})
    row, other = report["rows"]
    assert (row["questions"], report["left_out"]) == (3, 1)
    assert row["recall5"]["value"] == 0.6667 and row["ms_median"] > 0
    assert row["mrr"]["low"] <= row["mrr"]["value"] <= row["mrr"]["high"]
    assert (
        other["difference"]["mrr"] == {"value": 0.0, "low": 0.0, "high": 0.0}
        and "difference" not in row
    )
    assert {path: path.read_bytes() for path in store.root.rglob("*.md")} == before
    with pytest.raises(Invalid, match="none of the questions can be used"):
        run(store, Questions(pairs[3:], 6), {"simplemem": WORDS})


def test_a_service_is_sent_only_what_is_changed_and_its_failure_is_told(
    notes: Path, service: EmbeddingService
) -> None:
    embed = {
        "provider": "openai",
        "model": "tiny",
        "url": f"{service.url}/v1",
        "api_key": "sk-test-0123456789abcdef",
    }
    settings = Settings.model_validate({"embed": embed})
    gone = held("Kettle repair", "heading", "Thermostat replacement steps")
    with EnhancedStore(notes, settings) as store:
        store.sync()
        service.requests.clear()
        pairs = (Pair("heading", "Thermostat steps", ("Kettle repair",), gone),)
        report = run(store, Questions(pairs, 6), {"simplemem": settings})
        sent = service.texts()
        assert "Thermostat steps" in sent and not any(
            "Blight" in text or "metronome" in text for text in sent
        )
        assert "degraded" not in report["rows"][0]
        service.always = failing(401, "wrong key")
        report = run(
            store,
            Questions((Pair("mine", "herons", ("daily/2026-01-05",)),), 6),
            {"simplemem": settings},
        )
        assert (
            report["rows"][0]["degraded"]["questions"] == 1
            and report["rows"][0]["mrr"]["value"] == 1.0
        )


def test_nothing_of_a_private_note_is_sent_under_another_name(
    notes: Path, service: EmbeddingService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its name a rule knows a note, which has another name while its title is held out; so its question is not
    asked."""
    monkeypatch.setenv("HTTP_PROXY", service.url)
    for name in ("http_proxy", "NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    embed = {
        "provider": "openai",
        "model": "tiny",
        "url": "http://embedder.example/v1",
        "private": ["garden/Tomatoes"],
    }
    settings = Settings.model_validate({"embed": embed})
    title = held("garden/Tomatoes", "title", "Growing tomatoes")
    pairs = (
        Pair("title", "Growing tomatoes", ("garden/Tomatoes",), title),
        Pair("mine", "herons", ("daily/2026-01-05",)),
    )
    with EnhancedStore(notes, settings) as store:
        store.sync()
        report = run(store, Questions(pairs, 6), {"simplemem": settings})
    sent = " ".join(service.texts())
    assert "herons" in sent and "Blight" not in sent and "Sow under glass" not in sent
    assert (report["left_out"], report["rows"][0]["questions"]) == (1, 1)


def test_every_note_of_a_large_vault_is_taken_in(tmp_path: Path) -> None:
    for number in range(1005):
        (tmp_path / f"n{number}.md").write_text(f"word{number}\n", encoding="utf-8")
    with EnhancedStore(tmp_path, Settings.model_validate({"embed": {"provider": "none"}})) as store:
        store.sync()
        assert len(store.extension.list_all()) == make_questions(store, 10, 1).notes == 1005
