"""From the settings to an embedder, and a store that searches with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from embedding_service import EmbeddingService

from simplemem.config import Settings
from simplemem.services.embed import ServiceEmbedder
from simplemem.services.keys import Key
from simplemem.services.wordllama import WordLlama
from simplemem.store.embedding import cache_path, choice_of, embedder_of

KEY = "sk-test-0123456789abcdefghij"


def settings(**tables: dict[str, Any]) -> Settings:
    return Settings.model_validate(tables)


def served_by(service: EmbeddingService, **more: Any) -> Settings:
    return settings(embed={"provider": "openai", "model": "tiny", "url": f"{service.url}/v1", "api_key": KEY} | more)


def test_every_provider_can_be_chosen_and_none_asks_the_network(tmp_path: Path) -> None:
    names = {}
    for provider in ("wordllama", "voyage", "openai", "ollama"):
        found = embedder_of(settings(embed={"provider": provider}), tmp_path / "index.db")
        assert found is not None
        names[provider] = (found.name, found.remote)
    assert names == {
        "wordllama": ("wordllama-l2-supercat-256", False),
        "voyage": ("voyage/voyage-3.5", True),
        "openai": ("openai/text-embedding-3-small", True),
        "ollama": ('ollama/nomic-embed-text after "search_document: "', False),
    }
    assert embedder_of(settings(embed={"provider": "none"}), tmp_path / "index.db") is None


def test_what_a_file_of_the_original_says_holds_for_voyage_and_for_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "voyage.key"
    file.write_text(KEY)
    original = {"api_key": {"path": str(file)}, "model": "voyage-3-large"}
    taken = choice_of(settings(embed={"provider": "voyage"}, voyage_ai=original))
    assert (taken.model, Key(taken.api_key).value()) == ("voyage-3-large", KEY)
    both = choice_of(settings(embed={"provider": "voyage", "model": "voyage-4", "api_key": "pa-1"}, voyage_ai=original))
    assert (both.model, Key(both.api_key).value()) == ("voyage-4", "pa-1")
    other = choice_of(settings(embed={"provider": "openai"}, voyage_ai=original))
    assert (other.model, other.api_key) == ("", None)


def test_vectors_of_services_lie_beside_the_index(tmp_path: Path) -> None:
    index = tmp_path / "index.db"
    assert isinstance(embedder_of(settings(embed={"provider": "openai"}), index), ServiceEmbedder)
    assert isinstance(embedder_of(settings(), index), WordLlama)
    assert cache_path(index) == tmp_path / "vectors.db"
    assert cache_path(tmp_path / "notes.db") == tmp_path / "notes-vectors.db"
    assert cache_path(tmp_path / "index-0123abcd.db") == tmp_path / "vectors.db"
    assert cache_path(tmp_path / "notes-index-0123abcd.db") == tmp_path / "notes-vectors.db"
