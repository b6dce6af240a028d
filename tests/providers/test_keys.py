"""Keys by text, environment or file: read when they are used, and shown nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr

from simplemem.errors import Unavailable
from simplemem.providers.keys import Key

SECRET = "sk-0123456789abcdef"


def test_a_key_may_be_given_as_it_is() -> None:
    key = Key(SecretStr(f" {SECRET}\n"))
    assert key.value() == SECRET and SECRET not in repr(key)


def test_a_key_may_lie_in_the_environment_and_is_read_when_it_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    key = Key({"env": "MY_KEY"})
    monkeypatch.setenv("MY_KEY", SECRET)
    assert key.value() == SECRET
    monkeypatch.setenv("MY_KEY", "sk-another")
    assert key.value() == "sk-another"
    monkeypatch.delenv("MY_KEY")
    with pytest.raises(Unavailable, match="the environment variable MY_KEY"):
        key.value()


@pytest.mark.parametrize("text", [f"{SECRET}\n", f"\ufeff{SECRET}\r\n", f"  {SECRET}"])
def test_a_key_may_lie_in_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "my.key").write_text(text, encoding="utf-8")
    assert Key({"path": str(tmp_path / "my.key")}).value() == SECRET
    assert Key({"path": "~/my.key"}).value() == SECRET
    assert (
        Key(SecretStr("~/my.key")).value() == SECRET
    )  # as the original took it from the environment


def test_no_key_is_no_error_and_another_variable_may_serve_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert Key(None).value() is None and Key(None, default_variable="MY_KEY").value() is None
    monkeypatch.setenv("MY_KEY", SECRET)
    assert Key(None, default_variable="MY_KEY").value() == SECRET


@pytest.mark.parametrize(
    "text", ["", "\n", "two words", "one\ntwo", "schlüssel", "\x00\x01", "x" * 20_000]
)
def test_what_is_no_key_is_not_sent_and_not_shown(tmp_path: Path, text: str) -> None:
    file = tmp_path / "my.key"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(Unavailable) as caught:
        Key({"path": str(file)}).value()
    assert str(file) in caught.value.message
    assert not text.strip() or text not in str(caught.value.as_dict())
    with pytest.raises(Unavailable, match="No such file"):
        Key({"path": str(tmp_path / "gone.key")}).value()
