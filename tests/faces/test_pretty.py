"""JSON as JavaScript writes it, indented by two."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from simplemem.faces.render import pretty


def of(leaves: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
        max_leaves=12,
    )


LEAVES = st.none() | st.booleans() | st.integers() | st.text()


@given(of(LEAVES))
def test_it_is_what_json_writes_with_an_indent(value: object) -> None:
    assert pretty(value) == json.dumps(value, indent=2, ensure_ascii=False)


@given(of(LEAVES | st.floats(allow_nan=False, allow_infinity=False)))
def test_numbers_come_back_as_they_were(value: object) -> None:
    assert json.loads(pretty(value)) == value
    assert pretty([0.5, 0.05, -12.25]) == "[\n  0.5,\n  0.05,\n  -12.25\n]"


def test_half_a_surrogate_pair_is_escaped_and_nothing_else_is() -> None:
    assert pretty(["\ud800x\udfff", "🧠 ü \u2028"]) == '[\n  "\\ud800x\\udfff",\n  "🧠 ü \u2028"\n]'
