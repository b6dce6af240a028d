"""`config get` and `config set`: one setting is changed, and nothing else in the file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Run

pytestmark = pytest.mark.usefixtures("words_only")

MINE = """\
# My settings.
vault = "~/notes"   # the usual one

[search]
limit = 5           # enough

# About vectors: none of them leaves this machine.
[embed]
# provider = "openai"
timeout_seconds = 12.5
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The user's own settings file."""
    file = tmp_path / "home" / ".config" / "simplemem" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(MINE)
    return file


def test_a_setting_is_changed_and_every_other_byte_stays(run: Run, file: Path) -> None:
    done = run("config", "set", "search.limit", "10", "--json")
    assert done.json == {"key": "search.limit", "value": 10, "file": str(file), "changed": True}
    assert file.read_text() == MINE.replace("limit = 5 ", "limit = 10 ")
    assert run("config", "get", "search.limit").out == "10\n"
    assert run("config", "get", "search.limit", "--json").json == {
        "key": "search.limit",
        "value": 10,
        "source": str(file),
    }
    assert run("config", "set", "search.limit", "10", "--json").json["changed"] is False


def test_a_new_setting_stands_after_the_others_of_its_table(run: Run, file: Path) -> None:
    assert run("config", "set", "search.lexical_weight", "0.5").code == 0
    assert run("config", "set", "history.keep_days", "90").code == 0
    assert run("config", "set", "read_only", "true").code == 0
    expected = MINE.replace("# enough\n", "# enough\nlexical_weight = 0.5\n")
    expected = expected.replace("usual one\n", "usual one\nread_only = true\n")
    assert file.read_text() == f"{expected}\n[history]\nkeep_days = 90\n"


def test_line_endings_of_windows_and_a_byte_order_mark_stay(run: Run, file: Path) -> None:
    file.write_bytes(b"\xef\xbb\xbf" + MINE.replace("\n", "\r\n").encode())
    assert run("config", "set", "search.snippet_characters", "200").code == 0
    data = file.read_bytes()
    assert data.startswith(b"\xef\xbb\xbf#") and b"snippet_characters = 200\r\n" in data
    assert data.count(b"\n") == data.count(b"\r\n")


def test_a_file_that_is_not_there_is_made(run: Run, tmp_path: Path) -> None:
    assert run("config", "set", "search.archive", "old/, log/").code == 0
    file = tmp_path / "home" / ".config" / "simplemem" / "config.toml"
    assert (
        file.read_text() == '[search]\narchive = ["old/", "log/"]\n'
        and file.stat().st_mode & 0o077 == 0
    )
    assert run("config", "get", "search.archive").out == "old/\nlog/\n"


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("search.limit", "0", "a whole number at least 1 and at most 100"),
        ("search.limit", "many", "a whole number"),
        ("write.secrets", "never", "off, warn, refuse"),
        ("read_only", "perhaps", "true or false"),
        ("embed.timeout_seconds", "0", "a number more than 0"),
        ("embed.api_key", "{ key = 'sm-secret' }", "{ env ="),
        ("search.limit", "[1", "a whole number"),
    ],
)
def test_a_wrong_value_changes_nothing_and_the_error_lists_what_is_allowed(
    run: Run, file: Path, key: str, value: str, allowed: str
) -> None:
    refused = run("config", "set", key, value)
    assert refused.code == 1 and allowed in refused.err and "sm-secret" not in refused.err
    assert file.read_text() == MINE


def test_an_unknown_setting_names_the_nearest(run: Run, file: Path) -> None:
    for command in (["set", "search.limt", "3"], ["get", "search.limt"]):
        refused = run("config", *command)
        assert refused.code == 1 and "Did you mean search.limit?" in refused.err
    assert file.read_text() == MINE


def test_a_misspelt_variable_is_named(
    run: Run, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIMPLEMEM_SERCH_LIMIT", "3")
    monkeypatch.setenv("SIMPLEMEM_SEARCH_LIMIT", "4")
    listed = run("config", "list")
    assert "SIMPLEMEM_SERCH_LIMIT has no effect; did you mean SIMPLEMEM_SEARCH_LIMIT?" in " ".join(
        listed.err.split()
    )
    assert listed.err.count("has no effect") == 1


def test_a_secret_is_written_and_never_shown(run: Run, file: Path) -> None:
    done = run("config", "set", "embed.api_key", "sm-secret-1")
    ran = run("config", "set", "embed.api_key", "sm-secret-2", "--json")
    assert "sm-secret" not in done.out + done.err + ran.out
    assert 'api_key = "sm-secret-2"' in file.read_text() and "in plain text" in done.err
    assert run("config", "get", "embed.api_key").out == "**********\n"
    assert run("config", "set", "embed.api_key", '{ env = "KEY_OF_MINE" }').code == 0
    assert 'api_key = {env = "KEY_OF_MINE"}' in file.read_text()
    assert "sm-pw" not in run("config", "set", "embed.url", "http://me:sm-pw@host/v1").out


def test_a_vaults_own_file_takes_only_what_a_vault_may_say(
    run: Run, vault: Path, file: Path
) -> None:
    run("init", str(vault), vault=None)
    own = vault / ".simplemem" / "config.toml"
    assert run("config", "set", "access.hidden", "Private/", "--in-vault").code == 0
    assert own.read_text() == '[access]\nhidden = ["Private/"]\n' and file.read_text() == MINE
    for key, value in (("embed.url", "http://evil.example/v1"), ("embed.provider", "openai")):
        refused = run("config", "set", key, value, "--in-vault")
        assert refused.code == 1 and "which a vault may not set" in refused.err
    assert own.read_text() == '[access]\nhidden = ["Private/"]\n'


def test_a_vaults_own_file_is_not_written_through_a_link(
    run: Run, vault: Path, tmp_path: Path
) -> None:
    run("init", str(vault), vault=None)
    (tmp_path / "elsewhere.toml").write_text("")
    (vault / ".simplemem" / "config.toml").symlink_to(tmp_path / "elsewhere.toml")
    assert run("config", "set", "search.limit", "3", "--in-vault").code == 1
    assert (tmp_path / "elsewhere.toml").read_text() == ""


def test_a_value_that_has_no_effect_is_named_with_what_has_precedence(
    run: Run, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIMPLEMEM_SEARCH_LIMIT", "7")
    assert (
        "search.limit is still 7, from $SIMPLEMEM_SEARCH_LIMIT"
        in run("config", "set", "search.limit", "3").err
    )


def test_a_file_that_is_not_toml_is_left_alone(run: Run, file: Path) -> None:
    file.write_text(broken := "[search\nlimit = 5\n")
    refused = run("config", "set", "search.limit", "3")
    assert refused.code == 1 and "not valid TOML" in refused.err and file.read_text() == broken


def test_a_list_can_be_typed_as_several_values_and_another_setting_takes_one(
    run: Run, file: Path
) -> None:
    assert run("config", "set", "access.hidden", "people/", "log/").code == 0
    assert run("config", "get", "access.hidden").out == "people/\nlog/\n"
    refused = run("config", "set", "search.limit", "3", "4")
    assert refused.code == 1 and "search.limit takes one value" in refused.err


@pytest.mark.parametrize(
    "key", ["access.hidden", "access.only", "access.read_only", "embed.private"]
)
def test_a_rule_for_servers_is_set_with_the_remark_that_a_server_must_be_started_again(
    run: Run, file: Path, key: str
) -> None:
    assert (
        "If a server is running, restart it to apply this."
        in run("config", "set", key, "people/").out
    )
    assert "a server is running" not in run("config", "set", "search.limit", "7").out


def test_the_value_that_was_replaced_is_shown(run: Run, file: Path) -> None:
    assert "was:" not in run("config", "set", "access.hidden", "people/").out
    assert "was: people/" in run("config", "set", "access.hidden", "log/").out
    assert "was: 5" in run("config", "set", "search.limit", "6").out
    run("config", "set", "embed.api_key", "sm-secret-1")
    ran = run("config", "set", "embed.api_key", "sm-secret-2")
    assert "was: ****" in ran.out and "sm-secret" not in ran.out


def test_a_rule_that_matches_no_note_is_named_with_the_nearest_name(run: Run, file: Path) -> None:
    ran = run(
        "config", "set", "access.hidden", "poeple/", "log/", "people/Ada", "*/x", "projects/apolo"
    )
    message = " ".join(ran.err.split())
    assert "no note matches poeple/. Did you mean people/?" in message
    assert "no note matches projects/apolo. Did you mean projects/apollo?" in message
    assert message.count("no note matches") == 2
    assert "Did you mean" not in run("config", "set", "access.hidden", "zzzzzz/").err


def test_unset_removes_a_setting_and_every_other_byte_stays(run: Run, file: Path) -> None:
    done = run("config", "unset", "search.limit")
    assert done.code == 0 and "was: 5" in done.out
    assert file.read_text() == MINE.replace("limit = 5           # enough\n", "")
    again = run("config", "unset", "search.limit")
    assert again.code == 1 and "does not set search.limit" in again.err
    assert "Did you mean search.limit?" in run("config", "unset", "search.limt").err


def test_unset_in_the_vault_leaves_your_own_file_alone(run: Run, vault: Path, file: Path) -> None:
    run("init", str(vault), vault=None)
    run("config", "set", "access.hidden", "people/", "--in-vault")
    done = run("config", "unset", "access.hidden", "--in-vault", "--json").json
    assert done["value"] == [] and done["changed"]
    assert (
        "hidden" not in (vault / ".simplemem" / "config.toml").read_text()
        and file.read_text() == MINE
    )
