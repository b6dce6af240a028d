"""An index moved to another engine and back: nothing is paid for twice, and no password is shown."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from embedding_service import EmbeddingService
from postgres import PROGRAMS, differences_from_rebuilt, needs_postgres, running
from typer.testing import CliRunner
from waiting import eventually

from simplemem.cli.app import app
from simplemem.errors import Invalid, Unavailable
from simplemem.index.engine import Damaged
from simplemem.settings.loading import load_settings
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

pytestmark = needs_postgres
if PROGRAMS is not None:
    import psycopg


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with running() as url:
        yield url


@pytest.fixture
def service() -> Iterator[EmbeddingService]:
    with EmbeddingService() as answering:
        yield answering


def opened(root: Path, service: EmbeddingService, engine: str | None = None) -> EnhancedStore:
    embed = {"provider": "openai", "model": "tiny", "url": f"{service.url}/v1"}
    settings = {"embed": embed, "index": {"engine": engine}, "write": {"durability": "fast"}}
    return EnhancedStore(root, Settings.model_validate(settings))


def meant(store: EnhancedStore) -> list[str]:
    found = store.search("harbour crane", mode="semantic", explain=True)
    return [hit.name for hit in found.hits if hit.why and hit.why["meaning"]][:1]


def test_an_index_goes_there_and_back_and_no_text_is_embedded_twice(
    vault: Path, server: str, service: EmbeddingService
) -> None:
    (vault / "a.md").write_text("The harbour crane was repaired.\n")
    (vault / "b.md").write_text("Honey bees in the old orchard.\n")
    with opened(vault, service) as sidecar:
        sidecar.sync()
        paid = sorted(service.texts())
        moved = sidecar.move_index(server)
        assert (moved.notes, moved.taken, moved.made, moved.in_use) == (2, 2, 0, False)
        assert moved.engine.startswith("PostgreSQL ") and sidecar.stats()["engine"].startswith(
            "SQLite "
        )
    with opened(vault, service, server) as postgres:
        assert meant(postgres) == ["a"]
        assert postgres.stats()["index_path"] == moved.place
        postgres.create("c", "Night trains to the north.")
        postgres.sync()
        new = [text for text in service.texts() if "Night trains" in text]
        with psycopg.connect(server, autocommit=True) as db:
            db.execute("CREATE DATABASE other")
        other = postgres.move_index(server.replace("/postgres", "/other"))
        assert (other.taken, other.made, other.in_use) == (3, 0, False)
        back = postgres.move_index(None)
        assert (back.notes, back.taken, back.made) == (3, 1, 0)
    with opened(vault, service) as sidecar:
        assert sidecar.stats()["vectors"] == 3 and differences_from_rebuilt(sidecar) == []
    sent = [
        text for text in service.texts() if text not in ("memory", "harbour crane")
    ]  # but for questions
    assert len(new) == 1 and sorted(sent) == sorted([*paid, *new])


def test_settings_may_be_first_and_the_sidecars_vectors_are_taken_all_the_same(
    vault: Path, server: str, service: EmbeddingService
) -> None:
    (vault / "a.md").write_text("The harbour crane was repaired.\n")
    with opened(vault, service) as sidecar:
        sidecar.sync()
    with opened(vault, service, server) as postgres:
        moved = postgres.move_index(server)
        assert (moved.taken, moved.made, moved.in_use) == (1, 0, True)


def simplemem(
    *args: str, env: Mapping[str, str], code: int | None = 0
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "simplemem", *args]
    done = subprocess.run(
        command, env={**os.environ, **env}, capture_output=True, text=True, check=False
    )
    assert code is None or done.returncode == code, done.stderr
    return done


@pytest.mark.slow
def test_a_move_that_was_killed_goes_on_where_it_was(
    vault: Path, server: str, service: EmbeddingService
) -> None:
    for k in range(1_300):  # more than one batch
        (vault / f"n{k}.md").write_text(f"Number {k} of the crane.\n")
    env = {
        f"SIMPLEMEM_EMBED_{key}": value
        for key, value in (("PROVIDER", "openai"), ("MODEL", "tiny"))
    }
    env |= {"SIMPLEMEM_EMBED_URL": f"{service.url}/v1", "SIMPLEMEM_VAULT": str(vault)}
    simplemem("index", env=env)
    paid = len(service.texts())
    there = opened(vault, service, server)

    def counted(what: str) -> int:
        with suppress(Unavailable, Damaged):  # there is no table before the first vector
            return int(there._parts.index.database.rows(f"SELECT count(*) FROM {what}")[0][0])
        return 0

    for what in ("notes", "vectors"):
        command = [sys.executable, "-m", "simplemem", "index", "--engine", server]
        with subprocess.Popen(
            command, env={**os.environ, **env}, stdout=subprocess.DEVNULL
        ) as moving:
            assert eventually(lambda what=what: counted(what) > 0)  # type: ignore[misc]
            moving.kill()
        assert simplemem("stats", "--json", env=env).stdout.count("SQLite") == 1
    done = json.loads(simplemem("index", "--engine", server, "--json", env=env).stdout)
    assert (done["notes"], done["made"], done["in_use"]) == (1_300, 0, False)
    assert counted("notes WHERE embedded = 0") == 0
    there.close()
    assert len([text for text in service.texts() if "of the crane" in text]) == paid


def with_password(url: str) -> str:
    return url.replace("memory@", "memory:s3cret@")


def test_no_command_shows_the_password_of_an_address(
    vault: Path, server: str, tmp_path: Path
) -> None:
    (vault / "a.md").write_text("The harbour crane.\n")
    key = tmp_path / "engine.url"
    key.write_text(with_password(server) + "\n")
    secrets: dict[str, Any] = {
        "in the environment": with_password(server),
        "in a parameter": f"{server}&password=s3cret",
        "in a file": str(key),
        "away": "postgresql://memory:s3cret@localhost:1/memory",
        "no address": "postgresql://memory:s3cret@localhost:s3cret/memory",
    }
    for case, named in secrets.items():
        env = {"SIMPLEMEM_INDEX_ENGINE": named, "SIMPLEMEM_VAULT": str(vault)}
        works = case.startswith("in")
        for args in (
            ["stats"],
            ["stats", "--json"],
            ["doctor"],
            ["index", "--engine", "settings"],
            ["config"],
        ):
            done = CliRunner().invoke(app, args, env=env)
            assert done.exit_code == (0 if works or args == ["config"] else 1), done.output
            assert "s3cret" not in done.output + repr(done.exception), (case, args)
            if works and args in (["stats"], ["doctor"]):
                assert (
                    re.search(r"PostgreSQL \d+\.\d+, .*MB", done.output)
                    and "//memory@" in done.output
                )
                assert "None s ago" not in done.output
    refused = CliRunner().invoke(
        app, ["index", "--engine", with_password(server)], env={"SIMPLEMEM_VAULT": str(vault)}
    )
    assert refused.exit_code == 1 and ".pgpass" in refused.output and "s3cret" not in refused.output


def test_an_address_lies_where_keys_may_lie_but_never_in_the_vault(
    vault: Path, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELSEWHERE", server)
    for engine in (server, {"env": "ELSEWHERE"}):
        with EnhancedStore(vault, Settings.model_validate({"index": {"engine": engine}})) as store:
            assert store.stats()["engine"].startswith("PostgreSQL")
    monkeypatch.delenv("ELSEWHERE")
    with pytest.raises(Unavailable, match="ELSEWHERE"):
        EnhancedStore(vault, Settings.model_validate({"index": {"engine": {"env": "ELSEWHERE"}}}))
    (vault / ".simplemem").mkdir(exist_ok=True)
    (vault / ".simplemem" / "config.toml").write_text(f'[index]\nengine = "{server}"\n')
    with pytest.raises(Invalid, match="may not set"):
        load_settings(vault=vault)
