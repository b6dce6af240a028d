"""Questions to a vault whose vectors come from a service: what was paid for is not paid for again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from embedding_service import EmbeddingService

from simplemem.config import Settings
from simplemem.evaluate.asking import measure
from simplemem.evaluate.pairs import Held, Pair
from simplemem.evaluate.scratch import read_vault
from simplemem.store import EnhancedStore


@pytest.fixture
def service() -> Iterator[EmbeddingService]:
    with EmbeddingService() as running:
        yield running


def test_only_what_is_changed_for_a_question_is_sent_again(notes: Path, service: EmbeddingService) -> None:
    embed = {"provider": "openai", "model": "tiny", "url": f"{service.url}/v1", "api_key": "sk-test-0123456789abcdef"}
    settings = Settings.model_validate({"embed": embed})
    with EnhancedStore(notes, settings) as store:
        store.sync()
    kept = (notes / ".simplemem" / "vectors.db").read_bytes()
    at_first = {text for asked in service.asked for text in asked.texts}
    service.asked.clear()
    pair = Pair(
        "heading", "Thermostat steps", ("Kettle repair",), (Held("Kettle repair", "heading", "Thermostat steps"),)
    )
    twice = Pair("mine", "herons", ("daily/2026-01-05",))
    held = Pair("sentence", "Kettles", ("Kettle repair",), (Held("Kettle repair", "heading", "Kettle repair"),))
    measured = measure(read_vault(notes, settings), [pair, twice, held], {"simplemem": settings}, lambda *_: "")
    sent = [text for asked in service.asked for text in asked.texts]
    assert not at_first & set(sent) and len(sent) == len(set(sent))
    assert {"herons", "Kettles"} <= set(sent)
    assert not any(word in text for text in sent for word in ("Blight", "metronome", "chapel", "straw"))
    assert not measured.degraded["simplemem"]
    assert (notes / ".simplemem" / "vectors.db").read_bytes() == kept


def test_a_service_that_fails_is_told_with_the_figures(notes: Path, service: EmbeddingService) -> None:
    from embedding_service import failing

    embed = {"provider": "openai", "model": "tiny", "url": f"{service.url}/v1", "api_key": "sk-test-0123456789abcdef"}
    settings = Settings.model_validate({"embed": embed})
    with EnhancedStore(notes, settings) as store:
        store.sync()
    service.always = failing(401, "wrong key")
    pairs = [Pair("mine", "herons", ("daily/2026-01-05",)), Pair("mine", "straw", ("garden/Compost",))]
    measured = measure(read_vault(notes, settings), pairs, {"simplemem": settings}, lambda *_: "")
    assert sum(measured.degraded["simplemem"].values()) == 2
    assert [each.mrr for each in measured.rows["simplemem"]] == [1, 1]


def test_nothing_of_a_private_note_is_sent_while_it_would_be_asked_for(
    notes: Path, service: EmbeddingService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its name a rule knows a note, which has another name while its title is held out; so its pair is not asked."""
    monkeypatch.setattr("simplemem.services.client._is_this_machine", lambda host: False)
    embed = {"provider": "openai", "model": "tiny", "url": f"{service.url}/v1", "api_key": "sk-test-0123456789abcdef"}
    settings = Settings.model_validate({"embed": {**embed, "private": ["garden/Tomatoes"]}})
    (notes / "Diary.md").write_bytes(b"The doctor said nothing. #private\n\nStraw hats and herons all day long.\n")
    pairs = [
        Pair(
            "title",
            "Growing tomatoes",
            ("garden/Tomatoes",),
            (Held("garden/Tomatoes", "title", "Growing tomatoes"),),
        ),
        Pair(
            "sentence", "The doctor said nothing.", ("Diary",), (Held("Diary", "sentence", "The doctor said nothing."),)
        ),
        Pair("mine", "herons", ("daily/2026-01-05",)),
    ]
    measured = measure(read_vault(notes, settings), pairs, {"simplemem": settings}, lambda *_: "")
    sent = " ".join(text for asked in service.asked for text in asked.texts)
    assert "herons" in sent
    assert not any(word in sent for word in ("Blight", "tomatoes", "doctor", "hats"))
    assert (measured.private, measured.skipped, len(measured.rows["simplemem"])) == (2, 0, 1)
