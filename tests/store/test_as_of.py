"""A search can be asked of the vault as it was."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from embedding_service import EmbeddingService

from simplemem.config import Settings
from simplemem.errors import Invalid, NotFound, Unavailable
from simplemem.memory import Filter, Found
from simplemem.store import EnhancedStore

Write = Callable[[str, str | bytes], Path]
ADA: dict[str, Any] = {"who": "ada-code 1.0", "tool": "update_memory"}
BOB: dict[str, Any] = {"who": "bob 2.0", "tool": "update_memory"}


def then(store: EnhancedStore, question: str, moment: str, **more: Any) -> Found:
    return store.search(question, as_of=moment, limit=50, **more)


def names(found: Found) -> list[str]:
    return [hit.name for hit in found.hits]


@pytest.fixture
def tea(store: EnhancedStore, write: Write) -> EnhancedStore:
    """v1 and v2 make two notes beside one that is older than all of it; then each is changed, moved and deleted."""
    write("old.md", "The kettle is copper.")
    store.sync()
    store.create("tea", "# Leaves\n\nOolong from the mountain.", {"title": "On tea"}, **ADA)  # v1
    store.create("cups", "The cups are porcelain.", **BOB)  # v2
    store.update("tea", content="# Leaves\n\nSencha from the valley.", **BOB)  # v3
    store.move("cups", "shelf/cups", **BOB)  # v4
    store.delete("tea", **BOB)  # v5
    store.create("late", "Oolong again, and porcelain.", **ADA)  # v6
    store.sync()
    return store


def test_what_was_changed_moved_and_deleted_is_found_as_it_was(tea: EnhancedStore) -> None:
    found = then(tea, "oolong porcelain leaves", "v2", mode="text")
    assert set(names(found)) == {"tea", "cups"}
    hit = next(hit for hit in found.hits if hit.name == "tea")
    assert hit.title == "On tea" and "Oolong from the mountain." in hit.snippet
    assert (hit.heading, hit.version, hit.doubt) == ("Leaves", "v000001", "")
    assert "Oolong from the mountain." in tea.read("tea", version=hit.version).text
    assert names(then(tea, "sencha", "v3", mode="text")) == ["tea"]
    assert names(then(tea, "porcelain", "v4", mode="text")) == ["shelf/cups"]


@pytest.mark.parametrize("mode", ["text", "semantic", "hybrid"])
def test_every_way_to_search_knows_only_what_was_there(tea: EnhancedStore, mode: str) -> None:
    assert "late" in names(tea.search("oolong porcelain", mode=mode))
    assert "late" not in names(then(tea, "oolong porcelain", "v2", mode=mode))
    assert "tea" in names(then(tea, "leaves of a mountain", "v2", mode=mode))


def test_the_search_of_now_and_the_vault_are_as_they_were(tea: EnhancedStore, vault: Path) -> None:
    before = {path: path.read_bytes() for path in vault.rglob("*.md")}
    rows = tea.inspect()
    now = tea.search("oolong porcelain")
    then(tea, "oolong porcelain", "v2")
    assert tea.search("oolong porcelain") == now
    assert tea.inspect() == rows
    assert {path: path.read_bytes() for path in vault.rglob("*.md")} == before
    assert tea.history(limit=1)[0].version == "v000006"


def test_a_note_that_is_the_same_now_needs_no_version_to_be_read(tea: EnhancedStore) -> None:
    (hit,) = then(tea, "kettle", "v2", mode="text").hits
    assert (hit.name, hit.version, hit.doubt) == ("old", None, "")


def test_the_answer_says_of_what_moment_it_is(tea: EnhancedStore) -> None:
    told = then(tea, "oolong", "v2").as_of
    assert told is not None
    assert (told.version, told.differing, told.lost, told.doubtful) == ("v000002", 4, 0, 0)
    assert told.moment[:10] == told.known_since[:10] if told.known_since else False


def test_a_day_means_its_end_and_a_question_can_hold_the_moment_itself(tea: EnhancedStore) -> None:
    today = names(then(tea, "oolong porcelain", "today", mode="text"))
    assert set(today) == {"late", "shelf/cups"}
    asked = tea.search("oolong as_of:v2", mode="text")
    assert names(asked) == ["tea"] and asked.as_of is not None
    with pytest.raises(Invalid):
        then(tea, "oolong", "the day that never was")
    with pytest.raises(NotFound):
        then(tea, "oolong", "v99")


def test_filters_are_of_then_and_so_are_the_authors(tea: EnhancedStore) -> None:
    assert names(then(tea, "oolong author:ada", "v2", mode="text")) == ["tea"]
    assert names(then(tea, "sencha", "v3", filter=Filter(author="bob"), mode="text")) == ["tea"]
    assert names(then(tea, "oolong author:bob", "v2", mode="text")) == []
    assert [hit.authors for hit in then(tea, "oolong", "v2", authors=True, mode="text").hits] == [("ada-code 1.0",)]


def test_why_and_explain_speak_of_then(tea: EnhancedStore) -> None:
    found = then(tea, "oolong", "v2", why="tea", explain=True)
    assert found.why is not None and found.explain is not None
    assert found.why["verdict"] == "hit"
    assert found.explain["notes"] == 3


def test_an_edit_from_outside_is_said_to_be_uncertain(tea: EnhancedStore, vault: Path) -> None:
    (vault / "shelf" / "cups.md").write_text("The cups are made of glass, says a person.\n")
    (vault / "new.md").write_text("Who knows since when this is here.\n")
    for name in ("shelf/cups.md", "new.md"):
        os.utime(vault / name, (time.time() + 10, time.time() + 10))
    tea.sync()
    found = then(tea, "porcelain cups", "v5", mode="text")
    assert found.as_of is not None
    assert {each["name"] for each in found.as_of.doubts} == {"new", "shelf/cups"}
    (hit,) = found.hits
    assert hit.snippet == "The cups are porcelain." and "outside" in hit.doubt


def test_a_text_that_is_no_longer_kept_is_not_found_and_counted(tea: EnhancedStore, vault: Path) -> None:
    history = vault / ".simplemem" / "history"
    for kept in [*history.glob("objects/*/*"), *history.glob("displaced/*")]:
        kept.unlink()
    for kept in (vault / ".simplemem" / "trash").rglob("*.md"):
        kept.unlink()
    found = then(tea, "oolong", "v2", mode="text")
    assert found.hits == () and found.as_of is not None
    assert found.as_of.lost >= 1 and any("no longer kept" in each["doubt"] for each in found.as_of.doubts)


def test_one_copy_serves_questions_about_the_same_moment_and_is_gone_afterwards(vault: Path, write: Write) -> None:
    with EnhancedStore(vault, Settings()) as store:
        store.create("tea", "Oolong.", **ADA)
        store.update("tea", content="Sencha.", **ADA)
        then(store, "oolong", "v1")
        (copy,) = copies()
        made = copy.stat().st_ino
        assert names(then(store, "oolong", "v1")) == ["tea"]
        assert [each.stat().st_ino for each in copies()] == [made]
        store.update("tea", content="Matcha.", **ADA)  # what stood there then is as it was
        assert names(then(store, "oolong", "v1")) == ["tea"]
        assert [each.stat().st_ino for each in copies()] == [made]
        then(store, "sencha", "v2")
        assert len(copies()) == 1
    assert copies() == []


def test_a_note_that_changes_after_the_copy_was_made_is_still_found_as_it_was(tea: EnhancedStore) -> None:
    assert names(then(tea, "kettle copper", "v2", mode="text")) == ["old"]
    tea.update("old", content="The kettle is of iron now.", **ADA)
    assert names(then(tea, "copper", "v2", mode="text")) == ["old"]
    assert names(then(tea, "iron", "v2", mode="text")) == []


def test_a_program_that_ends_without_closing_its_store_leaves_no_copy(tea: EnhancedStore, vault: Path) -> None:
    program = f"""
from simplemem.store import EnhancedStore
from simplemem.config import Settings
from pathlib import Path
store = EnhancedStore(Path({str(vault)!r}), Settings.model_validate({{"embed": {{"provider": "none"}}}}))
print([hit.name for hit in store.search("oolong", as_of="v2").hits])
"""
    env = os.environ | {"TMPDIR": tempfile.gettempdir(), "TEMP": tempfile.gettempdir(), "TMP": tempfile.gettempdir()}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "['tea']", done.stderr
    assert copies() == []


def test_what_a_killed_process_left_is_cleared_away_after_a_day(tea: EnhancedStore) -> None:
    for name, age in (("dead", 100_000), ("young", 10)):
        left = Path(tempfile.gettempdir()) / f"simplemem-as-of-{name}"
        left.mkdir()
        os.utime(left, (time.time() - age, time.time() - age))
    then(tea, "oolong", "v2")
    assert {each.name.rpartition("-")[2] for each in copies()} & {"dead", "young"} == {"young"}


def test_no_old_text_is_sent_to_a_remote_embedder(
    vault: Path, service: EmbeddingService, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTP_PROXY", service.url)  # which leads to the service under the name of another machine
    embed = {"provider": "openai", "model": "tiny", "url": "http://embeddings.example/v1"}
    with EnhancedStore(vault, Settings.model_validate({"embed": embed})) as store:
        store.create("tea", "Oolong from the mountain.", **ADA)
        store.update("tea", content="Sencha from the valley.", **ADA)
        store.create("cups", "Porcelain.", **ADA)
        store.sync()
        before = len(service.asked)
        found = then(store, "oolong", "v1")
        assert names(found) == ["tea"] and "by words only" in found.degraded
        sent = [text for request in service.asked[before:] for text in request.texts]
        assert sent and not any("mountain" in text for text in sent)


def test_a_context_pack_is_of_then_too(tea: EnhancedStore) -> None:
    packed = tea.context("oolong sencha as_of:v2")
    assert "mountain" in packed.text and "valley" not in packed.text
    assert packed.as_of is not None and packed.as_of.version == "v000002"


def test_a_vault_that_may_only_be_read_can_be_asked_about_then(tea: EnhancedStore, vault: Path) -> None:
    tea.close()
    with EnhancedStore(vault, Settings(), read_only=True) as reader:
        assert names(then(reader, "oolong", "v2", mode="text")) == ["tea"]


def test_a_damaged_copy_is_made_anew_and_the_index_of_the_vault_is_left_alone(tea: EnhancedStore) -> None:
    assert names(then(tea, "oolong", "v2", mode="text")) == ["tea"]
    before = tea.core.index.path.stat().st_ino
    (copy,) = copies()
    with (copy / "index.db").open("r+b") as file:
        file.write(b"\0" * file.seek(0, os.SEEK_END))
        file.seek(0)
        file.write(b"not a database at all " * 2_000)
    assert names(then(tea, "oolong", "v2", mode="text")) == ["tea"]
    assert tea.core.index.path.stat().st_ino == before
    assert names(tea.search("oolong", mode="text")) == ["late"]


def test_without_a_place_for_a_copy_it_is_said_and_the_index_is_left_alone(
    tea: EnhancedStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = tea.core.index.path.stat().st_ino
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(Unavailable, match="temporary folder") as caught:
        then(tea, "oolong", "v2")
    assert "TMPDIR" in caught.value.hint
    assert tea.core.index.path.stat().st_ino == before
    assert names(tea.search("oolong", mode="text")) == ["late"]


def test_questions_from_several_threads_about_several_moments_each_get_their_own(tea: EnhancedStore) -> None:
    wanted = {"v2": ["tea"], "v3": [], "v6": ["late"]}
    with ThreadPoolExecutor(6) as pool:
        asked = [(moment, pool.submit(then, tea, "oolong", moment, mode="text")) for moment in [*wanted] * 6]
        now = [pool.submit(tea.search, "oolong", mode="text") for _ in range(6)]
    assert all(names(answer.result()) == wanted[moment] for moment, answer in asked)
    assert all(names(answer.result()) == ["late"] for answer in now)


@pytest.mark.parametrize("seed", range(2))
def test_every_moment_is_found_as_it_was_found_then(plain_store: EnhancedStore, seed: int) -> None:
    """Whatever was done with the notes, an answer given at the time is given again."""
    store, chance = plain_store, random.Random(seed)
    words = ["oolong", "sencha", "kettle", "copper", "valley"]
    answers: dict[str, list[Any]] = {}
    there: list[str] = []
    for turn in range(24):
        said = " ".join(chance.choices(words, k=4)) + "."
        act = chance.choice(["create", "update", "append", "tag", "move", "delete", "undo"]) if there else "create"
        name = chance.choice(there) if there else ""
        if act == "create":
            there.append(f"n{turn}")
            store.create(there[-1], f"# On {said}\n\nSee [[{name}]], {said}", {"title": said.title()}, **ADA)
        elif act == "update":
            store.update(name, content=said, **BOB)
        elif act == "append":
            store.update(name, append=f"\n{said}", **ADA)
        elif act == "tag":
            store.change_tags(name, {f"t{turn}": True}, **ADA)
        elif act == "move":
            there[there.index(name)] = f"moved/{turn}"
            store.move(name, f"moved/{turn}", **BOB)
        else:
            there.remove(name)
            store.delete(name, **BOB)
            if act == "undo":
                store.undo(name, **BOB)
                there.append(name)
        answers[store.history(limit=1)[0].version] = [_told(store.search(word, limit=50)) for word in words]
    for version, answer in answers.items():
        assert [_told(then(store, word, version)) for word in words] == answer, version


def _told(found: Found) -> list[tuple[Any, ...]]:
    return [(h.name, h.title, h.score, h.snippet, h.heading, h.line, h.tags, h.sha256) for h in found.hits]


def copies() -> list[Path]:
    return sorted(Path(tempfile.gettempdir()).glob("simplemem-as-of-*"))


@pytest.fixture(autouse=True)
def a_folder_for_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other processes make copies too."""
    room = tmp_path / "temporary"
    room.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(room))
