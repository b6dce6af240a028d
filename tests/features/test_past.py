"""What the graph was: from our own history, from git, and from what a person wrote in between."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from simplemem.features.graph.service import graph_of
from simplemem.features.graph.values import Entity, Observation, Relation
from simplemem.store import EnhancedStore


def made(store: EnhancedStore, *names: str) -> None:
    graph_of(store).create_entities(
        [Entity(name, "t", (Observation("first"),)) for name in names], who="maker 1"
    )


def texts(store: EnhancedStore, name: str) -> list[list[str]]:
    return [each.texts for each, *_ in graph_of(store).entity_history(name)]


@pytest.mark.parametrize("name", ["a/b", "CON", "new\nline", "half \ud800", ""])
def test_a_name_that_no_file_has_leads_to_its_history_when_it_is_gone_too(
    store: EnhancedStore, name: str
) -> None:
    made(store, name)
    graph_of(store).delete_entities([name])
    assert texts(store, name) == [["first"]]


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_what_only_git_remembers_is_told(
    store: EnhancedStore, write: Callable[[str, str], Path]
) -> None:
    def git(*words: str, when: str = "2026-01-01T10:00:00Z") -> None:
        who = [
            "-c",
            "user.name=Ida",
            "-c",
            "user.email=ida@example.org",
            "-c",
            "commit.gpgsign=false",
        ]
        env = {
            "GIT_AUTHOR_DATE": when,
            "GIT_COMMITTER_DATE": when,
            "PATH": "/usr/bin:/bin:/usr/local/bin",
        }
        subprocess.run(
            ["git", *who, *words], cwd=store.root, check=True, capture_output=True, env=env
        )

    git("init", "-q")
    write("graph/A.md", "## Observations\n- of January\n")
    git("add", "-A")
    git("commit", "-qm", "one")
    write("graph/A.md", "## Observations\n- of February\n")
    git("add", "-A")
    git("commit", "-qm", "two", when="2026-02-01T10:00:00Z")
    store.sync()
    assert texts(store, "A") == [["of January"], ["of February"]]
    first, second = graph_of(store).entity_history("A")
    assert first[1:3] == (
        datetime(2026, 1, 1, 10, tzinfo=UTC),
        datetime(2026, 2, 1, 10, tzinfo=UTC),
    )
    assert second[2:] == (None, "Ida")


def test_the_graph_of_a_moment_is_that_of_its_notes(
    store: EnhancedStore, write: Callable[[str, str], Path]
) -> None:
    write("people/Ida.md", "A person.\n")
    store.sync()
    made(store, "A", "a/b")
    graph_of(store).create_relations([Relation("A", "knows", "a/b"), Relation("A", "met", "Ida")])
    graph_of(store).create_relations([Relation("A", "seeks", "nobody")])
    before, moment = graph_of(store).read(), datetime.now(UTC) + timedelta(milliseconds=1)
    time.sleep(0.02)
    graph_of(store).delete_entities(["a/b"])
    graph_of(store).create_entities([Entity("later", "t")])
    then = graph_of(store).at(moment)
    assert [(each.name, each.texts, each.is_note) for each in then.entities] == [
        (each.name, each.texts, each.is_note) for each in before.entities
    ]
    assert sorted(each.key for each in then.relations) == sorted(
        each.key for each in before.relations
    )
    assert graph_of(store).at(datetime(2000, 1, 1, tzinfo=UTC)).relations == ()


def test_links_of_then_mean_what_the_files_of_then_were(store: EnhancedStore) -> None:
    made(store, "A", "B")
    store.create("notes/B", "A note.")
    store.update(
        "graph/A", append="## Relations\n- knows [[notes/B]]\n- likes [[B]]\n- fears [[gone]]\n"
    )
    before, moment = graph_of(store).read(), datetime.now(UTC) + timedelta(milliseconds=1)
    time.sleep(0.02)
    store.delete("notes/B")
    graph_of(store).delete_entities(["B"])
    then = graph_of(store).at(moment)
    assert [each.path for each in then.entities] == ["graph/A.md", "graph/B.md", "notes/B.md"]
    assert [each.type for each in then.relations] == ["knows", "likes", "fears"]
    assert {each.key for each in then.relations} == {each.key for each in before.relations}
