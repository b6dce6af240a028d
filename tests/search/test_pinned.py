"""Pinned notes and the constraints of the user: first in every context pack that may show them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from simplemem.models import Filter, Pack
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

Write = Callable[[str, str | bytes], Path]
PLAIN = Settings.model_validate({"embed": {"provider": "none"}})


def names(packed: Pack) -> list[str]:
    return [str(item["name"]) for item in packed.items]


@pytest.fixture
def pinned(plain_store: EnhancedStore, write: Write) -> EnhancedStore:
    for k in range(8):
        write(f"log/n{k}.md", f"The crane was greased on day {k} of the month.")
    write("rules/metric.md", "---\npinned: true\n---\n\nAlways answer in metric units.\n")
    write("rules/latex.md", "---\npinned: true\ntype: constraint\n---\n\nNo latex, ever.\n")
    write("rules/old.md", "---\npinned: false\n---\n\nThe old rule about ropes.\n")
    write(
        "profiles/default.md",
        "---\ntype: profile\n---\n\n## Constraints\n\n"
        "- allergic to nuts %%severity=strict since=2026-01-26%% [[log/n1#^turn]]\n"
        "- vegan %%severity=firm since=2026-01-26 disputed=2026-02-01%% [[log/n2]]\n\n"
        "## Preferences\n\n- I prefer tea\n",
    )
    plain_store.sync()
    return plain_store


def test_pinned_notes_and_the_constraints_of_the_user_come_first_whatever_is_asked(
    pinned: EnhancedStore,
) -> None:
    for question in ("crane greased", "who won the world cup"):
        packed = pinned.context(question)
        assert names(packed)[:3] == ["profiles/default", "rules/latex", "rules/metric"]
        assert packed.pinned == 3
        assert [item["via"] for item in packed.items[:3]] == [
            "constraint of the user",
            "pinned",
            "pinned",
        ]
        assert "allergic to nuts\n" in packed.text
        assert "ropes" not in packed.text
        assert "tea" not in packed.text
    assert not packed.has_found


def test_a_constraint_that_is_disputed_says_so(pinned: EnhancedStore) -> None:
    assert "disputed=2026-02-01" in pinned.context("crane greased").text


def test_only_pinned_notes_of_the_filter_come_first(pinned: EnhancedStore) -> None:
    assert pinned.context("crane", filter=Filter.of(prefix="log/")).pinned == 0
    packed = pinned.context("crane type:constraint")
    assert names(packed) == ["rules/latex"]
    assert names(pinned.context('"the crane"', filter=Filter.of(prefix="rules/")))[:2] == [
        "rules/latex",
        "rules/metric",
    ]


def test_a_note_that_is_unpinned_by_hand_is_a_note_like_any_other(
    pinned: EnhancedStore, write: Write
) -> None:
    write("rules/latex.md", "No latex, ever.\n")
    assert "latex" not in pinned.context("crane greased").text


def test_hidden_and_excluded_pinned_notes_stay_hidden(vault: Path, write: Write) -> None:
    write("Private/rule.md", "---\npinned: true\n---\n\nThe quetzal rule.\n")
    write("node_modules/rule.md", "---\npinned: true\n---\n\nThe zeppelin rule.\n")
    write("open.md", "---\npinned: true\n---\n\nThe open rule.\n")
    access = PLAIN.access.model_copy(update={"hidden": ("Private/",)})
    with EnhancedStore(vault, PLAIN.model_copy(update={"access": access})) as store:
        store.sync()
        assert names(store.context("crane")) == ["open"]
    with EnhancedStore(vault, PLAIN) as store:
        store.sync()
        assert names(store.context("crane")) == ["Private/rule", "open"]


def test_of_many_pinned_notes_the_profile_and_the_constraints_stay(
    pinned: EnhancedStore, write: Write
) -> None:
    for k in range(60):
        write(f"a/n{k:02}.md", f"---\npinned: true\n---\n\nRule number {k} of the house.\n")
    pinned.sync()
    packed = pinned.context("crane greased", budget_tokens=4_000)
    assert names(packed)[:3] == ["profiles/default", "rules/latex", "a/n00"]
    assert 3 < packed.pinned <= 51
