"""A service of embeddings for the tests of what asks one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from embedding_service import EmbeddingService


@pytest.fixture
def service() -> Iterator[EmbeddingService]:
    with EmbeddingService() as running:
        yield running
