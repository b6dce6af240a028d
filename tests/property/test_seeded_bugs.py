"""The faults that are planted to try the property tests still fit the code."""

from __future__ import annotations

import pytest

from bench.seeded_bugs import FAULTS, Fault


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.about)
def test_a_planted_fault_has_exactly_one_place_in_the_code(fault: Fault) -> None:
    source = fault.file.read_text(encoding="utf-8")
    assert fault.in_source(source) != source
