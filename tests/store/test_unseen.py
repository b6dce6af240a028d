"""Who sees part of a vault breaks no link in the rest of it: such a move is refused, and nothing is told of the note."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from simplemem.errors import ReadOnly
from simplemem.store import EnhancedStore

Open = Callable[..., EnhancedStore]
Write = Callable[[str, str | bytes], Path]

VIEWS = [{"hidden": ["Private/"]}, {"only": ["team/"]}]
in_each_view = pytest.mark.parametrize("rules", VIEWS, ids=["hidden", "only"])


@in_each_view
@pytest.mark.parametrize(
    "link",
    [
        "[[team/my plan]]",
        "[[my plan]]",
        "[[My Plan|the plan]]",
        "![[my plan#Goals]]",
        "[plan](../team/my%20plan.md)",
        "[plan](../team/%6dy%20plan.md)",
        "[plan](<../team/my plan.md>)",
        "[[my\u00a0plan]]",
    ],
)
def test_a_move_that_would_break_a_link_in_a_note_that_is_not_seen_is_refused(
    opened: Open, write: Write, vault: Path, rules: dict[str, list[str]], link: str
) -> None:
    write("team/my plan.md", "# Goals\n")
    diary = write("Private/quetzal.md", f"The canary: {link}\n")
    with opened(**rules) as store:
        store.sync()
        for new_name in ("team/our goals", "team/2026/our goals"):
            with pytest.raises(ReadOnly) as refused:
                store.move("my plan", new_name)
            told = str(refused.value.as_dict())
            assert "cannot be moved" in told
            assert "quetzal" not in told
            assert "Private" not in told
        assert store.history() == ()
    assert (vault / "team" / "my plan.md").exists()
    assert diary.read_text() == f"The canary: {link}\n"


@in_each_view
def test_a_link_in_the_properties_of_a_note_that_is_not_seen_counts_too(
    opened: Open, write: Write, rules: dict[str, list[str]]
) -> None:
    write("team/plan.md", "Text.\n")
    write("Private/diary.md", '---\nabout: "[[team/plan]]"\n---\n')
    with opened(**rules) as store:
        store.sync()
        with pytest.raises(ReadOnly):
            store.move("plan", "team/goals")


@in_each_view
def test_a_move_that_breaks_no_link_is_made_and_links_that_are_seen_follow(
    opened: Open, write: Write, vault: Path, rules: dict[str, list[str]]
) -> None:
    write("team/plan.md", "Text.\n")
    write("team/list.md", "See [[team/plan]].\n")
    private = "See [[other]], `[[team/plan]]` and the plan of the team.\n"
    write("Private/diary.md", private)
    write("Private/unreadable.md", b"[[team/list]] \xff\n")
    with opened(**rules) as store:
        store.sync()
        moved = store.move("plan", "team/goals")
        assert moved.rewritten == ("team/list",)
        assert store.undo(moved.version).name == "team/plan"
    assert (vault / "Private" / "diary.md").read_text() == private


@in_each_view
def test_a_bare_link_that_still_means_the_note_does_not_stop_a_move(
    opened: Open, write: Write, rules: dict[str, list[str]]
) -> None:
    write("team/plan.md", "Text.\n")
    write("Private/diary.md", "See [[plan]].\n")
    with opened(**rules) as store:
        store.sync()
        assert store.move("plan", "team/2026/plan").name == "team/2026/plan"


@in_each_view
def test_a_new_name_takes_no_link_of_a_note_that_is_not_seen(
    opened: Open, write: Write, rules: dict[str, list[str]]
) -> None:
    write("team/draft.md", "Text.\n")
    write("Private/long folder name/goals.md", "Mine.\n")
    write("Private/diary.md", "See [[goals]].\n")
    write("zebra.md", "See [[goals]].\n")
    with opened(hidden=["Private/", "zebra"], **({"only": ["team/"]} if "only" in rules else {})) as store:
        store.sync()
        with pytest.raises(ReadOnly):
            store.move("draft", "team/goals")


def test_who_sees_the_whole_vault_moves_the_note_and_the_links_follow(opened: Open, write: Write, vault: Path) -> None:
    write("team/plan.md", "Text.\n")
    write("Private/diary.md", "See [[team/plan]].\n")
    with opened() as store:
        store.sync()
        assert store.move("plan", "team/goals").rewritten == ("Private/diary",)
    assert (vault / "Private" / "diary.md").read_text() == "See [[team/goals]].\n"
