"""What a vault may say of itself: it arrives by `git clone`, so nothing in it makes anything wider.

Every setting has its line here. A new one without a line fails, so that somebody decides.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import pytest

from simplemem.errors import Invalid
from simplemem.settings.loading import load_settings
from simplemem.settings.model import fields

Rule = Literal["no", "adds", "narrower", "a value", "yes"]

# The words of the column "In a vault" in docs/configuration.md.
# no: refused. adds: only ever more. narrower: only ever stricter than the user. a value: takes a provider off the
# network, never onto it. yes: how this vault is kept and shown, whose worst value harms nobody else.
RULES: dict[Rule, str] = {
    # it would be another folder or file, another service, another bill, or another machine that hears of the notes
    "no": "vault db embed.model embed.url embed.api_key embed.dimensions embed.query_prefix embed.document_prefix "
    "git.commit git.folders sync.every index.engine index.replica index.schema_name rerank.url rerank.model rerank.api_key "
    "rerank.candidates rerank.seconds voyage_ai.api_key voyage_ai.model voyage_ai.rerank_model "
    "llm.url llm.model llm.api_key llm.timeout_seconds "
    "llm.max_calls_per_hour llm.route llm.route_seconds documents.allow_private documents.knowledge_base "
    "access.only branch.repository branch.name "
    "http.url http.oauth_issuer http.oauth_audience http.oauth_keys http.oauth_user_claim",
    "adds": "embed.private access.read_only access.hidden write.review",
    "narrower": "read_only no_delete write.secrets",
    "a value": "embed.provider rerank.provider llm.provider",
    "yes": "log_level max_memory_length search.limit search.lexical_weight search.snippet_characters search.archive "
    "embed.batch "
    "embed.timeout_seconds embed.keep_alive embed.query_seconds history.keep_days history.keep_mb "
    "git.history index.max_note_mb index.scan_minutes index.watch write.durability write.confirm write.capture",
}

# A value of the right kind for each that is never taken; the default would do as well.
_VALUES: dict[str, Any] = {
    "embed.dimensions": 512, "rerank.candidates": 2, "rerank.seconds": 1.0,
    "llm.timeout_seconds": 1.0, "llm.max_calls_per_hour": 1, "llm.route": True, "llm.route_seconds": 1.0,
    "documents.allow_private": True,
}  # fmt: skip
_FROM_WIDE_TO_NARROW: dict[str, list[Any]] = {
    "read_only": [False, True],
    "no_delete": [False, True],
    "write.secrets": ["off", "warn", "refuse"],
}


def said(file: Path, key: str, value: Any) -> None:
    table, _, name = key.rpartition(".")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(
        (f"[{table}]\n" if table else "") + f"{name} = {json.dumps(value)}\n", encoding="utf-8"
    )


def value_of(key: str, vault: Path, home: Path) -> Any:
    value: Any = load_settings(vault=vault, env={"XDG_CONFIG_HOME": str(home)})
    for part in key.split("."):
        value = getattr(value, part)
    return value


def keys(rule: Rule) -> list[str]:
    return RULES[rule].split()


def test_every_setting_has_been_decided() -> None:
    decided = [key for rule in RULES for key in keys(rule)]
    missing = [key for key, _ in fields() if key not in decided]
    assert not missing, f"decide in RULES what a vault may say of {missing}"
    assert sorted(decided) == sorted(key for key, _ in fields())


@pytest.mark.parametrize("key", keys("no"))
def test_it_never_says_where_to_read_what_to_send_or_what_it_may_cost(
    key: str, tmp_path: Path
) -> None:
    said(tmp_path / ".simplemem" / "config.toml", key, _VALUES.get(key, "x"))
    with pytest.raises(Invalid, match="a vault may not set") as refused:
        value_of(key, tmp_path, tmp_path / "home")
    assert key in refused.value.message


@pytest.mark.parametrize("key", keys("adds"))
def test_what_it_closes_is_added_to_what_its_user_closes(key: str, tmp_path: Path) -> None:
    said(tmp_path / "home" / "simplemem" / "config.toml", key, ["mine/"])
    for value in ([], ["theirs/"], "theirs/"):
        said(tmp_path / ".simplemem" / "config.toml", key, value)
        assert value_of(key, tmp_path, tmp_path / "home")[0] == "mine/"
    assert value_of(key, tmp_path, tmp_path / "home") == ("mine/", "theirs/")


@pytest.mark.parametrize("key", keys("narrower"))
def test_it_is_only_ever_stricter_than_its_user(key: str, tmp_path: Path) -> None:
    order = _FROM_WIDE_TO_NARROW[key]
    for mine in order:
        for theirs in order:
            said(tmp_path / "home" / "simplemem" / "config.toml", key, mine)
            said(tmp_path / ".simplemem" / "config.toml", key, theirs)
            assert value_of(key, tmp_path, tmp_path / "home") == max(mine, theirs, key=order.index)


@pytest.mark.parametrize("key", keys("narrower"))
@pytest.mark.parametrize("value", ["false", "no", 0, 1, [], "OFF"])
def test_what_is_not_understood_does_not_pass_for_a_no(
    key: str, value: Any, tmp_path: Path
) -> None:
    said(tmp_path / "home" / "simplemem" / "config.toml", key, _FROM_WIDE_TO_NARROW[key][-1])
    said(tmp_path / ".simplemem" / "config.toml", key, value)
    with pytest.raises(Invalid, match=key.replace(".", r"\.")):
        value_of(key, tmp_path, tmp_path / "home")


@pytest.mark.parametrize("key", keys("a value"))
def test_it_takes_a_provider_off_the_network_and_never_onto_it(key: str, tmp_path: Path) -> None:
    said(tmp_path / ".simplemem" / "config.toml", key, "none")
    assert value_of(key, tmp_path, tmp_path / "home") == "none"
    for value in ("openai", "ollama", "voyage", "http", "cross-encoder", "transformer"):
        said(tmp_path / ".simplemem" / "config.toml", key, value)
        with pytest.raises(Invalid, match="a vault may not set"):
            value_of(key, tmp_path, tmp_path / "home")


def test_settings_that_are_a_link_are_not_followed(tmp_path: Path) -> None:
    vault, outside = tmp_path / "vault", tmp_path / "outside"
    said(outside / "config.toml", "search.limit", 50)
    (vault / ".simplemem").mkdir(parents=True)
    (vault / ".simplemem" / "config.toml").symlink_to(outside / "config.toml")
    assert value_of("search.limit", vault, tmp_path / "home") == 5
    (vault / ".simplemem" / "config.toml").unlink()
    (vault / ".simplemem").rmdir()
    (vault / ".simplemem").symlink_to(outside)
    assert value_of("search.limit", vault, tmp_path / "home") == 5
