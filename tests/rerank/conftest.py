"""A rerank service for the tests of what asks one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from rerank_service import RerankService


@pytest.fixture
def service() -> Iterator[RerankService]:
    with RerankService() as running:
        yield running
