"""Whoever sees part of a vault breaks no link that the rest of it has: such a change is refused, and tells no more."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from simplemem.errors import ReadOnly
from simplemem.index.notes import named_in_memory
from simplemem.note.note import read_note
from simplemem.obsidian.settings import resolve_link
from simplemem.store import EnhancedStore

Open = Callable[..., EnhancedStore]
Write = Callable[[str, str | bytes], Path]
Rules = dict[str, list[str]]

SECRET = "quetzal"
VIEWS: dict[str, Rules] = {"hidden": {"hidden": ["Private/"]}, "only": {"only": ["team/"]}}
in_each_view = pytest.mark.parametrize("rules", VIEWS.values(), ids=VIEWS)

LINKS_TO_MY_PLAN = [
    "[[team/my plan]]",
    "[[my plan]]",
    "[[My Plan|the plan]]",
    "![[my plan#Goals]]",
    "[plan](../team/my%20plan.md)",
    "[plan](../team/%6dy%20plan.md)",
    "[plan](<../team/my plan.md>)",
    "[[my\u00a0plan]]",
]


def notes_of(vault: Path) -> dict[str, str]:
    """Every note that is no copy of ours, with its text."""
    paths = (path for path in vault.rglob("*.md") if ".simplemem" not in path.parts)
    return {path.relative_to(vault).as_posix(): path.read_text() for path in paths}


def check_refused(vault: Path, change: Callable[[], Any]) -> None:
    """Assert that a change is refused, that it changes nothing, and that the error names nothing that is not seen."""
    before = notes_of(vault)
    with pytest.raises(ReadOnly) as refused:
        change()
    told = str(refused.value.as_dict())
    assert "hidden folder" in told
    assert SECRET not in told
    assert "Private" not in told
    assert notes_of(vault) == before


def targets_of(vault: Path, path: str) -> list[str | None]:
    """The files that the links of a note lead to in the whole vault."""
    files = [
        file.relative_to(vault).as_posix()
        for file in vault.rglob("*.*")
        if ".simplemem" not in file.parts
    ]
    named = named_in_memory(files)
    return [
        resolve_link(link.target, path, named).path
        for link in read_note((vault / path).read_bytes()).links
    ]


# -- moves


@in_each_view
@pytest.mark.parametrize("link", LINKS_TO_MY_PLAN)
def test_a_move_that_would_break_a_link_in_a_note_that_is_not_seen_is_refused(
    opened: Open, write: Write, vault: Path, rules: Rules, link: str
) -> None:
    write("team/my plan.md", "# Goals\n")
    write(f"Private/{SECRET}.md", f"The canary: {link}\n")
    with opened(**rules) as store:
        store.sync()
        check_refused(vault, lambda: store.move("my plan", "team/our goals"))
        check_refused(vault, lambda: store.move("my plan", "team/2026/our goals"))
        assert store.history() == ()


@in_each_view
@pytest.mark.parametrize(
    ("name", "link"),
    [
        ("my_plan", r"[plan](../team/my\_plan.md)"),
        ("café", "[plan](../team/caf&eacute;.md)"),
        ("++", "[[team/++]]"),
    ],
)
def test_a_link_that_spells_a_name_in_another_way_counts_too(
    opened: Open, write: Write, vault: Path, rules: Rules, name: str, link: str
) -> None:
    write(f"team/{name}.md", "Text.\n")
    write(f"Private/{SECRET}.md", f"{link}\n")
    with opened(**rules) as store:
        store.sync()
        check_refused(vault, lambda: store.move(f"team/{name}", "team/goals"))


@in_each_view
def test_a_link_in_the_properties_of_a_note_that_is_not_seen_counts_too(
    opened: Open, write: Write, vault: Path, rules: Rules
) -> None:
    write("team/plan.md", "Text.\n")
    write("Private/diary.md", '---\nabout: "[[team/plan]]"\n---\n')
    with opened(**rules) as store:
        store.sync()
        check_refused(vault, lambda: store.move("plan", "team/goals"))


@in_each_view
def test_a_move_that_breaks_no_link_is_made_and_links_that_are_seen_follow(
    opened: Open, write: Write, vault: Path, rules: Rules
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
    opened: Open, write: Write, rules: Rules
) -> None:
    write("team/plan.md", "Text.\n")
    write("Private/diary.md", "See [[plan]].\n")
    with opened(**rules) as store:
        store.sync()
        assert store.move("plan", "team/2026/plan").name == "team/2026/plan"


@in_each_view
def test_a_new_name_takes_no_link_of_a_note_that_is_not_seen(
    opened: Open, write: Write, vault: Path, rules: Rules
) -> None:
    write("team/draft.md", "Text.\n")
    write("Private/long folder name/goals.md", "Mine.\n")
    write("Private/diary.md", "See [[goals]].\n")
    write("zebra.md", "See [[goals]].\n")
    with opened(hidden=["Private/", "zebra"], only=rules.get("only", [])) as store:
        store.sync()
        check_refused(vault, lambda: store.move("draft", "team/goals"))


def test_who_sees_the_whole_vault_moves_the_note_and_the_links_follow(
    opened: Open, write: Write, vault: Path
) -> None:
    write("team/plan.md", "Text.\n")
    write("Private/diary.md", "See [[team/plan]].\n")
    with opened() as store:
        store.sync()
        assert store.move("plan", "team/goals").rewritten == ("Private/diary",)
    assert (vault / "Private" / "diary.md").read_text() == "See [[team/goals]].\n"


@in_each_view
@pytest.mark.parametrize(
    "link", ["[[team/trip/rome]]", "[[trip/rome]]", "[x](../team/trip/rome.md)"]
)
def test_a_link_to_one_of_the_notes_that_move_together_stops_them_all(
    opened: Open, write: Write, vault: Path, rules: Rules, link: str
) -> None:
    for name in ("athens", "paris", "rome"):
        write(f"team/trip/{name}.md", "Text.\n")
    write(f"Private/{SECRET}.md", f"{link}\n")
    new_paths = {
        f"team/trip/{name}.md": f"team/past/{name}.md" for name in ("athens", "paris", "rome")
    }
    with opened(**rules) as store:
        store.sync()
        check_refused(vault, lambda: store.extension.move(new_paths))
        del new_paths["team/trip/rome.md"]
        assert [moved.name for moved in store.extension.move(new_paths)] == [
            "team/past/athens",
            "team/past/paris",
        ]


# -- what takes a move back


@pytest.fixture
def moved_since(write: Write) -> Callable[[EnhancedStore], str]:
    """Move a note in a view, and let a note that the view does not show link to its new name."""

    def move(store: EnhancedStore) -> str:
        write("team/plan.md", "Text.\n")
        write("team/list.md", "A list.\n")
        store.sync()
        version = store.move("plan", "team/goals", who="agent 1").version
        write(f"Private/{SECRET}.md", "See [[team/goals]].\n")
        return version

    return move


@in_each_view
def test_an_undo_that_would_break_a_link_in_a_note_that_is_not_seen_is_refused(
    opened: Open,
    write: Write,
    vault: Path,
    rules: Rules,
    moved_since: Callable[[EnhancedStore], str],
) -> None:
    with opened(**rules) as store:
        version = moved_since(store)
        check_refused(vault, lambda: store.undo(version))
        check_refused(vault, lambda: store.undo("team/goals"))
        write(f"Private/{SECRET}.md", "See [[goals of others]].\n")
        undone = store.undo(version)
        assert undone.name == "team/plan"
        write(f"Private/{SECRET}.md", "See [[team/plan]].\n")
        check_refused(vault, lambda: store.undo(undone.version))


@in_each_view
def test_an_undo_of_all_leaves_a_move_whose_link_is_not_seen_and_takes_back_the_rest(
    opened: Open, vault: Path, rules: Rules, moved_since: Callable[[EnhancedStore], str]
) -> None:
    with opened(**rules) as store:
        version = moved_since(store)
        store.update("team/list", append="More.", who="agent 1")
        shown = store.undo_all("agent", version, preview=True)
        assert [note.name for note in shown.notes] == ["team/list"]
        assert {note.name for note in shown.left} == {"team/goals", "team/plan"}
        assert SECRET not in repr(shown)
        assert "Private" not in repr(shown)
        store.undo_all("agent", version, expected=shown.plan)
    assert notes_of(vault) == {
        "team/goals.md": "Text.\n",
        "team/list.md": "A list.\n",
        f"Private/{SECRET}.md": "See [[team/goals]].\n",
    }


# -- new notes


CREATED: dict[str, tuple[Mapping[str, str], str, bool]] = {
    "a bare link would lead to the new note": (
        {"team/old/archive/plan.md": "[[plan]]"},
        "team/plan",
        True,
    ),
    "so would the end of a path": (
        {"team/old/archive/x/plan.md": "[[x/plan]]"},
        "team/x/plan",
        True,
    ),
    "so would a whole path": ({"team/old/archive/x/plan.md": "[[x/plan.md]]"}, "x/plan", True),
    "the link is to the path of the other note": (
        {"team/old/archive/plan.md": "[[archive/plan]]"},
        "team/plan",
        False,
    ),
    "the link leads to the other note as before": (
        {"team/plan.md": "[[plan]]"},
        "team/old/archive/plan",
        False,
    ),
    "the link leads nowhere": ({"team/other.md": "[[plan]]"}, "team/plan", False),
    "the link is code": ({"team/old/archive/plan.md": "`[[plan]]`"}, "team/plan", False),
}


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize(("there", "name", "is_refused"), CREATED.values(), ids=CREATED)
def test_a_new_note_takes_no_link_of_a_note_that_is_not_seen(
    opened: Open,
    write: Write,
    vault: Path,
    there: Mapping[str, str],
    name: str,
    is_refused: bool,
    overwrite: bool,
) -> None:
    for path, link in there.items():
        write(path, "Text.\n")
        write(f"Private/{SECRET}.md", f"See {link}.\n")
    with opened(hidden=["Private/"]) as store:
        store.sync()
        if is_refused:
            check_refused(vault, lambda: store.create(name, "Text.", overwrite=overwrite))
        else:
            assert store.create(name, "Text.", overwrite=overwrite).name == name


def test_a_new_note_takes_no_link_that_leads_to_a_note_that_is_not_seen(
    opened: Open, write: Write, vault: Path
) -> None:
    write("Private/a long folder/plan.md", "Text.\n")
    write(f"{SECRET}.md", "See [[plan]].\n")
    with opened(only=["team/"]) as store:
        store.sync()
        check_refused(vault, lambda: store.create("team/plan", "Text."))
        assert store.create("team/another plan", "Text.").changed


def test_a_folder_above_the_view_prefers_the_notes_below_it(
    opened: Open, write: Write, vault: Path
) -> None:
    write("Plan.md", "Text.\n")
    write(f"work/{SECRET}.md", "See [[a/plan]].\n")
    write("z/a/plan.md", "Text.\n")
    with opened(only=["work/team/"]) as store:
        store.sync()
        assert store.create("work/team/plan", "Text.").changed
        check_refused(vault, lambda: store.create("work/team/a/plan", "Text."))


# -- the links of the note that moves


RELATIVE_LINKS = {
    "wikilink": (f"[[../Private/{SECRET}]]", f"[[../../Private/{SECRET}]]"),
    "with its extension": (f"[[../Private/{SECRET}.md|x]]", f"[[../../Private/{SECRET}.md|x]]"),
    "embed": (f"![[../Private/{SECRET}#Part]]", f"![[../../Private/{SECRET}#Part]]"),
    "Markdown": (f"[x](../Private/{SECRET}.md)", f"[x](../../Private/{SECRET}.md)"),
    "with a blank": ("[x](../Private/my%20diary.md)", "[x](../../Private/my%20diary.md)"),
    "attachment": ("![x](../Private/photo.png)", "![x](../../Private/photo.png)"),
    "property": (
        f'---\nabout: "[[../Private/{SECRET}]]"\n---\n',
        f'---\nabout: "[[../../Private/{SECRET}]]"\n---\n',
    ),
}


@in_each_view
@pytest.mark.parametrize("is_there", [True, False], ids=["there", "not there"])
@pytest.mark.parametrize(("before", "after"), RELATIVE_LINKS.values(), ids=RELATIVE_LINKS)
def test_relative_links_to_what_is_not_seen_follow_alike_whether_or_not_it_is_there(
    opened: Open, write: Write, vault: Path, rules: Rules, before: str, after: str, is_there: bool
) -> None:
    write("team/plan.md", before)
    for name in (f"{SECRET}.md", "my diary.md", "photo.png") if is_there else ():
        write(f"Private/{name}", b"Text.\n")
    meant = targets_of(vault, "team/plan.md")
    assert (None not in meant) == is_there
    with opened(**rules) as store:
        store.sync()
        moved = store.move("plan", "team/2026/plan")
        assert moved.rewritten == ("team/2026/plan",)
        assert (vault / "team/2026/plan.md").read_text() == after
        assert targets_of(vault, "team/2026/plan.md") == meant
        store.undo(moved.version)
    assert (vault / "team/plan.md").read_text() == before


@in_each_view
@pytest.mark.parametrize(
    "link",
    [
        f"[[Private/{SECRET}]]",
        f"[[/Private/{SECRET}]]",
        f"[[{SECRET}]]",
        "[[./nothing]]",
        "[[../../outside]]",
    ],
)
def test_links_that_mean_the_same_in_every_folder_or_nothing_stay_as_they_are(
    opened: Open, write: Write, vault: Path, rules: Rules, link: str
) -> None:
    write("team/plan.md", f"See {link}.\n")
    write(f"Private/{SECRET}.md", "Text.\n")
    with opened(**rules) as store:
        store.sync()
        assert store.move("plan", "team/2026/plan").rewritten == ()
    assert (vault / "team/2026/plan.md").read_text() == f"See {link}.\n"


@in_each_view
@pytest.mark.parametrize(
    ("name", "new_name"),
    [("team/a/plan", "team/b/c/plan"), ("team/b/c/plan", "team/a/plan")],
    ids=["a link to what is not seen", "a link that would lead to it"],
)
def test_a_move_is_refused_if_a_link_of_the_note_would_change_between_what_is_seen_and_what_is_not(
    opened: Open, write: Write, vault: Path, rules: Rules, name: str, new_name: str
) -> None:
    write(f"{name}.md", "See [[diary]].\n")
    write("Private/diary.md", "Text.\n")
    write("team/b/c/diary.md", "Text.\n")
    with opened(**rules) as store:
        store.sync()
        before = notes_of(vault)
        with pytest.raises(ReadOnly, match="hidden folder"):
            store.move(name, new_name)
        assert notes_of(vault) == before
