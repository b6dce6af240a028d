"""One entry comes into a client's file and goes again; every other byte of it stays, on every system."""

from __future__ import annotations

import json
import os
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from simplemem.clients.client import Client, client_called, clients, server_command
from simplemem.clients.splice import entries, put, take
from simplemem.errors import Invalid, Unreadable

ENTRY = {"command": "/opt/two words/simplemem", "args": ["serve", "--vault", "C:\\Ida\t\"'$HOME'\"\\気球 é"]}
OTHERS = {
    "json": """{
  // mine
  "theme": "dark", /* do not touch */
  "KEYS": {
    "other": { "command": "npx", "args": ["-y", "x"] }, // needed
    "last": { "command": "/bin/true" }
  },
  "fonts": [1, 2,],
}
""",
    "toml": '# mine\nmodel = "o5"\n\n[KEYS.other]  # needed\ncommand = "npx"\nargs = [\n  "-y",\n]\n\n[tui]\ntheme = "x"\n',
    "yaml": "# mine\nMODEL: o5  # quick\nKEYS:\n  # needed\n  other:\n    enabled: true\n    args: ['-y', x]\nz: [1, 2]\n",
}
BROKEN = {
    "json": ['{"KEYS": {"other": {}', '{"KEYS": []}', '{"a": 1, "a": 2}', "[1]"],
    "toml": ["[KEYS", "KEYS = 3", "a = 1\na = 2", "[KEYS]\nother = 1\n[KEYS]"],
    "yaml": ["KEYS:\n\t- x: [", "KEYS: [1]", "- 1\n", "KEYS: 3"],
}
WITH_FILES = [each for each in clients().values() if each.file]
EVERY = pytest.mark.parametrize("client", WITH_FILES, ids=lambda client: client.name)
SYSTEMS = {
    "linux": {"HOME": "/home/ida"},
    "macos": {"HOME": "/Users/ida"},
    "windows": {"USERPROFILE": "C:\\Users\\Ida", "APPDATA": "C:\\Users\\Ida\\AppData\\Roaming"},
}


def parsed(form: str, text: str) -> Any:
    """What an independent parser reads."""
    if form == "json":
        return json.loads(re.sub(r",(\s*[\]}])", r"\1", re.sub(r"//[^\n]*|/\*.*?\*/", "", text)))
    return tomllib.loads(text) if form == "toml" else yaml.safe_load(text)


def sample(client: Client) -> str:
    return OTHERS[client.form].replace("KEYS", client.keys[0])


@EVERY
@pytest.mark.parametrize("system", SYSTEMS)
def test_every_client_has_a_file_on_every_system(client: Client, system: str) -> None:
    for place in client.places(system, SYSTEMS[system]):
        assert place.startswith("C:\\Users\\Ida\\" if system == "windows" else SYSTEMS[system]["HOME"] + "/")
        assert "$" not in place and "~" not in place and ("/" in place) != (system == "windows")


def test_what_moves_a_client_moves_its_file() -> None:
    env = {"HOME": "/h", "XDG_CONFIG_HOME": "/c", "CODEX_HOME": "/x", "CLAUDE_CONFIG_DIR": "/d"}
    found = {name: client_called(name).places("linux", env)[0] for name in ("claude-desktop", "codex", "claude-code")}
    assert found == {
        "claude-desktop": "/c/Claude/claude_desktop_config.json",
        "codex": "/x/config.toml",
        "claude-code": "/d/.claude.json",
    }


@EVERY
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_an_entry_beside_others_leaves_every_byte_and_goes_again(client: Client, line_end: str) -> None:
    text = sample(client).replace("\n", line_end)
    entry = client.entry("simplemem", [ENTRY["command"], *ENTRY["args"]])
    after = put(client.form, text, client.keys, "simplemem", entry)
    data = parsed(client.form, after.replace("\r\n", "\n"))[client.keys[0]]
    assert data.pop("simplemem") == entry and data == parsed(client.form, text.replace("\r\n", "\n"))[client.keys[0]]
    assert put(client.form, after, client.keys, "simplemem", entry) == after
    other = put(client.form, after, client.keys, "simplemem", {**entry, "env": {"A": "b"}})
    assert entries(client.form, other, client.keys)["simplemem"]["env"] == {"A": "b"}
    for each in (after, other):
        assert take(client.form, each, client.keys, "simplemem") == text


@EVERY
@pytest.mark.parametrize("text", ["", "\ufeff", "\n"])
def test_an_empty_file_gets_what_is_needed(client: Client, text: str) -> None:
    after = put(client.form, text, client.keys, "simplemem", ENTRY)
    assert parsed(client.form, after.removeprefix("\ufeff")) == {client.keys[0]: {"simplemem": ENTRY}}
    assert entries(client.form, take(client.form, after, client.keys, "simplemem"), client.keys) == {}


@EVERY
def test_a_broken_file_is_refused(client: Client) -> None:
    for text in BROKEN[client.form]:
        with pytest.raises(Unreadable) as error:
            put(client.form, text.replace("KEYS", client.keys[0]), client.keys, "simplemem", ENTRY)
        assert error.value.hint


def test_the_remote_form_has_the_address_and_only_the_name_of_the_variable() -> None:
    for client in clients().values():
        if client.remote is None:
            with pytest.raises(Invalid):
                client.remote_entry("m", "http://127.0.0.1:8080/mcp", "")
            continue
        assert "http://127.0.0.1:8080/mcp" in client.remote_entry("m", "http://127.0.0.1:8080/mcp", "").values()
        if client.token or client.token_key:
            said = json.dumps(client.remote_entry("m", "http://127.0.0.1:8080/mcp", "TOKEN"))
            assert "TOKEN" in said and "%" not in said


_SPACES = st.sampled_from(["", " ", "\n", "\n  ", " // c\n", " /* c, { */ "])
_LEAVES = st.one_of(st.booleans(), st.integers(), st.text(max_size=4).map(str), st.none())


@st.composite
def _json_with_comments(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """A file with servers, and what they are."""

    def value(data: Any) -> str:
        space = draw(_SPACES)
        if isinstance(data, dict):
            inside = f",{draw(_SPACES)}".join(f"{json.dumps(key)}{draw(_SPACES)}:{value(data[key])}" for key in data)
            comma = "," if data and draw(st.booleans()) else ""
            return f"{space}{{{draw(_SPACES)}{inside}{comma}{draw(_SPACES)}}}{draw(_SPACES)}"
        return f"{space}{json.dumps(data)}{draw(_SPACES)}"

    servers = draw(
        st.dictionaries(
            st.text('abc"\\', min_size=1, max_size=3),
            st.dictionaries(st.text("xy", max_size=2), _LEAVES, max_size=2),
            max_size=3,
        )
    )
    before = draw(st.dictionaries(st.sampled_from(["a", "b"]), _LEAVES, max_size=2))
    return value({**before, "s": servers} if servers or draw(st.booleans()) else before), servers


@given(_json_with_comments())
def test_any_json_with_comments_keeps_what_it_said(made: tuple[str, dict[str, Any]]) -> None:
    text, servers = made
    after = put("json", text, ["s"], "simplemem", ENTRY)
    assert entries("json", after, ["s"]) == {**servers, "simplemem": ENTRY}
    again = take("json", after, ["s"], "simplemem")
    assert entries("json", again, ["s"]) == servers
    assert re.findall(r"//[^\n]*|/\*.*?\*/", again) == re.findall(r"//[^\n]*|/\*.*?\*/", text)
    if servers:
        assert again == text


def test_the_command_has_absolute_paths() -> None:
    program, *arguments = server_command(Path("notes"), ["--read-only"])
    assert os.path.isabs(program) and os.access(program, os.X_OK)
    assert arguments == ["serve", "--vault", str(Path.cwd() / "notes"), "--read-only"]
