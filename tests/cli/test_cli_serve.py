"""What the words after `simplemem serve` mean, and its help."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from simplemem.cli.serve import parse_options
from simplemem.cli.serve_choice import client_arguments
from simplemem.cli.serve_options import ServeOptions
from simplemem.profiles.registry import built_in_profiles

USAGE_ERROR = typer.BadParameter.__base__
assert USAGE_ERROR is not None


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("--read --prof chatgpt", ServeOptions(read_only=True, profiles=["chatgpt"])),
        ("--prof=chatgpt --no", ServeOptions(profiles=["chatgpt"], no_delete=True)),
        ("--db a.db", ServeOptions(db="a.db")),
        ("--db-p a.db", ServeOptions(db="a.db")),
        ("--vault=--read", ServeOptions(vaults=["--read"])),
        ("--tools=-core", ServeOptions(tools=["-core"])),
    ],
)
def test_the_unique_beginning_of_a_long_option_stands_for_it(
    typed: str, meant: ServeOptions
) -> None:
    options = parse_options(typed.split())
    assert {name: value for name, value in vars(options).items() if value} == {
        name: value for name, value in vars(meant).items() if value
    }


@pytest.mark.parametrize(
    "typed",
    [
        "--tls a.pem",
        "--vault --read-only",
        "--vault",
        "--nothing",
        "notes",
        "--log-level loud",
        "--yes=",
    ],
)
def test_what_begins_no_option_or_several_is_a_usage_error(typed: str) -> None:
    with pytest.raises(USAGE_ERROR):
        parse_options(typed.split())


@pytest.mark.parametrize(
    ("typed", "address", "is_sse"),
    [
        ("", None, None),
        ("--http", "", None),
        ("--http --sse", "", True),
        ("--sse --http", "", True),
        ("--ht", "", None),
        ("--http 127.0.0.1:9000 --sse", "127.0.0.1:9000", True),
        ("--http=9000", "9000", None),
    ],
)
def test_the_address_of_http_is_optional(
    typed: str, address: str | None, is_sse: bool | None
) -> None:
    options = parse_options(typed.split())
    assert (options.http, options.sse) == (address, is_sse)


def test_vaults_and_profiles_are_told_apart_by_their_names() -> None:
    options = parse_options(
        "--vault work=~/work --vault home=a=b --profile work=memento --profile chatgpt".split()
    )
    assert options.vaults_by_name() == {"work": "~/work", "home": "a=b"}
    assert options.profiles_by_vault() == {"work": "memento", "": "chatgpt"}
    assert ServeOptions(vaults=["./a=b"]).vaults_by_name() == {"": "./a=b"}


def test_a_client_gets_the_options_that_were_passed_and_what_variables_choose_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SIMPLEMEM_PROFILE", "remembrances")
    monkeypatch.setenv("SIMPLEMEM_TOOLS", "-remembrances,core")
    monkeypatch.setenv("GOMEM_KB_PATH", "base")
    monkeypatch.setenv("GOMEM_REST_API_SERVE", "1")
    options = parse_options("--vault notes --read-only --db index.db --log-level info".split())
    folder, arguments = client_arguments(options)
    assert folder == tmp_path / "notes"
    assert arguments == [
        *("--profile", "remembrances", "--tools=-remembrances,core", "--read-only"),
        *("--knowledge-base", str(tmp_path / "base"), "--db", str(tmp_path / "index.db")),
        *("--log-level", "info", "--rest-api-serve"),
    ]
    again = parse_options(["--vault", str(folder), *arguments])
    assert client_arguments(again) == (folder, arguments)


def test_serve_help_names_each_profile_and_loads_no_command_line() -> None:
    code = (
        "import sys\nsys.argv = ['simplemem', 'serve', '--help']\n"
        "from simplemem.__main__ import main\nassert main() == 0\n"
        "print('\\n'.join(sys.modules), file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    text = "".join(ran.stdout.split())  # a line may end within a name
    assert [name for name in built_in_profiles() if name not in text] == []
    assert {"typer", "simplemem.cli.serve"}.isdisjoint(ran.stderr.split("\n"))


@pytest.mark.parametrize("words", [["-h"], ["--vault", "notes", "--help"]])
def test_serve_help_is_the_same_wherever_it_is_requested(words: list[str]) -> None:
    env = {**os.environ, "COLUMNS": "80"}
    program = [sys.executable, "-m", "simplemem", "serve"]
    shown = [
        subprocess.run([*program, *options], env=env, capture_output=True, text=True, check=True)
        for options in (["--help"], words)
    ]
    assert shown[0].stdout == shown[1].stdout
    assert "--trusted-proxy" in shown[0].stdout
