"""Fixtures of the tests of the store: an embedding service, and a store with access rules."""

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
    """Yield a running embedding service."""
    with EmbeddingService() as service:
        yield service


@pytest.fixture
def opened(vault: Path) -> Callable[..., EnhancedStore]:
    """Return a function that opens a store on the vault with access rules."""

    def open_with(no_delete: bool = False, **access: Any) -> EnhancedStore:
        settings = {"embed": {"provider": "none"}, "no_delete": no_delete, "access": access}
        return EnhancedStore(vault, Settings.model_validate(settings))

    return open_with
