"""What several tests of the store begin with: a service of embeddings, and a store that is opened under rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from embedding_service import EmbeddingService

from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore


@pytest.fixture
def service() -> Iterator[EmbeddingService]:
    with EmbeddingService() as running:
        yield running


@pytest.fixture
def opened(vault: Path) -> Callable[..., EnhancedStore]:
    def open_with(no_delete: bool = False, **access: Any) -> EnhancedStore:
        settings = {"embed": {"provider": "none"}, "no_delete": no_delete, "access": access}
        return EnhancedStore(vault, Settings.model_validate(settings))

    return open_with
