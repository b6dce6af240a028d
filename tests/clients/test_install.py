"""An entry is added to a client's file and removed again; every other byte stays."""

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
from simplemem.clients.splice import entries, put, remove_entry
from simplemem.errors import Invalid, Unreadable

ENTRY = {
    "command": "/opt/two words/simplemem",
    "args": ["serve", "--vault", "C:\\Ida\t\"'$HOME'\"\\気球 é"],
}
FLAT = {"command": "/opt/simplemem", "args": ["serve"]}
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
    "json": [
        '{"KEYS": {"other": {}',
        '{"KEYS": []}',
        '{"a": 1, "a": 2}',
        "[1]",
        "{a: 1}",
        '{"a": 1 /* ',
    ],
    "toml": ["[KEYS", "KEYS = 3", "a = 1\na = 2", "[KEYS]\nother = 1\n[KEYS]"],
    "yaml": ["KEYS:\n\t- x: [", "KEYS: [1]", "- 1\n", "KEYS: 3", "a: 1\na: 2\n"],
}
WITH_FILES = [client for client in clients().values() if client.files]
EVERY = pytest.mark.parametrize("client", WITH_FILES, ids=lambda client: client.name)
SYSTEMS = {
    "linux": {"HOME": "/home/ida"},
    "macos": {"HOME": "/Users/ida"},
    "windows": {"USERPROFILE": "C:\\Users\\Ida", "APPDATA": "C:\\Users\\Ida\\AppData\\Roaming"},
}


def parsed(form: str, text: str) -> Any:
    """Return the data that an independent parser reads."""
    if form == "json":
        return json.loads(re.sub(r",(\s*[\]}])", r"\1", re.sub(r"//[^\n]*|/\*.*?\*/", "", text)))
    return tomllib.loads(text) if form == "toml" else yaml.safe_load(text)


def sample(client: Client) -> str:
    return OTHERS[client.form].replace("KEYS", client.key)


@EVERY
@pytest.mark.parametrize("system", SYSTEMS)
def test_every_client_has_a_file_on_every_system(client: Client, system: str) -> None:
    for place in client.places(system, SYSTEMS[system]):
        assert place.startswith(
            "C:\\Users\\Ida\\" if system == "windows" else SYSTEMS[system]["HOME"] + "/"
        )
        assert "$" not in place and "~" not in place and ("/" in place) != (system == "windows")


def test_environment_variables_change_the_place_of_a_clients_file() -> None:
    expected = {
        "claude-desktop": ("XDG_CONFIG_HOME", "/x/Claude/claude_desktop_config.json"),
        "codex": ("CODEX_HOME", "/x/config.toml"),
        "claude-code": ("CLAUDE_CONFIG_DIR", "/x/.claude.json"),
        "gemini-cli": ("GEMINI_CLI_HOME", "/x/.gemini/settings.json"),
        "copilot-cli": ("COPILOT_HOME", "/x/mcp-config.json"),
        "cline": ("CLINE_DIR", "/x/data/settings/cline_mcp_settings.json"),
    }
    for name, (variable, file) in expected.items():
        assert client_called(name).places("linux", {"HOME": "/h", variable: "/x"})[0] == file


@EVERY
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_adding_and_removing_an_entry_restores_every_byte(client: Client, line_end: str) -> None:
    text = sample(client).replace("\n", line_end)
    entry = client.entry("simplemem", [ENTRY["command"], *ENTRY["args"]])
    after = put(client.form, text, client.key, "simplemem", entry)
    data = parsed(client.form, after.replace("\r\n", "\n"))[client.key]
    assert (
        data.pop("simplemem") == entry
        and data == parsed(client.form, text.replace("\r\n", "\n"))[client.key]
    )
    assert put(client.form, after, client.key, "simplemem", entry) == after
    other = put(client.form, after, client.key, "simplemem", {**entry, "timeout": 5})
    assert entries(client.form, other, client.key)["simplemem"]["timeout"] == 5
    for new_text in (after, other):
        assert remove_entry(client.form, new_text, client.key, "simplemem") == text


@EVERY
@pytest.mark.parametrize("text", ["", "\ufeff", "\n"])
def test_an_entry_can_be_added_to_an_empty_file(client: Client, text: str) -> None:
    after = put(client.form, text, client.key, "simplemem", ENTRY)
    assert parsed(client.form, after.removeprefix("\ufeff")) == {client.key: {"simplemem": ENTRY}}
    assert (
        entries(client.form, remove_entry(client.form, after, client.key, "simplemem"), client.key)
        == {}
    )


@EVERY
def test_a_broken_file_is_refused(client: Client) -> None:
    for text in BROKEN[client.form]:
        with pytest.raises(Unreadable) as error:
            put(client.form, text.replace("KEYS", client.key), client.key, "simplemem", ENTRY)
        assert error.value.hint


def test_the_remote_form_has_the_address_and_only_the_name_of_the_variable() -> None:
    for client in clients().values():
        if client.remote is None:
            with pytest.raises(Invalid):
                client.remote_entry("m", "http://127.0.0.1:8080/mcp", "")
            continue
        assert (
            "http://127.0.0.1:8080/mcp"
            in client.remote_entry("m", "http://127.0.0.1:8080/mcp", "").values()
        )
        if client.token:
            entry = json.dumps(client.remote_entry("m", "http://127.0.0.1:8080/mcp", "TOKEN"))
            assert "TOKEN" in entry and "%" not in entry
    goose = client_called("goose").remote_entry("m", "http://x.y/mcp", "TOKEN")
    assert (goose["headers"], goose["env_keys"]) == (
        {"Authorization": "Bearer ${TOKEN}"},
        ["TOKEN"],
    )


@pytest.mark.parametrize("form, text", [
    ("json", '{"K": {"a": {}, "simplemem": {"command": "x"}}}'),
    ("json", '{"K": {\n  "simplemem": {"command": "x"}, // ours\n  "a": 1, // last\n}}'),
    ("json", '{"K": {\n  "a": 1, // not last\n  "simplemem": {"command": "x"} /* ours */\n}}'),
    ("json", "// nothing yet\n"),
    ("json", '{"K": null}'),
    ("toml", '[K.simplemem]\na = 1\n\n[x]\n\n[K.simplemem.tools.search]  # approved\nb = 2\n# of y\n[y]\n'),
    ("toml", 'a = """\n[K.simplemem]\n"""\nb = [\n  [1]\n]\n'),
    ("yaml", "K:\n  a: {}\n  # ours\n  simplemem: {cmd: x}  # ours too\n  # of z\nz: 1\n"),
    ("yaml", '"K":   # quoted\n    a:\n      text: |\n        simplemem:\n\n    "simplemem":\n    b: 1\n'),
    ("yaml", "K: {}  # empty\nz: 1\n"),
    ("yaml", "---\n# nothing yet\n"),
])  # fmt: skip
def test_an_entry_in_an_unusual_form_is_found_and_nothing_else_changes(
    form: str, text: str
) -> None:
    after = put(form, text, "K", "simplemem", FLAT)
    other_entries = {
        name: entry for name, entry in entries(form, text, "K").items() if name != "simplemem"
    }
    assert parsed(form, after)["K"] == {**other_entries, "simplemem": FLAT}
    removed = remove_entry(form, after, "K", "simplemem")
    assert (parsed(form, removed).get("K") or {}) == other_entries
    own_words = ("simplemem", "ours", "{cmd", "tools", "a = 1", "b = 2")
    for line in text.splitlines():
        assert (
            any(word in line for word in own_words)
            or line.split("{}")[0].strip(" ,") in removed
            or "null" in line
            or "not last" in removed
        )


@pytest.mark.parametrize(
    "form, text", [("toml", "K = { a = {} }\n"), ("yaml", "K: {a: {}}\n"), ("yaml", "a: 1\n...\n")]
)
def test_a_file_that_cannot_be_edited_safely_is_refused(form: str, text: str) -> None:
    with pytest.raises(Unreadable, match="cannot safely edit a file of this form"):
        put(form, text, "K", "simplemem", FLAT)


def test_an_array_of_tables_between_two_servers_stays_in_place() -> None:
    """tomlkit would write the tables of the servers next to each other."""
    text = "[K.a]\nb = 1\n\n[[hooks]]  # first\nc = 2\n"
    after = put("toml", text, "K", "simplemem", FLAT)
    assert after.startswith(text)
    assert remove_entry("toml", after, "K", "simplemem") == text


def test_a_comment_that_quotes_the_entry_is_not_mistaken_for_it() -> None:
    quote = "# [K.simplemem]\n"
    text = f"{quote}[K.simplemem]\n"
    assert remove_entry("toml", text, "K", "simplemem") == quote


def test_a_table_that_begins_like_another_one_is_not_mistaken_for_it() -> None:
    text = 'model = "o5"\n\n[[K.simplemem]]\na = 10\n\n[[K.simplemem]]\na = 1'
    assert remove_entry("toml", text, "K", "simplemem") == 'model = "o5"\n'


def test_a_long_file_is_edited_quickly() -> None:
    """Every line contains the name of the entry. The time once grew with the square of the size."""
    text = "K:\n" + "".join(f"  a{n}:\n    cmd: /opt/simplemem\n" for n in range(2000))
    assert remove_entry("yaml", put("yaml", text, "K", "simplemem", FLAT), "K", "simplemem") == text


# Files as people write them, drawn with what may stand between things.

_BLANKS = st.sampled_from(
    ["", " ", "\n", "\n  ", "\r\n\t", ' // c, { "\n', " /* c, } */ ", "/* a\n b */"]
)
_LEAVES = st.one_of(
    st.booleans(), st.integers(-9, 9), st.text('ab"/*,{}# \\é', max_size=4), st.just([1, ["}"]])
)
_SERVERS = st.dictionaries(
    st.sampled_from(["x", "y", "z-1", "simplemem"]),
    st.dictionaries(st.sampled_from("pq"), _LEAVES, max_size=2),
    max_size=3,
)


@st.composite
def _json(draw: st.DrawFn) -> tuple[str, str]:
    def value(data: Any) -> str:
        if not isinstance(data, dict):
            return json.dumps(data)
        inside = f",{draw(_BLANKS)}".join(
            f"{json.dumps(key)}{draw(_BLANKS)}:{draw(_BLANKS)}{value(data[key])}{draw(_BLANKS)}"
            for key in data
        )
        return f"{{{draw(_BLANKS)}{inside}{',' if data and draw(st.booleans()) else ''}{draw(_BLANKS)}}}"

    data = draw(st.dictionaries(st.sampled_from(["a", "b"]), _LEAVES, max_size=2))
    return "json", draw(st.sampled_from(["", "\ufeff"])) + value(
        {**data, "K": draw(_SERVERS), "d": {}}
    ) + draw(_BLANKS)


@st.composite
def _toml(draw: st.DrawFn) -> tuple[str, str]:
    space = st.sampled_from(["", "\n", "# c [K.simplemem]\n", "  \n# d\n"])
    lines = draw(
        st.sampled_from(["", "a = 1\n", 'a = """\n[K.x]\n"""\n', "a = [\n  [1],\n]  # e\n"])
    ) + draw(space)
    for name, fields in draw(_SERVERS).items():
        lines += (
            f"[K.{name}]  # {name}\n"
            + "".join(f"{key} = {toml(fields[key])}\n" for key in fields)
            + draw(space)
        )
        lines += draw(
            st.sampled_from(
                ["", f"[K.{name}.env]\nA = '[K'\n\n", "[[list]]\n", f"[other.{name}]\nb = 1\n"]
            )
        )
    return "toml", lines


@st.composite
def _yaml(draw: st.DrawFn) -> tuple[str, str]:
    space = st.sampled_from(["", "\n", "# K:\n", "      # d\n"])
    indent, servers = draw(st.sampled_from(["  ", "    "])), draw(_SERVERS)
    lines = draw(
        st.sampled_from(["", "a: 1\n", "a: |\n  K:\n    simplemem: 1\n", "a:\n- b\n"])
    ) + draw(space)
    lines += "K:" + ("" if servers else draw(st.sampled_from(["", " {}", " ~"]))) + "  # of K\n"
    for name, fields in servers.items():
        lines += f"{draw(space)}{indent}{name}:" + ("" if fields else " {}") + "  # e\n"
        lines += "".join(
            f"{indent}  {key}: {json.dumps(fields[key], ensure_ascii=False)}\n" for key in fields
        )
    return "yaml", lines + draw(space) + draw(st.sampled_from(["", "z: 2\n"]))


def toml(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


@given(st.one_of(_json(), _toml(), _yaml()))
def test_an_edit_keeps_the_other_data_and_bytes_of_any_file(made: tuple[str, str]) -> None:
    form, text = made
    servers = entries(form, text, "K")
    after = put(form, text, "K", "simplemem", FLAT)
    assert entries(form, after, "K") == {**servers, "simplemem": FLAT}
    assert put(form, after, "K", "simplemem", FLAT) == after
    removed = remove_entry(form, put(form, after, "K", "simplemem", {"url": "u"}), "K", "simplemem")
    assert removed == remove_entry(form, after, "K", "simplemem")
    was_there = servers.pop("simplemem", None) is not None
    assert entries(form, removed, "K") == servers
    if servers and not was_there:
        assert removed == text
    elif form == "json" and not was_there:
        assert re.findall(r"//[^\n]*|/\*[^/]*\*/", removed) == re.findall(
            r"//[^\n]*|/\*[^/]*\*/", text
        )


def test_the_first_existing_place_of_a_file_is_used(tmp_path: Path) -> None:
    def places(*names: str) -> Client:
        return Client(
            "x",
            "X",
            "json",
            "K",
            {},
            "",
            "",
            "",
            {system: [f"{tmp_path}/{name}" for name in names] for system in SYSTEMS},
        )

    client = places("Claude_*/inner/a.json", "b/a.json", "c/a.json")
    assert client.find() == tmp_path / "b" / "a.json"
    (tmp_path / "c").mkdir()
    assert client.find() == tmp_path / "c" / "a.json"
    (tmp_path / "Claude_x1" / "inner").mkdir(parents=True)
    assert client.find() == tmp_path / "Claude_x1" / "inner" / "a.json"
    (tmp_path / "c" / "a.json").touch()
    assert client.find() == tmp_path / "c" / "a.json"


def test_the_docs_list_every_client() -> None:
    page = (Path(__file__).parents[2] / "docs" / "connect.md").read_text(encoding="utf-8")
    for client in WITH_FILES:
        assert (
            f"\n| `{client.name}` | `{client.files['linux'][0]}` | [{client.tested_with}]({client.documentation}) |\n"
            in page
        )


def test_the_command_has_absolute_paths() -> None:
    program, *arguments = server_command(Path("notes"), ["--read-only"])
    assert os.path.isabs(program) and os.access(program, os.X_OK)
    assert arguments == ["serve", "--vault", str(Path.cwd() / "notes"), "--read-only"]
