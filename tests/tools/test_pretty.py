"""JSON as JavaScript writes it, indented by two."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from simplemem.tools.pretty import pretty

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)


@given(VALUES)
def test_it_is_what_json_writes_with_an_indent(value: object) -> None:
    assert pretty(value) == json.dumps(value, indent=2, ensure_ascii=False)


def test_half_a_surrogate_pair_is_escaped_and_nothing_else_is() -> None:
    assert pretty(["\ud800x\udfff", "🧠 ü \u2028"]) == '[\n  "\\ud800x\\udfff",\n  "🧠 ü \u2028"\n]'
