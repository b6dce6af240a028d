"""Two servers write to one vault while its database and they themselves are killed at random: nothing that was answered
is lost, and the index is what one made anew is. KILLS=200 in the long run."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from postgres import Server, differences_from_rebuilt, needs_postgres, served
from waiting import eventually

from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

pytestmark = needs_postgres
KILLS = int(os.environ.get("KILLS", "6"))
_WRITER = """
import itertools, sys, time
from pathlib import Path
from simplemem.settings.loading import load_settings
from simplemem.errors import SimplememError
from simplemem.store import EnhancedStore

root, me = Path(sys.argv[1]), sys.argv[2]
store = EnhancedStore(root, load_settings(vault=root))
store.start(embed=False)
for k in itertools.count():
    time.sleep(0.02)
    try:
        if k % 3:
            store.update("shared", append=f"{me} {k}.")
        elif k % 2:
            store.move(f"{me}n{k - 3}", f"{me}n{k}") if store.has(f"{me}n{k - 3}") else None
        else:
            store.create(f"{me}n{k}", f"{me} {k}.")
    except SimplememError as error:
        print("refused" if error.code == "unavailable" else f"wrong: {error}", flush=True)
    else:
        print(f"done {k}", flush=True)
"""


class Writer:
    """A server's process that writes, again under a new name when it was killed. Its answers are in files."""

    def __init__(self, name: str, vault: Path, url: str, folder: Path) -> None:
        self._name, self._vault, self._folder, self._lives = name, vault, folder, 0
        self._env = {
            **os.environ,
            "SIMPLEMEM_INDEX_ENGINE": url,
            "SIMPLEMEM_EMBED_PROVIDER": "none",
        }
        self.start()

    def start(self) -> None:
        self._lives += 1
        me = f"{self._name}{self._lives}"
        command = [sys.executable, "-c", _WRITER, str(self._vault), me]
        with (self._folder / me).open("wb") as answers:
            self.process = subprocess.Popen(
                command, stdout=answers, stderr=subprocess.DEVNULL, env=self._env
            )

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(30)

    def has_written(self) -> bool:
        return b"done" in (self._folder / f"{self._name}{self._lives}").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1])
def test_what_was_answered_is_there_whatever_was_killed(
    seed: int, vault: Path, tmp_path: Path
) -> None:
    chance = random.Random(seed)
    answers = tmp_path / "answers"
    answers.mkdir()
    (vault / "shared.md").write_text("# Shared\n")
    with served(durable=True) as server:
        writers = [Writer(name, vault, server.url, answers) for name in ("left", "right")]
        try:
            assert all(eventually(writer.has_written) for writer in writers)
            for _ in range(KILLS):
                time.sleep(chance.uniform(0, 0.5))
                kill_one(chance, server, writers)
        finally:
            for writer in writers:
                writer.kill()
        check(vault, server, answers)


def kill_one(chance: random.Random, server: Server, writers: list[Writer]) -> None:
    """The database, for a moment or a while; or a server, which one may be the leader."""
    if chance.random() < 0.6:
        server.kill()
        time.sleep(chance.choice((0, 0.3)))
        server.start()
    else:
        writer = chance.choice(writers)
        writer.kill()
        writer.start()


def check(vault: Path, server: Server, answers: Path) -> None:
    said = {file.name: file.read_text().split("\n")[:-1] for file in answers.iterdir()}
    assert [line for lines in said.values() for line in lines if line.startswith("wrong")] == []
    shared = (vault / "shared.md").read_text()
    count = 0
    for me, lines in said.items():
        for line in lines:
            if line.startswith("done"):
                k = int(line.split()[1])
                count += 1
                if k % 3:
                    assert shared.count(f"{me} {k}.\n") == 1, (me, k)
                elif k % 2 == 0:
                    there = [vault / f"{me}n{k}.md", vault / f"{me}n{k + 3}.md"]
                    assert sum(file.is_file() for file in there) == 1, (me, k)
    assert count > KILLS
    settings = {"index": {"engine": server.url}, "embed": {"provider": "none"}}
    with EnhancedStore(vault, Settings.model_validate(settings)) as store:
        store.sync()
        assert differences_from_rebuilt(store) == []
        assert {hit.name for hit in store.search("shared").hits} == {"shared"}
