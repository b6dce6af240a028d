"""A filter leaves exactly the notes that pass it, whatever is in it, and narrows before anything is ranked."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simplemem.errors import Invalid, NotFound
from simplemem.models import Filter
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

Write = Callable[[str, str | bytes], Path]

NOTES = {
    "projects/apollo.md": "---\ntags: [project, status/active]\ntype: project\n---\nThe crane of [[Ada]].\n",
    "projects/gemini.md": "---\ntags:\n  - project\n  - status/done\ntype: Project\n---\nA crane. ![[plan.png]]\n",
    "projects-old/mercury.md": "---\ntags:\n  status: done\n  todo: true\n---\nA crane, [as told](../people/Ada.md).\n",
    "people/Ada.md": "---\ntags: [person]\nboss: '[[Bo]]'\n---\nShe met [[projects/gemini|G]], #status/active then.\n",
    "people/Bo.md": "A crane driver.\n",
    "été/Note.md": "---\ntags: [État/Été, 100%_sure]\ntype: memory\n---\nLa grue.\n",
    "files/plan.png": "\x89PNG",
}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EnhancedStore]:
    """A vault that nobody changes."""
    root = tmp_path_factory.mktemp("filters") / "vault"
    for at, (path, text) in enumerate(NOTES.items()):
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        os.utime(
            file, (1_768_000_000 + at * 86_400, 1_768_000_000 + at * 86_400)
        )  # a day apart, from 2026-01-09
    with EnhancedStore(root, Settings.model_validate({"embed": {"provider": "none"}})) as store:
        store.sync()
        yield store


def passing(store: EnhancedStore, **fields: Any) -> set[str]:
    page = store.list(filter=Filter.of(**fields))
    assert page.total == len(page.items)
    found = {hit.name for hit in store.search("", filter=Filter.of(**fields), limit=50).hits}
    names = {item.name for item in page.items}
    assert found == names  # a list and a search see the same filter
    return names


PROJECTS = {"projects/apollo", "projects/gemini"}
DONE = {"projects/gemini", "projects-old/mercury"}
EVERYONE = {path.removesuffix(".md") for path in NOTES if path.endswith(".md")}


@pytest.mark.parametrize(
    ("tags", "names"),
    [
        ({"project": ""}, PROJECTS), (["project"], PROJECTS), ("project", PROJECTS), ('{"project": true}', PROJECTS),
        ({"PROJECT": ""}, PROJECTS), ({"status": "done"}, DONE), ({"status": "Done"}, DONE),
        ({"status": ""}, PROJECTS | DONE | {"people/Ada"}),
        ({"status": "active", "person": ""}, {"projects/apollo", "people/Ada"}),
        ({"stat": ""}, set()), ({"État": "Été"}, {"été/Note"}), ({"état": "ÉTÉ"}, {"été/Note"}),
        ({unicodedata.normalize("NFD", "état"): unicodedata.normalize("NFD", "Été")}, {"été/Note"}),
        ({"100%_sure": ""}, {"été/Note"}), ({"100__sure": ""}, set()), ({"%": ""}, set()),
    ],
)  # fmt: skip
def test_tags_by_presence_or_value(filled: EnhancedStore, tags: Any, names: set[str]) -> None:
    assert passing(filled, tags=tags) == names


def test_all_of_some_tags(filled: EnhancedStore) -> None:
    assert passing(filled, tags={"status": "active", "person": ""}, require_all=True) == {
        "people/Ada"
    }
    assert passing(filled, tags={"status": "done", "todo": ""}, require_all=True) == {
        "projects-old/mercury"
    }
    assert passing(filled, tags={"status": "done", "nothing": ""}, require_all=True) == set()


def test_a_type_is_meant_whatever_its_case_and_a_note_without_one_is_a_memory(
    filled: EnhancedStore,
) -> None:
    for kind in ("memory", "MEMORY"):
        assert passing(filled, type=kind) == EVERYONE - PROJECTS
        assert (
            passing(filled, type=kind.replace("memory", "Project").replace("MEMORY", "project"))
            == PROJECTS
        )


@pytest.mark.parametrize(
    ("prefix", "names"),
    [
        ("projects/", PROJECTS), ("/projects/", PROJECTS), ("PROJECTS/", PROJECTS),
        ("projects", PROJECTS | {"projects-old/mercury"}), ("projects/apollo", {"projects/apollo"}),
        ("projects/apollo/", {"projects/apollo"}), ("projects/apoll", {"projects/apollo"}), ("é", {"été/Note"}),
        ("projects/\U0010ffff", set()), (unicodedata.normalize("NFD", "été/"), {"été/Note"}), ("proj_cts/", set()),
        ("%", set()), ("*", set()), ("[p]", set()),
    ],
)  # fmt: skip
def test_a_prefix_is_the_beginning_of_a_name_and_no_pattern(
    filled: EnhancedStore, prefix: str, names: set[str]
) -> None:
    assert passing(filled, prefix=prefix) == names


def test_dates_are_days_that_count_whole(filled: EnhancedStore) -> None:
    assert passing(filled, since="2026-01-12") == {"people/Ada", "people/Bo", "été/Note"}
    assert passing(filled, until="2026-01-10") == PROJECTS
    assert passing(filled, since="2026-01-10", until="2026-01-11") == DONE
    assert passing(filled, since="2026-01", until="2026-01") == EVERYONE
    assert passing(filled, since="2027") == set()


def test_links_narrow_by_where_they_lead_and_where_they_stand(filled: EnhancedStore) -> None:
    assert passing(filled, link_to="people/Ada") == {"projects/apollo", "projects-old/mercury"}
    assert passing(filled, link_to="Bo") == {"people/Ada"}  # a link in a property is a link
    assert passing(filled, linked_by="Ada") == {"projects/gemini", "people/Bo"}
    assert passing(filled, linked_by="gemini") == set()  # it embeds a picture, which is no memory


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("crane tag:project", {"projects/apollo", "projects/gemini"}),
        ("crane tag:status=done", {"projects/gemini", "projects-old/mercury"}),
        ("crane tag:status=done tag:todo", {"projects-old/mercury"}),
        ("crane path:people/", {"people/Bo"}),
        ("crane type:project", {"projects/apollo", "projects/gemini"}),
        ("crane -driver", {"projects/apollo", "projects/gemini", "projects-old/mercury"}),
        ('"crane driver"', {"people/Bo"}),
        ('crane -"crane driver"', {"projects/apollo", "projects/gemini", "projects-old/mercury"}),
        ("tag:person", {"people/Ada"}),
    ],
)
def test_what_a_question_says_of_tags_folders_and_words_narrows_it(
    filled: EnhancedStore, query: str, names: set[str]
) -> None:
    assert {hit.name for hit in filled.search(query, mode="text", limit=50).hits} == names


def test_what_no_filter_can_mean_is_an_error_and_not_an_empty_answer(filled: EnhancedStore) -> None:
    for nobody in ({"link_to": "nobody"}, {"linked_by": "nobody"}):
        with pytest.raises(NotFound):
            filled.list(filter=Filter.of(**nobody))
    for senseless in ({"since": "soon"}, {"until": "2026-13"}, {"tags": {"a": None}}):
        with pytest.raises(Invalid):
            filled.list(filter=Filter.of(**senseless))


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.text(max_size=30), st.text(max_size=30))
def test_no_text_in_a_filter_is_ever_sql(filled: EnhancedStore, one: str, two: str) -> None:
    hostile = Filter(tags={one: two, two: ""}, type=two, prefix=one)
    for item in filled.list(filter=hostile).items:
        assert item.name in EVERYONE
    assert filled.list().total == len(EVERYONE)


def test_a_filtered_search_returns_as_many_hits_as_there_are(
    store: EnhancedStore, write: Write
) -> None:
    for k in range(450):
        write(f"loud/n{k}.md", f"# Crane {k}\n\nThe harbour crane, the crane of the harbour.\n")
    for k in range(45):
        write(
            f"quiet/n{k}.md",
            f"---\ntags: [quiet]\n---\nNumber {k} once heard of a crane, long ago and far away.\n",
        )
    store.sync()
    for mode in ("text", "hybrid", "semantic"):
        for narrowed in (Filter.of(tags=["quiet"]), Filter.of(prefix="quiet/")):
            hits = store.search("harbour crane", filter=narrowed, limit=100, mode=mode).hits
            assert {hit.name for hit in hits} == {f"quiet/n{k}" for k in range(45)}, mode


def test_a_list_goes_on_page_by_page_and_misses_none(filled: EnhancedStore) -> None:
    for sort in ("modified", "created", "name", "title"):
        seen: list[str] = []
        cursor = None
        while True:
            page = filled.list(sort=sort, limit=2, cursor=cursor)
            seen += [item.name for item in page.items]
            cursor = page.next_cursor
            if cursor is None:
                break
        assert len(seen) == len(set(seen)) == len(EVERYONE)
    assert seen == sorted(
        seen, key=lambda name: name.rsplit("/", 1)[-1].casefold()
    )  # the last was by title


def test_a_cursor_of_another_list_or_of_nobody_is_refused(filled: EnhancedStore) -> None:
    by_name = filled.list(sort="name", limit=1).next_cursor
    for cursor in (by_name, "bm9uc2Vuc2U", "💥", "W10"):
        with pytest.raises(Invalid):
            filled.list(sort="title", limit=1, cursor=cursor)


def test_a_list_can_be_ordered_only_by_what_it_knows(filled: EnhancedStore) -> None:
    with pytest.raises(Invalid, match="cannot sort"):
        filled.list(sort="modified; DROP TABLE notes")


def test_what_passed_a_filter_is_asked_again_once_anybody_wrote(
    plain_store: EnhancedStore, write: Write, vault: Path
) -> None:
    file = write("a.md", "---\ntags: [todo]\n---\npear")
    write("b.md", "pear")
    old = (1_700_000_000, 1_700_000_000)
    os.utime(file, old)
    plain_store.sync()

    def found(**filters: Any) -> list[str]:
        return [hit.name for hit in plain_store.search("pear", filter=Filter.of(**filters)).hits]

    assert (found(tags="todo"), found(tags="todo")) == (["a"], ["a"])
    plain_store.change_tags("b", {"todo": True})  # by ourselves
    assert sorted(found(tags="todo")) == ["a", "b"]
    with EnhancedStore(vault) as other:  # through another connection
        other.change_tags("a", {"todo": None})
    assert found(tags="todo") == ["b"]
    os.utime(write("c.md", "pear"), old)
    plain_store.sync()
    assert sorted(found(until="2024-01-01")) == ["c"]
    os.utime(vault / "c.md")  # nothing of it changed but its time
    plain_store.sync()
    assert found(until="2024-01-01") == []
