"""Which vault, and which settings: flag, environment, file, default, in that order."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from pydantic import ValidationError

from simplemem.errors import Invalid, NotFound
from simplemem.evaluate import read_questions
from simplemem.profiles.simplemem.settings import original_settings
from simplemem.settings.example import example_config
from simplemem.settings.find_vault import find_vault
from simplemem.settings.loading import load_settings, settings_with_sources
from simplemem.settings.model import Settings, WriteSettings, fields


def user_file(tmp_path: Path, text: str) -> dict[str, str]:
    file = tmp_path / "config" / "simplemem" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    return {"XDG_CONFIG_HOME": str(tmp_path / "config")}


def vault_file(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "vault" / ".simplemem" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    return tmp_path / "vault"


def test_a_flag_beats_the_environment_beats_the_vault_beats_the_user(tmp_path: Path) -> None:
    index = "[index]\nscan_minutes = {0}\nmax_note_mb = {0}\n[history]\nkeep_days = {0}"
    env = user_file(tmp_path, "[search]\nlimit = 7\n" + index.format(7))
    vault = vault_file(tmp_path, index.format(8))
    env |= {"SIMPLEMEM_INDEX_SCAN_MINUTES": "9", "SIMPLEMEM_INDEX_MAX_NOTE_MB": "9"}
    settings = load_settings({"index.max_note_mb": 10, "search.limit": None}, vault=vault, env=env)
    assert (settings.search.limit, settings.history.keep_days) == (7, 8)
    assert (settings.index.scan_minutes, settings.index.max_note_mb) == (9, 10)
    sources = {
        key: source
        for key, _, source in settings_with_sources({"index.max_note_mb": 10}, vault=vault, env=env)
    }
    assert (sources["index.max_note_mb"], sources["write.durability"]) == ("flag", "default")
    assert sources["index.scan_minutes"] == "$SIMPLEMEM_INDEX_SCAN_MINUTES"


def test_an_unknown_key_is_named_with_the_nearest_known_one(tmp_path: Path) -> None:
    with pytest.raises(Invalid) as caught:
        load_settings(env=user_file(tmp_path, "[search]\nlimits = 3"))
    assert "search.limits" in caught.value.message and "search.limit" in caught.value.hint


def test_settings_that_nobody_sets_load_without_pydantic(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom simplemem import load_settings\n"
        "assert load_settings().search.limit == 5\n"
        "assert str(load_settings({'vault': 'here'}).vault) == 'here'\n"
        "print('pydantic' in sys.modules)"
    )
    env = {name: value for name, value in os.environ.items() if not name.startswith("SIMPLEMEM_")}
    env |= {"XDG_CONFIG_HOME": str(tmp_path)}
    ran = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False
    )
    assert ran.stdout == "False\n", ran.stderr


def test_a_wrong_value_says_where_it_came_from() -> None:
    with pytest.raises(Invalid, match=r"\$SIMPLEMEM_SEARCH_LIMIT"):
        load_settings(env={"SIMPLEMEM_SEARCH_LIMIT": "many"})


def test_what_one_place_keeps_private_no_other_gives_away(tmp_path: Path) -> None:
    env = user_file(tmp_path, '[embed]\nprivate = ["journal/"]')
    vault = vault_file(tmp_path, '[embed]\nprivate = "diary/"')
    env |= {"SIMPLEMEM_EMBED_PRIVATE": "*.secret, people/"}
    assert load_settings(vault=vault, env=env).embed.private == (
        "journal/",
        "diary/",
        "*.secret",
        "people/",
    )
    sources = {key: source for key, _, source in settings_with_sources(vault=vault, env=env)}
    assert sources["embed.private"].endswith(", $SIMPLEMEM_EMBED_PRIVATE")
    with pytest.raises(Invalid, match=r"embed\.private"):
        load_settings(vault=vault_file(tmp_path / "more", "[embed]\nprivate = 7"), env=env)


@pytest.mark.parametrize("name", ["EMBED_PRIVATE", "ACCESS_HIDDEN", "ACCESS_READ_ONLY"])
def test_a_list_in_the_environment_may_stand_there_as_in_a_file(tmp_path: Path, name: str) -> None:
    def read(said: str) -> tuple[str, ...]:
        found = load_settings(env={"XDG_CONFIG_HOME": str(tmp_path), f"SIMPLEMEM_{name}": said})
        section, _, key = name.lower().partition("_")
        return tuple(getattr(getattr(found, section), key))

    assert read('["journal/", "*.secret", "a, b"]') == ("journal/", "*.secret", "a, b")
    assert read("journal/, *.secret") == ("journal/", "*.secret")
    for broken in ('["journal/", "*.secret"', "['a/' 'b/']", "[2024]/, [x]"):
        with pytest.raises(Invalid, match="is not a list of names"):
            read(broken)


@pytest.mark.parametrize(
    "key",
    [
        '{ key = "12345678" }',
        '{ env = "A", key = "12345678" }',
        "12345678",
        '["12345678"]',
        "{ env = 12345678 }",
    ],
)
def test_a_key_that_is_no_key_is_not_shown(tmp_path: Path, key: str) -> None:
    with pytest.raises(Invalid) as caught:
        load_settings(env=user_file(tmp_path, f"[embed]\napi_key = {key}"))
    assert "embed.api_key" in caught.value.message
    assert "12345678" not in str(caught.value.as_dict()) + repr(caught.value.__cause__)


def test_a_key_is_not_shown_among_the_settings(tmp_path: Path) -> None:
    env = user_file(tmp_path, '[embed]\napi_key = "sk-secret"\n[voyage_ai]\napi_key = "pa-secret"')
    env |= {"SIMPLEMEM_EMBED_URL": "http://localhost:1234/v1"}
    rows = settings_with_sources(env=env)
    assert ("embed.url", "http://localhost:1234/v1", "$SIMPLEMEM_EMBED_URL") in rows
    assert "-secret" not in f"{rows} {load_settings(env=env)!r}"


def test_broken_toml_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="not valid TOML"):
        load_settings(env=user_file(tmp_path, "limit = = 3"))


def test_the_example_shows_every_setting_with_its_default_or_an_example() -> None:
    tomllib.loads(example_config())  # which sets nothing as it stands
    shown = tomllib.loads(re.sub("^# ", "", example_config(), flags=re.MULTILINE))
    values = {key: value for key, value in shown.items() if not isinstance(value, dict)}
    tables = {table: keys for table, keys in shown.items() if table not in values}
    values |= {
        f"{table}.{key}": value for table, keys in tables.items() for key, value in keys.items()
    }
    assert list(values) == [key for key, _ in fields()]
    Settings.model_validate(shown)
    for key, field in fields():
        if not field.json_schema_extra["example"]:  # type: ignore[index, call-overload]
            default = field.default
            assert values[key] == (list(default) if isinstance(default, tuple) else default)


def test_a_setting_of_an_earlier_version_is_read_and_ignored(tmp_path: Path) -> None:
    env = user_file(tmp_path, "[embed]\ndownload = true\n[search]\nlimit = 7")
    assert load_settings(env=env).search.limit == 7


def test_the_vault_is_found_as_designed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    here = tmp_path / "work" / "deep"
    here.mkdir(parents=True)
    none: dict[str, str] = {"XDG_CONFIG_HOME": str(tmp_path / "nowhere")}
    assert find_vault(env=none, cwd=here) == tmp_path / "home" / "simplemem"
    (here / ".memories").mkdir()
    assert find_vault(env=none, cwd=here) == here / ".memories"
    (tmp_path / "work" / ".simplemem").mkdir()
    assert find_vault(env=none, cwd=here) == tmp_path / "work"
    configured = user_file(tmp_path, f'vault = "{tmp_path / "set"}"')
    assert find_vault(env=configured, cwd=here) == tmp_path / "set"
    assert find_vault(env=configured | {"SIMPLEMEM_VAULT": "/env"}, cwd=here) == Path("/env")
    assert (
        find_vault("flag", env=configured | {"SIMPLEMEM_VAULT": "/env"}, cwd=here) == here / "flag"
    )


def test_a_folder_that_obsidian_uses_is_a_vault(tmp_path: Path) -> None:
    none = {"XDG_CONFIG_HOME": str(tmp_path / "nowhere")}
    notes = tmp_path / "notes"
    deep = notes / "projects" / "boat"
    deep.mkdir(parents=True)
    (notes / ".obsidian").mkdir()
    assert find_vault(env=none, cwd=deep) == notes
    (notes / "projects" / ".simplemem").mkdir()
    assert find_vault(env=none, cwd=deep) == notes / "projects"  # the nearest


def test_from_another_folder_of_notes_the_vault_in_the_home_folder_is_never_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    monkeypatch.setattr(Path, "home", lambda: home)
    none = {"XDG_CONFIG_HOME": str(tmp_path / "nowhere")}
    default = home / "simplemem"
    work = home / "work"
    for folder in (default, work / "notes" / "deep", work / "empty", work / "code" / "docs"):
        folder.mkdir(parents=True)
    for file in (
        home / "todo.md",
        default / "a.md",
        work / "notes" / "a.md",
        work / "code" / "docs" / "A.MD",
    ):
        file.write_text("A note.\n")

    for folder in (work / "notes", work / "notes" / "deep", work / "code"):
        with pytest.raises(NotFound, match=re.escape(f"no vault in {folder}")) as refused:
            find_vault(env=none, cwd=folder)
        assert "simplemem init ." in str(refused.value.hint)
        assert find_vault(default, env=none, cwd=folder) == default
    for folder in (home, work / "empty", default, tmp_path):
        assert find_vault(env=none, cwd=folder) == default


# -- a file that came with the vault


HOSTILE = {
    "nested too deeply": b"a = " + b"[" * 20_000,
    "not valid TOML": b"[search]\nlimit = " + b"9" * 10_000,
    "a number that is too long": b"[search]\nlimit = 0x" + b"f" * 10_000,
    "too deeply": b".".join([b"search"] * 5000) + b" = 1",
    "which is not a setting": b"[nothing]\nof = 1",
    "less than or equal to": b"[index]\nscan_minutes = inf",
    "keep_days": b"[history]\nkeep_days = " + b"9" * 30,
    "larger than 64,000 bytes": b"#" * 64_001,
}


@pytest.mark.parametrize("said", HOSTILE)
def test_a_settings_file_that_cannot_be_read_is_a_clear_error(vault: Path, said: str) -> None:
    file = vault / ".simplemem" / "config.toml"
    file.parent.mkdir()
    file.write_bytes(HOSTILE[said])
    with pytest.raises(Invalid, match=said) as refused:
        load_settings(vault=vault, env={"XDG_CONFIG_HOME": str(vault / "none")})
    assert len(refused.value.message) < 700


@pytest.mark.skipif(sys.platform == "win32", reason="no such files there")
def test_a_pipe_in_place_of_a_settings_file_keeps_nobody_waiting(vault: Path) -> None:
    file = vault / ".simplemem" / "config.toml"
    file.parent.mkdir()
    os.mkfifo(file)
    for read in (
        lambda: load_settings(vault=vault, env={"XDG_CONFIG_HOME": str(vault / "none")}),
        lambda: read_questions(file),
        lambda: original_settings(vault, {}, Path(".simplemem/config.toml")),
    ):
        with pytest.raises(Invalid, match="not a regular file"):
            read()


def test_settings_are_made_of_settings_too_and_a_wrong_value_is_refused() -> None:
    strict = Settings(write=WriteSettings(secrets="refuse"))
    assert strict.write == WriteSettings(secrets="refuse")
    assert strict.search == Settings().search
    with pytest.raises(ValidationError):
        Settings(write=WriteSettings().model_copy(update={"secrets": "perhaps"}))
