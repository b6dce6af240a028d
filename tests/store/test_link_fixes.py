"""Links that lead nowhere: what they may mean, what of that is sure, and how they are led there and back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from simplemem.errors import Conflict
from simplemem.models import Finding
from simplemem.store import EnhancedStore

Write = Callable[[str, str | bytes], Path]


def broken(store: EnhancedStore) -> Finding:
    store.sync()
    (finding,) = store.doctor(only=["links"])
    return finding


def files(vault: Path) -> dict[str, bytes]:
    """Every file of the vault that is not ours."""
    found = {
        path.relative_to(vault).as_posix(): path for path in vault.rglob("*") if path.is_file()
    }
    return {
        path: file.read_bytes() for path, file in found.items() if not path.startswith(".simplemem")
    }


def fixed(store: EnhancedStore, path: str) -> str:
    """What a note says once everything sure is fixed, and that undoing it gives back every byte."""
    store.sync()
    before = files(store.root)
    plan = store.plan_fixes()
    assert files(store.root) == before, "a plan writes nothing"
    done = store.fix(plan, who="tests")
    text = files(store.root)[path].decode()
    assert [finding.message for finding in store.doctor() if finding.level == "error"] == []
    if done.version:
        assert {(entry.tool, entry.who) for entry in store.history()[: len(done.changed)]} == {
            ("doctor", "tests")
        }
        store.undo(done.version)
        assert files(store.root) == before
    return text


def test_what_the_doctor_mended_is_undone_to_the_byte(
    plain_store: EnhancedStore, write: Write
) -> None:
    write("people/Ada.md", "---\naliases: [Countess]\n---\nAda")
    heads = [
        b"",
        b"\xef\xbb\xbf",
        b"---\r\nup: '[[team/Ada]]'   # whose\r\na:   x\r\n---\r\n",
        b"---\nb: [1,2\n---\n",
    ]
    ends = [
        b"",
        b"\n",
        b"\r\n\r\n",
        b"\n\t \n",
        b" %% [[team/Ada]] %%\x00",
        b"\n```\n[[team/Ada]]\n",
    ]
    for number, (head, end) in enumerate((head, end) for head in heads for end in ends):
        write(
            f"n{number}.md",
            head
            + b"[[team/Ada]]\r\n[it](team/Ada.md) [[Countess]]\n| [[Countess]] |\xc3\xa9"
            + end,
        )
    plain_store.sync()
    before, plan = files(plain_store.root), plain_store.plan_fixes()
    done = plain_store.fix(plan)
    assert len(done.changed) == 3 * 5, "none with a broken header or a NUL"
    assert files(plain_store.root) != before
    plain_store.undo(done.version)
    assert files(plain_store.root) == before


# -- by the history


def test_a_link_to_a_note_that_was_moved_is_led_to_where_the_history_says(
    plain_store: EnhancedStore, write: Write
) -> None:
    plain_store.create("plans/Apollo", "To the moon.")
    plain_store.move("plans/Apollo", "archive/Apollo 11")
    plain_store.move("archive/Apollo 11", "archive/Apollo eleven")
    write(
        "diary.md",
        "one\r\n\r\nAbout [[Apollo]], [[plans/Apollo#Crew|the crew]] and [it](plans/Apollo.md).",
    )
    plain_store.sync()
    findings = plain_store.doctor(only=["links"])
    told = {(finding.level, finding.line, finding.candidates) for finding in findings}
    assert told == {("warning", 3, ("archive/Apollo eleven",))}
    assert "it was moved to archive/Apollo eleven in v000003" in findings[0].message
    assert findings[0].fix == "point [[Apollo]] to archive/Apollo eleven"
    assert fixed(plain_store, "diary.md") == (
        "one\r\n\r\nAbout [[Apollo eleven]], [[archive/Apollo eleven#Crew|the crew]] and [it](archive/Apollo%20eleven.md)."
    )


def test_a_deleted_note_is_brought_back_by_a_person_only(
    plain_store: EnhancedStore, write: Write
) -> None:
    plain_store.create("Apollo", "To the moon.")
    write("diary.md", "[[Apollo]]\n")
    plain_store.delete("Apollo")
    finding = broken(plain_store)
    assert (
        "Apollo was deleted in v000002, and `simplemem undo v000002` restores it" in finding.message
    )
    assert (finding.level, finding.fix, plain_store.plan_fixes().changes) == ("warning", "", ())


# -- by names


@pytest.mark.parametrize(
    ("others", "before", "after"),
    [
        (
            {"people/Ada.md": "Ada", "img/plan.png": "x"},
            "[[team/ADA]] ![[old/plan.png]]",
            "[[people/Ada]] ![[img/plan.png]]",
        ),
        ({"people/Ada.md": ""}, "`[[team/Ada]]` [[team/Ada]]", "`[[team/Ada]]` [[people/Ada]]"),
        (
            {
                "people/Ada.md": "---\naliases: [Countess]\n---\n",
                "log/1.md": "---\ntitle: The long flight\n---\n",
            },
            "[[Countess]] [[countess#Life|her]] [[The long flight]]\n\n| a |\n| --- |\n| [[Countess]] |",
            "[[Ada|Countess]] [[Ada#Life|her]] [[1|The long flight]]\n\n| a |\n| --- |\n| [[Ada\\|Countess]] |",
        ),
        (
            {"people/Ada.md": "---\naliases: Countess\n---\n"},
            '---\nup: "[[team/Ada]]"  # whose\nof: ["[[Countess]]"]\n---\ntext',
            '---\nup: "[[people/Ada]]"  # whose\nof: ["[[Ada|Countess]]"]\n---\ntext',
        ),
        (
            {
                "people/Ada.sync-conflict-20260101-120000-ABCDEFG.md": "[[nowhere]]",
                "people/Ada.md": "",
            },
            "[[team/Ada]]",
            "[[people/Ada]]",
        ),
    ],
)
def test_a_link_is_led_to_the_only_note_of_that_name_alias_or_title(
    plain_store: EnhancedStore, write: Write, others: dict[str, str], before: str, after: str
) -> None:
    for path, text in others.items():
        write(path, text)
    write("a.md", before)
    assert fixed(plain_store, "a.md") == after
    plain_store.fix(plain_store.plan_fixes())
    assert plain_store.plan_fixes().changes == (), "a second time finds nothing"


@pytest.mark.parametrize(
    ("there", "asked", "offered"),
    [
        (("x/Ada", "y/Ada"), "team/Ada", True),  # two of them
        (("y/README",), "team/README", True),  # a name that says nothing
        (("x/Café notes",), "Cafe-notes", True),
        (("x/Flight 2 Dipper",), "Flight 2 Dippre", True),
        (("x/京都の計画",), "京都の計書", True),
        (("x/Chapter 1",), "Chapter 2", False),
        (("x/2026-01-24",), "2026-01-25", False),
        (("x/Ada",), "Eve", False),
    ],
)
def test_names_that_are_not_alone_or_a_slip_away_are_offered_and_never_taken(
    plain_store: EnhancedStore, write: Write, there: tuple[str, ...], asked: str, offered: bool
) -> None:
    for name in there:
        write(f"{name}.md", "")
    write("a.md", f"[[{asked}]]\n")
    finding = broken(plain_store)
    assert set(finding.candidates) == (set(there) if offered else set())
    assert (finding.level, finding.fix) == ("warning" if offered else "note", "")


def test_a_link_that_could_mean_several_notes_is_noted(
    plain_store: EnhancedStore, write: Write
) -> None:
    write("a.md", "one\n\n[[Twin]] and [[{{title}}]] of a template\n")
    write("x/Twin.md", "[[a]] [[#Life]] https://example.org\n")
    write("y/Twin.md", "")
    finding = broken(plain_store)
    assert (finding.level, finding.path, finding.line) == ("note", "a.md", 3)
    assert finding.message == "[[Twin]] could mean x/Twin, y/Twin"


def test_a_note_whose_header_cannot_be_read_is_not_written(
    plain_store: EnhancedStore, write: Write
) -> None:
    write("people/Ada.md", "")
    write("a.md", "---\nx: [\n---\n[[team/Ada]]\n")
    finding = broken(plain_store)
    assert (finding.candidates, finding.fix, plain_store.plan_fixes().changes) == (
        ("people/Ada",),
        "",
        (),
    )


# -- as one change


def test_a_note_that_changed_since_it_was_shown_stops_all_of_it(
    plain_store: EnhancedStore, write: Write
) -> None:
    write("people/Ada.md", "Ada")
    write("a.md", "[[team/Ada]]\n")
    write("b.md", "[[team/Ada]] plum\n")
    plain_store.sync()
    plan = plain_store.plan_fixes()
    assert len(plan.changes) == 2
    write("b.md", "[[team/Ada]] plum\nand more\n")
    before = files(plain_store.root)
    with pytest.raises(Conflict):
        plain_store.fix(plan)
    assert files(plain_store.root) == before and plain_store.history() == ()
