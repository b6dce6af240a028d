"""A store with an embedder elsewhere: what is sent and what never is, and what is left when it does not answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from embedding_service import WELL, EmbeddingService, failing
from postgres import needs_postgres, running
from waiting import PATIENCE, eventually

from simplemem.providers.keys import Key
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore
from simplemem.store.embedding import choice_of

Write = Callable[[str, str | bytes], Path]
Open = Callable[..., EnhancedStore]
FAR = "http://embeddings.example/v1"


@pytest.fixture
def far(service: EmbeddingService, monkeypatch: pytest.MonkeyPatch) -> EmbeddingService:
    """The service under the name of another machine, which a proxy leads to."""
    for name in ("NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTP_PROXY", service.url)
    return service


@pytest.fixture
def open_with(vault: Path) -> Iterator[Open]:
    """Open the vault with these settings of the embedder: far away, unless another `url` is given."""
    opened: list[EnhancedStore] = []

    def open_one(*, engine: str | None = None, **embed: Any) -> EnhancedStore:
        asked = (
            {"provider": "openai", "model": "tiny", "url": FAR} if "provider" not in embed else {}
        )
        index = {"scan_minutes": 60, "engine": engine}
        settings = {"embed": {**asked, **embed}, "write": {"durability": "fast"}, "index": index}
        opened.append(EnhancedStore(vault, Settings.model_validate(settings)))
        return opened[-1]

    yield open_one
    for store in opened:
        store.close()


@pytest.fixture(params=["sidecar", pytest.param("postgres", marks=needs_postgres)])
def engine(request: pytest.FixtureRequest) -> Iterator[str | None]:
    """What holds the index: its address, if it has one."""
    with running() if request.param == "postgres" else nullcontext() as url:
        yield url


@contextmanager
def serving(store: EnhancedStore) -> Iterator[EnhancedStore]:
    store.start()
    assert store.wait_until_settled(PATIENCE)
    yield store


def meant(store: EnhancedStore, text: str) -> list[str]:
    """What is found by meaning alone, and not by words for want of it."""
    found = store.search(text, mode="semantic", explain=True)
    return [hit.name for hit in found.hits if hit.why and hit.why["meaning"]]


# -- what never leaves this machine


def test_no_byte_of_a_private_note_is_ever_sent(
    far: EmbeddingService, open_with: Open, write: Write, engine: str | None
) -> None:
    write("open.md", "The harbour crane was repaired.")
    write(
        "by-property.md",
        "---\nprivate: true\ntitle: Quagga one\n---\nThe quagga was first seen by the Zambezi.",
    )
    write("by-tag.md", "A quagga again, which is #private/animals.")
    write("journal/today.md", "I dreamt of a quagga.")
    write("broken.md", "---\nprivate: [true\n---\nThe quagga of a broken header.")
    with serving(open_with(private=["journal/"], engine=engine)) as store:
        assert eventually(
            lambda: store.state().state == "ready" and meant(store, "harbour crane") == ["open"]
        )
        store.create("made", "The quagga was made.", {"private": True})
        store.create("later", "The crane was open to all.")
        assert eventually(lambda: any("open to all" in text for text in far.texts()))
        store.change_tags("later", {"private": True})
        store.update("later", append="Later it was a quagga.")
        store.update("made", append="And the quagga was changed.")
        store.create("journal/tomorrow", "A quagga as well.")
        store.move("made", "journal/moved")
        store.update(
            "journal/moved", metadata={"private": None}
        )  # its folder still keeps it private
        write("by-hand.md", "---\ntags: [private]\n---\nA quagga typed by hand.")
        store.sync()
        store.sync(rebuild=True)
        for name in ("by-property", "by-tag", "later", "journal/tomorrow"):
            store.read(name)
            store.related(name)
            store.backlinks(name, query="crane")
        store.search("repaired crane", explain=True)
        store.context("repaired crane")
        store.doctor()
        assert store.sync().trouble == ""
        facts = store.stats()["embedding"]
        assert (facts["waiting"], facts["private"], facts["notes_with_vectors"]) == (0, 8, 1)
        assert store.state().state == "ready" and "8 private notes" in store.state().reason
    sent = bytes(far.received).lower()
    assert b"harbour crane" in sent and b"open to all" in sent
    for secret in (b"quagga", b"zambezi", b"dreamt"):
        assert secret not in sent


def test_what_becomes_private_loses_its_vectors_and_what_is_freed_gets_them(
    far: EmbeddingService, open_with: Open, write: Write
) -> None:
    write("journal/a.md", "The harbour crane.")
    write("b.md", "---\nprivate: true\n---\nThe harbour ferry.")
    first = open_with()
    first.sync()
    assert first.stats()["vectors"] == 1
    first.close()
    with_rule = open_with(private=["journal/"])
    with_rule.sync()
    assert with_rule.stats()["vectors"] == 0
    assert meant(with_rule, "harbour crane") == []
    with_rule.close()
    without = open_with()
    without.update("b", metadata={"private": None})
    without.sync()
    assert set(meant(without, "harbour")) == {"journal/a", "b"}


def test_a_rule_that_only_this_process_knows_holds_against_an_index_made_without_it(
    far: EmbeddingService, open_with: Open, write: Write
) -> None:
    write("journal/a.md", "The quagga of the journal.")
    write("b.md", "The harbour ferry.")
    loose, strict = open_with(), open_with(private=["journal/"])
    loose.sync(embed=False)
    strict._parts.embedding.fill(None, begin=True, ready=None)  # before any scan of its own
    assert b"harbour ferry" in far.received and b"quagga" not in far.received


# -- one embedder after another


def test_while_the_vectors_of_another_embedder_are_made_words_answer_and_the_answer_says_so(
    service: EmbeddingService, open_with: Open, write: Write
) -> None:
    for k, subject in enumerate(["harbour crane", "honey bees", "night trains"]):
        write(f"n{k}.md", f"All about {subject}.")
    before = open_with(provider="wordllama")
    before.sync()
    before.close()
    store = open_with(url=f"{service.url}/v1", batch=1)
    store.sync(embed=False)
    found = store.search("honey")
    assert [hit.name for hit in found.hits] == [
        "n1"
    ] and "vectors of openai/tiny at 127.0.0.1" in found.degraded
    assert "exist yet" in found.degraded and "not yet by meaning" in store.state().reason
    service.next(WELL, failing(404, "the model is gone"))
    report = store.sync()
    assert (report.embedded, "the model is gone" in report.trouble) == (0, True)
    for mode in ("hybrid", "semantic"):
        assert "404, the model is gone" in store.search("honey", mode=mode).degraded
    assert store.state().state == "partial" and store.state().pending == 2
    assert (
        store.context("honey").degraded != "" and store.search("honey", mode="text").degraded == ""
    )
    service.always = WELL
    assert store.sync().embedded == 2
    assert store.search("honey").degraded == ""
    assert store.stats()["embedder"].startswith("openai/tiny at 127.0.0.1")
    assert store.state().state == "ready"


def test_a_rebuild_pays_for_no_text_twice(
    service: EmbeddingService, open_with: Open, write: Write
) -> None:
    for k in range(5):
        write(f"n{k}.md", f"Crane number {k}.")
    store = open_with(url=f"{service.url}/v1")
    store.sync()
    service.requests.clear()
    write("n0.md", "Another crane.")
    store.sync(rebuild=True)
    assert [text for text in service.texts() if "rane" in text] == ["n0\nAnother crane."]
    assert (
        store.stats()["vectors"] == 5 and store.state().state == "ready" and meant(store, "crane")
    )


def test_two_servers_with_different_embedders_do_not_undo_each_other_for_ever(
    service: EmbeddingService, open_with: Open, write: Write
) -> None:
    for k in range(5):
        write(f"n{k}.md", f"Crane number {k}.")
    one, other = open_with(provider="wordllama"), open_with(url=f"{service.url}/v1")
    with serving(one):
        assert eventually(lambda: one.state().state == "ready")
        with serving(other):
            assert eventually(lambda: other.state().state == "ready")
            asked = len(service.requests)
            one.create(
                "more", "One more crane."
            )  # wakes the one, which leaves the other's vectors alone
            other.create("still", "And still one more.")
            assert eventually(lambda: other.state().pending == 0 and len(service.requests) > asked)
            assert other.stats()["embedder"].startswith("openai/tiny")
            assert "words only" in one.search("crane").degraded
            assert one.search("crane").hits
            texts = service.texts()
    assert len([text for text in texts if "number" in text]) == 5


# -- when it fails


def test_an_embedder_that_fails_touches_neither_words_nor_writes_and_is_named(
    service: EmbeddingService, open_with: Open, write: Write
) -> None:
    write("a.md", "The harbour crane.")
    store = open_with(url=f"{service.url}/v1")
    store.sync()
    service.always = failing(401, "this key is not known")
    store.create("b", "Another crane.")
    report = store.sync()
    assert (
        report.embedded == 0
        and "does not accept the key: 401, this key is not known" in report.trouble
    )
    found = store.search("crane")
    assert {hit.name for hit in found.hits} == {"a", "b"}
    assert found.degraded.startswith("The embedder openai/tiny at 127.0.0.1")
    assert "searched by words only" in found.degraded
    assert "this key is not known" in store.stats()["embedding"]["trouble"]
    service.always = WELL
    assert store.sync().embedded == 1
    assert store.search("crane").degraded == "" and store.stats()["embedding"]["last_failure"] == ""


def test_a_server_goes_on_by_itself_when_the_embedder_is_back(
    service: EmbeddingService, open_with: Open, write: Write
) -> None:
    for k in range(6):
        write(f"n{k}.md", f"Crane number {k}.")
    service.next(WELL, WELL)
    service.always = failing(404, "out of order")
    with serving(open_with(url=f"{service.url}/v1", batch=1)) as store:
        assert eventually(lambda: "out of order" in store.search("crane").degraded)
        store.create("made", "A crane made meanwhile.")
        assert len(store.search("crane", mode="text", limit=10).hits) == 7
        service.always = WELL
        assert eventually(lambda: store.state().state == "ready")
        assert store.search("crane").degraded == ""
    documents = [text for text in service.texts() if "number" in text]
    # Only the one that failed is asked for again, however often: those that were made before are not.
    assert len({text for text in documents if documents.count(text) > 1}) <= 1


def test_a_text_that_is_refused_is_named_and_stops_no_other(
    service: EmbeddingService, open_with: Open, write: Write
) -> None:
    for k in range(9):
        write(f"n{k}.md", f"Crane number {k}.")
    write("bad.md", "A crane of poison.\n\n" + "Filler of the harbour. " * 200)
    service.refuses = lambda text: "poison" in text
    store = open_with(url=f"{service.url}/v1")
    report = store.sync()
    assert (report.embedded, report.trouble) == (10, "")
    assert store.state().state == "ready"
    (refused,) = store.stats()["embedding"]["refused"]
    assert refused["path"] == "bad.md" and "too long for this model" in refused["why"]
    assert "bad" in meant(store, "filler harbour")  # what was not refused has its vectors
    asked = len(service.requests)
    store.sync()
    assert len(service.requests) == asked
    write("bad.md", "A crane of paper.")
    store.sync()
    assert store.stats()["embedding"]["refused"] == []


# -- what it costs


def test_an_interrupted_run_keeps_what_was_made(
    service: EmbeddingService, open_with: Open, write: Write
) -> None:
    for k in range(10):
        write(f"n{k}.md", f"Crane number {k}.")
    store = open_with(url=f"{service.url}/v1", batch=2)

    def impatient(stage: str, done: int, total: int) -> None:
        if stage == "vectors" and done >= 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.sync(progress=impatient)
    assert store.state().pending == 6
    seen: list[tuple[int, int]] = []
    store.sync(
        progress=lambda stage, done, total: (
            seen.append((done, total)) if stage == "vectors" else None
        )
    )
    assert seen == [(2, 6), (4, 6), (6, 6)]
    assert len(service.texts()) == 10


# -- which it is

KEY = "sk-test-0123456789abcdefghij"


def settings(**tables: dict[str, Any]) -> Settings:
    return Settings.model_validate(tables)


def test_what_a_file_of_the_original_says_holds_for_voyage_and_for_nothing_else(
    tmp_path: Path,
) -> None:
    file = tmp_path / "voyage.key"
    file.write_text(KEY)
    original = {"api_key": {"path": str(file)}, "model": "voyage-3-large"}
    taken = choice_of(settings(embed={"provider": "voyage"}, voyage_ai=original))
    assert (taken.model, Key(taken.api_key).value()) == ("voyage-3-large", KEY)
    both = choice_of(
        settings(
            embed={"provider": "voyage", "model": "voyage-4", "api_key": "pa-1"}, voyage_ai=original
        )
    )
    assert (both.model, Key(both.api_key).value()) == ("voyage-4", "pa-1")
    other = choice_of(settings(embed={"provider": "openai"}, voyage_ai=original))
    assert (other.model, other.api_key) == ("", None)
