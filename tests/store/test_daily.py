"""Daily notes and templates, by Obsidian's own settings; open tasks as a list and a filter."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest

from simplemem.errors import AlreadyExists, NotFound
from simplemem.models import Filter
from simplemem.note.note import read_note
from simplemem.obsidian.moment_format import format_date
from simplemem.obsidian.settings import ObsidianSettings
from simplemem.obsidian.templates import fill_template
from simplemem.store import EnhancedStore
from simplemem.vault.obsidian import read_obsidian_settings

_DAY = datetime(2026, 3, 1, 9, 5, 7)  # noqa: DTZ001


def obsidian(vault: Path, name: str, **settings: str) -> None:
    (vault / ".obsidian").mkdir(parents=True, exist_ok=True)
    (vault / f".obsidian/{name}.json").write_text(json.dumps(settings))


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ("YYYY-MM-DD", "2026-03-01"),
        ("YYYY/MM-MMMM/dddd, D MMM YY", "2026/03-March/Sunday, 1 Mar 26"),
        ("[Week] W [of] GGGG", "Week 9 of 2026"),
        ("Do [D]", "1st D"),
        ("H:mm:ss hh A", "9:05:07 09 AM"),
        ("DDDD", "060"),
    ],
)
def test_formats_of_moment_are_read_as_obsidian_reads_them(form: str, said: str) -> None:
    assert format_date(form, _DAY) == said


def test_the_daily_note_has_the_name_and_the_template_of_obsidians_settings(tmp_path: Path) -> None:
    assert ObsidianSettings().daily_note(_DAY) == "2026-03-01"
    obsidian(
        tmp_path,
        "daily-notes",
        folder="Journal",
        format="YYYY/[Day] DDDD",
        template="Templates/Day",
    )
    (tmp_path / "Templates").mkdir()
    (tmp_path / "Templates/Day.md").write_bytes(
        b"---\r\ntags: [day]\r\n---\r\n# {{title}} {{ date:D.M. }}\r\n"
    )
    with EnhancedStore(tmp_path) as store:
        with pytest.raises(NotFound, match="no daily note"):
            store.read("daily")
        made, now = store.daily(), datetime.now()  # noqa: DTZ005
        assert made.name == f"Journal/{format_date('YYYY/[Day] DDDD', now)}" and made.changed
        title, day = made.name.rsplit("/", 1)[1], f"{now.day}.{now.month}."
        assert store.read("daily").text == f"---\r\ntags: [day]\r\n---\r\n# {title} {day}\r\n"
        assert store.resolve("Daily") == made.name and not store.daily().changed
        store.undo(made.version)
        assert not (tmp_path / made.path).exists()


def test_a_note_called_daily_is_meant_by_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "daily.md").write_text("Mine.\n")
    with EnhancedStore(tmp_path) as store:
        store.daily()
        assert store.resolve("daily") == "daily"


def test_a_daily_format_that_leads_outside_is_not_followed(tmp_path: Path) -> None:
    obsidian(
        tmp_path, "daily-notes", folder="../out", format="../../YYYY", template="../../etc/passwd"
    )
    with EnhancedStore(tmp_path / ".") as store:
        assert (tmp_path / f"{datetime.now():%Y-%m-%d}.md").name == store.daily().path  # noqa: DTZ005


def test_a_note_is_made_of_a_template_to_the_byte(tmp_path: Path) -> None:
    obsidian(tmp_path, "templates", folder="Templates")
    (tmp_path / "Templates").mkdir()
    (tmp_path / "Templates/Meeting.md").write_bytes(
        b"\xef\xbb\xbf# {{title}}\r\n\r\n{{other}} {{Title}}"
    )
    (tmp_path / "Meeting.md").write_text("Another note of that name.\n")
    with EnhancedStore(tmp_path) as store:
        store.create_from("Meeting", "meetings/Spring")
        assert (
            tmp_path / "meetings/Spring.md"
        ).read_bytes() == b"\xef\xbb\xbf# Spring\r\n\r\n{{other}} {{Title}}"
        (tmp_path / "meetings/Spring.md").write_text("Changed.\n")
        with pytest.raises(AlreadyExists):
            store.create_from("Meeting", "meetings/Spring")
        with pytest.raises(NotFound):
            store.create_from("nowhere", "x")
    assert fill_template("{{time}} {{date}}", "t", _DAY, ObsidianSettings()) == "09:05 2026-03-01"


def test_dates_and_times_in_a_template_have_the_formats_of_obsidians_settings(
    tmp_path: Path,
) -> None:
    obsidian(tmp_path, "templates", dateFormat="D [of] MMMM", timeFormat="[at] YYYY")
    obsidian(tmp_path, "daily-notes", template="Form")
    (tmp_path / "Form.md").write_text("{{date}}, {{time}}, {{date:YY}}")
    now = datetime.now()  # noqa: DTZ005
    with EnhancedStore(tmp_path) as store:
        for made in (store.create_from("Form", "x"), store.daily()):
            assert store.read(made.name).text == f"{now.day} of {now:%B}, at {now.year}, {now:%y}"
    obsidian(tmp_path, "templates", dateFormat="")
    assert (
        fill_template("{{date}} {{time}}", "t", _DAY, read_obsidian_settings(tmp_path))
        == "2026-03-01 09:05"
    )


def test_open_tasks_are_read_as_obsidian_has_them_and_are_a_filter(tmp_path: Path) -> None:
    text = "- [ ] one\n- [x] done\n  1. [ ]  two\n> * [ ] three\n```\n- [ ] code\n```\n- [ ]no\n- [/] half\n"
    assert read_note(text.encode()).open_tasks == [(1, "one"), (3, "two"), (4, "three")]
    (tmp_path / "a.md").write_text(text)
    (tmp_path / "b.md").write_text("- [x] done\n")
    with EnhancedStore(tmp_path) as store:
        store.sync()
        open_ones = Filter.of(tags={"task": "open"})
        assert [each.name for each in store.list(filter=open_ones).items] == ["a"]
        assert [hit.name for hit in store.search("done", filter=open_ones).hits] == ["a"]
        assert store.read("a").tags == () and store.tags() == {}  # no tag of the note
        store.update("a", content="- [x] one\n")
        assert store.list(filter=open_ones).items == ()
        assert not [each for each in store.doctor() if each.check == "index"]
