"""The clock: the real one, or the moment that SIMPLEMEM_NOW names."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from simplemem.errors import Invalid
from simplemem.note import dates
from simplemem.store import EnhancedStore


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    def fix(moment: str) -> None:
        monkeypatch.setenv("SIMPLEMEM_NOW", moment)
        dates._fixed.cache_clear()

    yield fix
    dates._fixed.cache_clear()


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("2026-01-24T09:00:00Z", datetime(2026, 1, 24, 9, tzinfo=UTC)),
        ("2026-01-24T09:00:00+02:00", datetime(2026, 1, 24, 7, tzinfo=UTC)),
        ("2026-01-24", datetime(2026, 1, 24).astimezone()),
    ],
)
def test_a_moment_that_is_named_is_now(
    at: Callable[[str], None], said: str, meant: datetime
) -> None:
    at(said)
    assert dates.now() == dates.now() == meant and dates.now().utcoffset() == timedelta(0)
    assert dates.local_now() == meant.astimezone().replace(tzinfo=None)


def test_without_one_it_is_the_real_time(at: Callable[[str], None]) -> None:
    at("")
    before = datetime.now(UTC)
    assert before <= dates.now() <= datetime.now(UTC)


@pytest.mark.parametrize(
    "said", ["soon", "2026-13-01", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "12"]
)
def test_what_is_no_time_is_refused_by_name(at: Callable[[str], None], said: str) -> None:
    at(said)
    with pytest.raises(Invalid, match="SIMPLEMEM_NOW"):
        dates.now()


def test_notes_are_stamped_by_it_and_the_history_is_not(
    at: Callable[[str], None], plain_store: EnhancedStore
) -> None:
    at("2031-05-06T12:00:00")
    real = datetime.now(UTC)
    assert (
        "created: 2031-05-06T12:00:00"
        in plain_store.read(plain_store.create("tea", "Oolong.").name).text
    )
    assert plain_store.create_from("", "cup").name == "cup" and plain_store.daily().name.endswith(
        "2031-05-06"
    )
    said = plain_store.history("tea")[0].when
    assert abs(datetime.fromisoformat(said).astimezone(UTC) - real) < timedelta(days=1)


@pytest.mark.parametrize("command", [["serve"], ["list"]])
def test_a_command_ends_at_once_with_a_sentence(
    vault: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.setenv("SIMPLEMEM_NOW", "soon")
    asked = [sys.executable, "-m", "simplemem", *command, "--vault", str(vault)]
    ended = subprocess.run(
        asked, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60
    )
    assert (
        ended.returncode == 1
        and "SIMPLEMEM_NOW" in ended.stderr
        and "Traceback" not in ended.stderr
    )
