"""The settings a vault keeps in `.obsidian/`, read from real files, and what they leave out of recall."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplemem.obsidian.settings import ObsidianSettings
from simplemem.vault.obsidian import read_obsidian_settings


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    (tmp_path / ".obsidian").mkdir()
    return tmp_path


def write(vault: Path, name: str, settings: Any) -> None:
    (vault / ".obsidian" / f"{name}.json").write_text(json.dumps(settings), encoding="utf-8")


# --- reading ----------------------------------------------------------------------------------------


def test_every_setting_is_read(vault: Path) -> None:
    assert (
        read_obsidian_settings(vault)
        == read_obsidian_settings(vault / "nowhere")
        == ObsidianSettings()
    )
    filters = ["Archive/", "/\\.excalidraw\\.md$/"]
    app = {
        "newLinkFormat": "relative",
        "trashOption": "local",
        "userIgnoreFilters": filters,
        "other": {"kept": "out"},
    }
    write(vault, "app", app)
    write(vault, "templates", {"folder": "/Templates/"})
    write(
        vault,
        "daily-notes",
        {"folder": "days", "format": "YYYY/MM/DD", "template": "Templates/Day"},
    )
    days = ("Templates/Day", "days", "YYYY/MM/DD")
    assert read_obsidian_settings(vault) == ObsidianSettings(
        "relative", "obsidian", tuple(filters), "Templates", *days
    )


@pytest.mark.parametrize(
    ("key", "written", "field", "read"),
    [
        ("newLinkFormat", "absolute", "link_format", "absolute"),
        ("newLinkFormat", "longest", "link_format", "shortest"),
        ("trashOption", "local", "trash", "obsidian"),
        ("trashOption", "system", "trash", "own"),
        ("folder", "/", "templates_folder", ""),
        ("folder", "./files", "templates_folder", "files"),
        ("folder", "files\\images", "templates_folder", "files/images"),
        ("folder", "a\u00a0b/", "templates_folder", "a b"),
        ("folder", "../outside", "templates_folder", ""),
        ("folder", "a/../../b", "templates_folder", ""),
        ("folder", "C:\\Users", "templates_folder", ""),
        ("folder", "a\x00b", "templates_folder", ""),
        ("folder", "lone \ud800 surrogate", "templates_folder", ""),
    ],
)
def test_a_setting_that_nobody_knows_or_that_leads_out_is_the_default(
    vault: Path, key: str, written: str, field: str, read: str
) -> None:
    write(vault, "templates" if key == "folder" else "app", {key: written})
    assert getattr(read_obsidian_settings(vault), field) == read


NONSENSE = [
    b"", b"{", b"[]", b"null", b'"text"', b"\xff\xfe{}", b"[" * 100_000, b'{"a":' * 100_000,
    b'{"trashOption": ' + b"9" * 5_000 + b"}", b'{"userIgnoreFilters": "not a list", "newLinkFormat": ["relative"]}',
    b'{"userIgnoreFilters": [1, null, "", " ", {"a": 1}]}', b'{"folder": 1, "format": ["YYYY"], "template": true}',
    b'{"newLinkFormat": "relative"}' + b" " * 1_000_001,
]  # fmt: skip


@pytest.mark.parametrize("data", NONSENSE, ids=range(len(NONSENSE)))
def test_settings_that_make_no_sense_are_the_defaults(vault: Path, data: bytes) -> None:
    for name in ("app", "templates", "daily-notes"):
        (vault / ".obsidian" / f"{name}.json").write_bytes(data)
    assert read_obsidian_settings(vault) == ObsidianSettings()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_what_is_no_file_does_not_hold_up_the_start(vault: Path) -> None:
    os.mkfifo(vault / ".obsidian" / "app.json")
    (vault / ".obsidian" / "templates.json").mkdir()
    (vault / ".obsidian" / "daily-notes.json").symlink_to(vault / "nowhere")
    assert read_obsidian_settings(vault) == ObsidianSettings()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)
KEYS = ["newLinkFormat", "trashOption", "userIgnoreFilters", "folder", "template"]


@given(settings=st.dictionaries(st.sampled_from(KEYS), json_values), path=st.text(max_size=30))
def test_no_settings_and_no_path_raise(
    tmp_path_factory: pytest.TempPathFactory, settings: Any, path: str
) -> None:
    vault = tmp_path_factory.mktemp("vault")
    (vault / ".obsidian").mkdir()
    for name in ("app", "templates", "daily-notes"):
        write(vault, name, settings)
    settings = read_obsidian_settings(vault)
    settings.hidden_reason(path)
    assert hash(settings) == hash(read_obsidian_settings(vault))


# --- what recall leaves out -------------------------------------------------------------------------


def test_what_other_tools_leave_behind_is_hidden_and_an_ordinary_note_is_not() -> None:
    left = """node_modules/pkg/README.md site/node_modules/a.md vendor/lib/notes.md dist/page.md tool/build/page.md
        logseq/bak/pages/a.md graph/logseq/bak/a.md a/~$letter.md a/photo.md.icloud a/.photo.icloud"""
    ordinary = """note.md Build/shed.md building/plan.md vendor.md node_modules.md logseq/pages/a.md bak/a.md about~$signs.md
        icloud.md sync-conflict.md Templates/a.md"""
    assert [path for path in left.split() if ObsidianSettings().hidden_reason(path) is None] == []
    assert [path for path in ordinary.split() if ObsidianSettings().hidden_reason(path)] == []


def test_templates_are_hidden_and_only_they() -> None:
    settings = ObsidianSettings(templates_folder="Templates/de", daily_template="meta/Day")
    for path in ("Templates/de/meeting.md", "templates/DE/sub/meeting.md", "meta/Day.md"):
        assert "template" in (settings.hidden_reason(path) or "")
    for path in ("Templates/den.md", "Templates/other.md", "meta/Day two.md"):
        assert settings.hidden_reason(path) is None


@pytest.mark.parametrize(
    ("entry", "hidden", "kept"),
    [
        ("Archive/", ["Archive/a.md", "archive/b/c.md"], ["Archive.md", "x/Archive/a.md"]),
        ("Arch", ["Archive/a.md", "Arch.md"], ["x/Arch.md"]),
        ("/Archive", ["Archive/a.md"], ["x/Archive/a.md"]),
        ("Caf\u00e9/", ["Cafe\u0301/a.md"], ["Cafe/a.md"]),
        ("a.b/", ["a.b/c.md"], ["axb/c.md"]),
        ("/", [], ["note.md"]),
        ("//", [], ["note.md"]),
        ("/^_/", ["_note.md", "_x/a.md"], ["a/_note.md"]),
        ("/\\.excalidraw\\.md$/", ["d/x.excalidraw.md"], ["x.excalidraw.md.md", "xexcalidraw.md"]),
        ("/(^|\\/)drafts\\//", ["drafts/a.md", "x/Drafts/a.md"], ["mydrafts/a.md"]),
        (
            "/20\\d{2}-(0[1-9]|1[0-2])/",
            ["2026-01.md", "x/2025-12-24.md"],
            ["2026-13.md", "x20261.md"],
        ),
    ],
)
def test_excluded_files_are_those_obsidian_excludes(
    entry: str, hidden: list[str], kept: list[str]
) -> None:
    settings = ObsidianSettings(ignore_filters=(entry,))
    assert [path for path in hidden if entry not in (settings.hidden_reason(path) or "")] == []
    assert [path for path in kept if settings.hidden_reason(path) is not None] == []
    assert settings.refused_filters() == {}


@pytest.mark.parametrize(
    "entry",
    ["/(a/", "/a\\1/", "/[z-a]/", "/" + "a" * 501 + "/", "/*/", "/((a{999}){999}){999}/", "/\\/"],
)
def test_a_pattern_that_is_not_understood_hides_nothing_and_is_named(entry: str) -> None:
    settings = ObsidianSettings(ignore_filters=(entry, "Archive/"))
    assert settings.hidden_reason("abc/" + "a" * 600) is None
    assert settings.hidden_reason("Archive/a.md") is not None
    assert list(settings.refused_filters()) == [entry]


@pytest.mark.parametrize(
    "pattern", ["(a|aa)+$", "(a*)*b$", "(.*a){12}bb", "((a|aa)+)+$", "(a|(?R)*b)*$", "(?R)"]
)
def test_a_pattern_that_takes_too_long_is_switched_off_and_named(pattern: str) -> None:
    """A backtracking engine takes more than a lifetime on some of these."""
    entry = f"/{pattern}|stuck{len(pattern)}/"
    settings = ObsidianSettings(ignore_filters=(entry,))
    assert settings.hidden_reason("a" * 1_000 + "xb!") is None
    assert "too long" in settings.refused_filters()[entry]
    assert settings.hidden_reason(f"stuck{len(pattern)}") is None, "it is not asked again"


@given(pattern=st.text("()[]{}*+?|^$.\\ab/-,123:!=<dxu", min_size=1, max_size=40))
def test_no_pattern_raises(pattern: str) -> None:
    settings = ObsidianSettings(ignore_filters=(f"/{pattern}/",))
    assert settings.hidden_reason("ab/a-1") is None or not settings.refused_filters()
