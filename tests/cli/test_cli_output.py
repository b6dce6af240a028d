"""What is printed: safe in any terminal, whole in any pipe, and readable for people."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from simplemem.cli import output
from simplemem.errors import Conflict, NotFound, SimplememError
from simplemem.settings.loading import load_settings
from simplemem.store import EnhancedStore
from simplemem.tools.core import TOOLS


def bold(snippet: str, query: str) -> list[str]:
    """The parts of a snippet that are shown in bold for a query."""
    return [part for part, style in output.highlighted(snippet, query) if style]


def test_control_characters_of_a_note_never_reach_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = "red \x1b[31mtext\x1b[0m \x07\x00 \x9b2J title\x7f \u202egnp.exe\u2066"
    line = output.styled(text).plain
    assert not any(ord(c) < 32 or 0x7F <= ord(c) < 0xA0 or c in "\u202e\u2066" for c in line)
    for compact in (True, False):
        output.print_json({text: [text, "é \u05d0"]}, compact=compact)
        printed = capsys.readouterr().out
        assert not any(
            ord(c) < 32 or 0x7F <= ord(c) < 0xA0 or c in "\u202e\u2066"
            for c in printed.replace("\n", "")
        )
        assert json.loads(printed) == {text: [text, "é \u05d0"]} and "é \u05d0" in printed
    assert "\u241b[31m" in line and output.plain("a\tb\r\nc\nd") == "a\tb\nc\nd"


@pytest.mark.parametrize(
    ("snippet", "query", "marked"),
    [
        (
            "The launches were launched; a launch is no lunch.",
            "launch",
            ["launch", "launch", "launch"],
        ),
        ("draft todo budget", "budget tag:todo -draft", ["budget"]),
        ("明日は気球の発射です", "気球", ["気球"]),
        ("the budget of the mooring", "what was the budget of it", ["budget"]),
        ("İİ été", "été", ["été"]),
    ],
)
def test_the_words_of_a_query_stand_out(snippet: str, query: str, marked: list[str]) -> None:
    assert bold(snippet, query) == marked


def test_a_table_in_a_pipe_is_cut_nowhere_and_ends_in_no_spaces(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    long = "x" * 500
    output.Screen().table([[long, "b"], ["a", ""]])
    assert capsys.readouterr().out == f"{long}  b\na\n"


def test_in_a_narrow_terminal_a_column_that_shrinks_gives_way_to_the_others(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    rows = [["n" * 20, "", "t" * 30, "2026"]]
    columns = (output.WHOLE, output.WHOLE, output.SHRINKS, output.WHOLE)
    output.Screen().table(rows, columns=columns)
    assert capsys.readouterr().out == f"{'n' * 20}  {'t' * 11}…  2026\n"


@pytest.mark.parametrize("width", [80, 100])
def test_no_word_is_broken_and_no_label_cut_in_a_terminal(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    words = [f"balloon{number}" for number in range(60)]
    path = "/a/very" * 20
    screen = output.Screen()
    screen.say("    ", " ".join(words))
    screen.facts({"notes with": " ".join(words), "a label of many letters": path})
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= width or path in line for line in lines)
    assert [word for line in lines for word in line.split() if word in words] == [*words, *words]
    assert {line[:4] for line in lines[:3]} == {"    "} and "a label of many letters" in "".join(
        lines
    )
    assert any(path in line for line in lines)


@pytest.mark.parametrize(
    ("number", "expected"),
    [(826_040, "0.8 MB"), (271_000_000, "271 MB"), (4_100, "4 kB"), (12_345_678, "12 MB")],
)
def test_sizes_are_said_as_people_say_them(number: int, expected: str) -> None:
    assert output.megabytes(number) == expected
    assert (output.amount(4389), output.amount(3_200_000)) == ("4,389", "3.2 million")


def _create_again(store: EnhancedStore) -> None:
    store.create("Twice", "One.")
    store.create("Twice", "Two.")


def _read_deleted(store: EnhancedStore) -> None:
    store.create("Gone", "One.")
    store.delete("Gone")
    store.read("Gone")


def _read_deleted_outside(store: EnhancedStore) -> None:
    store.create("Gone", "One.")
    (store.root / "Gone.md").unlink()
    store.sync()
    store.read("Gone")


@pytest.mark.parametrize(
    ("fail", "hint"),
    [
        (_create_again, "`simplemem edit` changes it; --overwrite replaces it"),
        (_read_deleted, "`simplemem undo v000002` restores it."),
        (_read_deleted_outside, "`simplemem restore 'Gone'` restores it."),
        (lambda store: store.read("daily"), "`simplemem daily` creates it."),
        (lambda store: store.read("Nothing"), "`simplemem search` finds notes by their text;"),
        (lambda store: store.undo("v000009"), "The history is empty."),
        (lambda store: store.next_to_undo(), "Undo edits of your own in your editor."),
    ],
)
def test_a_hint_on_the_command_line_names_commands_not_tools(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    fail: Callable[[EnhancedStore], object],
    hint: str,
) -> None:
    with (
        EnhancedStore(tmp_path, load_settings({"embed.provider": "none"})) as store,
        pytest.raises(SimplememError) as failure,
    ):
        fail(store)
    output.print_error(failure.value, as_json=False)
    printed = " ".join(capsys.readouterr().err.split())
    assert hint in printed
    assert not any(tool.name in printed for tool in TOOLS)


def test_an_error_is_a_line_a_hint_and_the_near_names(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_error(
        NotFound("No such note: apolo.", hint="See `list`.", candidates=["apollo"]), as_json=False
    )
    printed = capsys.readouterr()
    assert (
        printed.out == ""
        and printed.err == "error: No such note: apolo.\nnear: apollo\nhint: See `list`.\n"
    )
    output.print_error(
        Conflict("It changed.", current_sha256="ab", diff="-a\r\n+b\n"), as_json=False
    )
    assert capsys.readouterr().err == "error: It changed.\n-a\n+b\n"


def test_a_recent_moment_is_shown_as_its_age_and_any_other_as_its_date() -> None:
    now = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
    ages = {
        timedelta(seconds=61): "1 minute ago",
        timedelta(hours=5): "5 hours ago",
        timedelta(days=6, hours=23): "6 days ago",
    }
    assert {age: output.ago((now - age).isoformat(), now) for age in ages} == ages
    assert output.ago("2025-12-24T12:00:00Z", now).startswith("2025-12-24")
    assert output.ago("2026-12-24T12:00:00Z", now).startswith("2026-12-24")
    assert output.ago("some day", now) == "some day"


@pytest.mark.parametrize(
    "cell",
    [
        "plain",
        "\u6c17\u7403",
        "e\u0301",
        "\U0001f469\u200d\U0001f467",
        "a\u00a0b",
        "\x1b[31m",
        "two\nlines",
        "a\ttab",
        " x ",
        "\u202e",
        "",
    ],
)
def test_a_pipe_gets_without_rich_what_rich_would_print(
    cell: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    printed = []
    for width in (None, "100000"):  # with a width, Rich prints
        if width:
            monkeypatch.setenv("COLUMNS", width)
        screen = output.Screen()
        screen.table([[cell, ("b", "bold")], ["a long one", ""], ["", cell]])
        screen.say(("note: ", "yellow"), cell)
        screen.say()
        screen.facts({"label": cell, "another": "x"})
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
