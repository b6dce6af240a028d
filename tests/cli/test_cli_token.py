"""The commands that say who may reach a served vault."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from simplemem.web.tokens import Tokens, digest, token_folder

if TYPE_CHECKING:
    from tests.cli.conftest import Run


@pytest.fixture
def tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tokens:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return Tokens(token_folder({"XDG_CONFIG_HOME": str(tmp_path / "config")}))


def test_a_token_is_shown_once_and_kept_as_a_hash(run: Run, tokens: Tokens) -> None:
    shown = run(
        "token",
        "new",
        "laptop",
        "--write",
        "--folder",
        "projects/",
        "--expires",
        "90d",
        "--json",
        vault=None,
    ).json
    [kept] = json.loads(tokens.path.read_text())
    assert (
        kept["sha256"] == digest(shown["token"]) and shown["token"] not in tokens.path.read_text()
    )
    grant = tokens.grant(shown["token"])
    assert (
        grant is not None
        and grant.only == ("projects/",)
        and grant.may("write")
        and not grant.may("admin")
    )
    listed = run("token", "list", "--json", vault=None)
    assert shown["token"] not in listed.out
    assert [each["name"] for each in listed.json["tokens"]] == ["laptop"]
    run("token", "revoke", "laptop", vault=None)
    assert tokens.grant(shown["token"]) is None


@pytest.mark.parametrize("name", ["owner", "Owner", " owner "])
def test_a_token_named_owner_is_refused_because_the_name_is_reserved(
    run: Run, tokens: Tokens, name: str
) -> None:
    refused = run("token", "new", name, vault=None)
    assert refused.code == 1
    assert "'owner' is reserved for the owner's own token" in refused.err
    assert "Choose another name" in refused.err
    assert not tokens.all()


@pytest.mark.parametrize("name", ["ida: claude", "IDA", "ida 2"])
def test_a_token_that_the_history_could_not_tell_from_another_is_refused(
    run: Run, tokens: Tokens, name: str
) -> None:
    run("token", "new", "ida", vault=None)
    refused = run("token", "new", name, vault=None)
    assert refused.code == 1 and repr(name) in refused.err and "hint: " in refused.err
    assert [grant.name for grant in tokens.all()] == ["ida"]


def test_standard_output_has_the_token_alone(run: Run, tokens: Tokens) -> None:
    made = run("token", "new", "ben", vault=None)
    grant = tokens.grant(made.out.removesuffix("\n"))
    assert grant is not None and grant.name == "ben"
    assert "not shown again" in made.err


def test_a_token_for_a_folder_that_the_vault_lacks_is_made_with_a_warning(
    run: Run, tokens: Tokens, monkeypatch: pytest.MonkeyPatch, vault: Path
) -> None:
    monkeypatch.setenv("SIMPLEMEM_VAULT", str(vault))
    options = ("--folder", "people", "--folder", "projekts")
    made = run("token", "new", "guest", *options, vault=None)
    assert "has no folder projekts;" in made.err and "people" not in made.err
    assert [grant.folders for grant in tokens.all()] == [("people/", "projekts/")]


WRONG = [[each] for each in ("laptop", "owner", "", "a\nb", "x" * 61)]
WRONG += [["new", *each] for each in (["--expires", "soon"], ["--user", " "], ["--calls", "-1"])]


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_no_token_is_not_kept(run: Run, tokens: Tokens, wrong: list[str]) -> None:
    run("token", "new", "laptop", vault=None)
    before = tokens.path.read_bytes()
    refused = run("token", "new", *wrong, vault=None)
    assert refused.code in (1, 2) and refused.err
    assert tokens.path.read_bytes() == before


def test_an_expired_token_is_refused_and_said(
    run: Run, tokens: Tokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = run("token", "new", "guest", "--expires", "1h", "--json", vault=None).json["token"]
    assert tokens.grant(token) is not None
    import simplemem.web.tokens as module

    later = module.time.time() + 3601
    monkeypatch.setattr(module.time, "time", lambda: later)
    assert tokens.grant(token) is None
