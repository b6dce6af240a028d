"""Statements under any sequence of calls and hands: one undo takes an addition back byte for byte, no call in one scope
changes what another sees, the shelf that grew is the one that is read anew, and no model, whatever it says, breaks that."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from chat_service import ChatService
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simplemem.errors import SimplememError
from simplemem.features.facts.new_fact import NewFact
from simplemem.features.facts.service import FactService, fact_service
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

SCOPES = ("ann", "bob", "ann/work")
TEXTS = [
    "I live in Kiel.", "I live in Bremen.", "I no longer live in Kiel.", "I like tea.", "I do not like tea.",
    "I like tea at noon.", "The rent is 500 euros.", "The rent is 600 euros.", "Yesterday I bought a boat.",
    "Forget that I like tea.", "vivo en Kiel", "# odd [[link]] %%c%%", "🛶", "I live in Kiel or Bremen?",
]  # fmt: skip
ACTS = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "add", "undo", "update", "forget", "edit", "remove"]),
        st.sampled_from(SCOPES), st.sampled_from(TEXTS), st.integers(0, 5),
    ), min_size=5, max_size=14,
)  # fmt: skip
PLAIN = Settings.model_validate({"embed": {"provider": "none"}})
EVERY = settings(
    max_examples=min(40, settings.default.max_examples),
    suppress_health_check=[HealthCheck.too_slow],
)


def files(root: Path) -> dict[str, bytes]:
    found = (path for path in root.rglob("*.md") if ".simplemem" not in path.parts)
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in found}


def rows_of(memories: FactService, scope: str) -> list[tuple[Any, ...]]:
    facts = memories.facts(scope, expired=True)
    return sorted(
        (e.path, e.sha256, e.statement, e.status, e.slot or (), e.confidence) for e in facts
    )


def do_one_step(
    memories: FactService, root: Path, kind: str, scope: str, text: str, number: int
) -> None:
    """One call, or something done to a note by hand, of one scope."""
    if kind == "add":
        original_files = files(root)
        added = memories.add(scope, [NewFact(text), NewFact(TEXTS[number])][: 1 + number % 2])
        if files(root) != original_files and number % 3 == 0:
            memories.store.undo(memories.store.next_to_undo())
            assert files(root) == original_files, added
        return
    for one in memories.facts(scope, expired=True)[number : number + 1]:
        with suppress(SimplememError):
            if kind == "undo":
                memories.store.undo(one.path[:-3])
            elif kind == "update":
                memories.update(one.id, text, scope)
            elif kind == "forget":
                memories.forget(one.id, scope)
        if kind == "edit" and (place := root / one.path).exists():
            place.write_bytes(place.read_bytes() + f"\nby hand: {text}\n".encode())
        elif kind == "remove":
            (root / one.path).unlink(missing_ok=True)
        memories.store.sync()


@EVERY
@given(ACTS)
def test_scopes_are_apart_and_what_grew_is_what_is_read_anew(
    acts: list[tuple[str, str, str, int]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        with EnhancedStore(root, PLAIN) as store:
            memories = fact_service(store)
            for kind, scope, text, number in acts:
                other_scopes = {
                    other_scope: rows_of(memories, other_scope)
                    for other_scope in SCOPES
                    if other_scope != scope
                }
                do_one_step(memories, root, kind, scope, text, number)
                for other_scope, original_rows in other_scopes.items():
                    assert rows_of(memories, other_scope) == original_rows, (
                        other_scope,
                        kind,
                        scope,
                        text,
                    )
            grown = {any_scope: rows_of(memories, any_scope) for any_scope in SCOPES}
        with EnhancedStore(root, PLAIN) as store:
            assert {
                any_scope: rows_of(fact_service(store), any_scope) for any_scope in SCOPES
            } == grown


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 9)
    | st.sampled_from(["1", "2", "99", "UPDATE", "EXTEND", "DERIVE", "0.9", "I eat fish.", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["existingMemoryId", "relationType", "confidence", "derivedFact"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@EVERY
@given(
    st.lists(
        st.one_of(st.text(max_size=20), st.fixed_dictionaries({"relations": VALUES}), VALUES),
        min_size=1,
        max_size=4,
    )
)
def test_whatever_a_model_says_a_statement_is_kept_and_says_who_decided(answers: list[Any]) -> None:
    left = iter(answers * 20)
    with tempfile.TemporaryDirectory() as folder, ChatService(lambda _: next(left)) as service:
        llm = {"provider": "openai", "model": "m", "url": service.url, "timeout_seconds": 5}
        with EnhancedStore(Path(folder), Settings.model_validate({"llm": llm})) as store:
            memories = fact_service(store)
            for text in ("I eat apples at noon.", "I eat pears at noon.", "I eat plums at noon."):
                added = memories.add("ann", [NewFact(text)])
                assert text in [fact.statement for fact in memories.facts("ann")]
                for event in added.events:
                    assert event["rule"].startswith("rule:") or event["rule"] == "llm:m"
                    ids = {fact.id for fact in memories.facts("ann", expired=True)}
                    assert "previous" not in event or event["previous"]["id"] in ids
                assert added.reconciliation in ("rules", "llm:m")
            facts = memories.facts("ann", expired=True)
            assert all(fact.status == "active" or fact.decided_by for fact in facts)
            assert {fact.statement for fact in facts} >= {
                "I eat apples at noon.",
                "I eat pears at noon.",
            }
