"""A capture is added once to the note of the setting, with the time at which it was made."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from simplemem.errors import Invalid
from simplemem.features.capture import Capture, add_capture, format_capture, read_made
from simplemem.note.dates import local_now
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

MORNING = datetime.fromisoformat("2026-11-29T09:41")
WHO = {"who": "ida", "tool": "page"}


def open_vault(root: Path, note: str = "") -> EnhancedStore:
    """Open a vault whose captures go to a note; "" stands for the daily note."""
    return EnhancedStore(
        root, Settings(write={"capture": note}, embed={"provider": "none"}), person=True
    )


@pytest.mark.parametrize(
    ("text", "item"),
    [
        ("buy rope", "- 09:41 buy rope"),
        ("two\r\nlines\r\n\r\nand more", "- 09:41 two\n  lines\n\n  and more"),
        ("- [ ] a task", "- [ ] a task"),
        ("-5 degrees", "- 09:41 -5 degrees"),
    ],
)
def test_a_capture_becomes_a_list_item_with_its_time(text: str, item: str) -> None:
    assert format_capture(text, MORNING, MORNING) == item


def test_a_capture_of_another_day_has_its_date() -> None:
    later = MORNING.replace(day=30)
    assert format_capture("late", MORNING, later) == "- 2026-11-29 09:41 late"


def test_a_time_that_cannot_be_or_is_yet_to_come_is_the_time_of_arrival() -> None:
    for text in ("", "yesterday", "9999-01-01T00:00"):
        assert read_made(text) <= local_now()
    assert read_made("2026-11-01T09:41:00") == MORNING.replace(day=1)


def test_captures_are_added_to_the_note_of_the_setting_each_once(tmp_path: Path) -> None:
    with open_vault(tmp_path, "inbox/Captures") as store:
        for _ in range(2):
            name = add_capture(store, Capture("capture-1", "first", local_now()), WHO)
        add_capture(store, Capture("capture-2", "second", local_now()), WHO)
        assert name == "inbox/Captures"

    with open_vault(tmp_path, "inbox/Captures") as store:  # also after a restart
        add_capture(store, Capture("capture-1", "first", local_now()), WHO)
        text = store.read("inbox/Captures").content
    assert text.count("first") == text.count("second") == 1


def test_without_the_setting_captures_are_added_to_the_daily_note(tmp_path: Path) -> None:
    with open_vault(tmp_path) as store:
        name = add_capture(store, Capture("capture-1", "first", local_now()), WHO)
        assert name == store.daily_name()
        assert store.read(name).content.endswith(" first\n")


@pytest.mark.parametrize(
    "capture",
    [
        Capture("capture-1", "  \n", MORNING),
        Capture("x", "text", MORNING),
        Capture("capture 1\nforged", "text", MORNING),
        Capture("capture-1", "x" * 100_001, MORNING),
    ],
)
def test_a_capture_without_text_or_id_or_too_long_is_refused(
    tmp_path: Path, capture: Capture
) -> None:
    with open_vault(tmp_path) as store, pytest.raises(Invalid):
        add_capture(store, capture, WHO)
