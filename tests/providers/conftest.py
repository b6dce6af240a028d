"""An embedding service for the tests of its clients."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from embedding_service import EmbeddingService


@pytest.fixture
def service() -> Iterator[EmbeddingService]:
    """Yield a running embedding service."""
    with EmbeddingService() as service:
        yield service
