"""Vectors are made of one embedder at a time: another's take their place, and what changes meanwhile gets its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path

import pytest

from simplemem.errors import Unavailable
from simplemem.index import embeddings
from simplemem.index.api import IndexQuery
from simplemem.index.comparison import dump
from simplemem.index.service import IndexService
from simplemem.index.sqlite.engine import SqliteEngine, open_engine
from simplemem.index.updater import IndexUpdater
from simplemem.index.vectors import QueryVector
from simplemem.providers.word_vectors import Multilingual, shared_wordllama
from simplemem.vault.base import VaultOptions
from simplemem.vault.folder.vault import FolderVault

Write = Callable[[str, str | bytes], Path]
SUBJECTS = [
    "harbour cranes",
    "honey bees",
    "night trains",
    "paper lanterns",
    "salt marshes",
    "winter apples",
]


class Half(Multilingual):
    """Half the dimensions of the embedder in the package, and another name: another embedder, and as real."""

    name = "half"
    batch = 1

    def __init__(self) -> None:
        super().__init__(shared_wordllama())
        self.given: list[str] = []
        self.fails_after = 10_000

    def documents(
        self, texts: Sequence[str], *, stopped: Callable[[], bool] = lambda: False
    ) -> list[bytes]:
        if len(self.given) + len(texts) > self.fails_after:
            raise Unavailable(f"{self.name} does not answer: it was switched off")
        self.given += texts
        return [vector[:128] for vector in super().documents(texts)]

    def query(self, text: str, *, deadline: float | None = None) -> bytes:
        return WHOLE.query(text)[:128]


class Other(Multilingual):
    """As many dimensions, and another name."""

    name = "other"


WHOLE, OTHER = Multilingual(shared_wordllama()), Other(shared_wordllama())


@pytest.fixture
def half() -> Half:
    return Half()


class Kept:
    """A vault with its index, and nothing that works in the background."""

    def __init__(self, root: Path, database: Path) -> None:
        self.vault = FolderVault(root, VaultOptions(durable=False))
        self.index = IndexService(database_at := SqliteEngine(database, nullcontext))
        self.database = database_at
        self.rows = IndexUpdater(self.vault, self.database, lambda path: None, 1_000_000)

    def fill(self, embedder: Multilingual) -> int:
        self.rows.scan()
        return embeddings.EmbeddingJob(self.vault, self.database, embedder).run()

    def lengths(self) -> set[int]:
        with self.database.reading() as db:
            places, _ = db.vectors.read_all(blocks=False)
            return {len(vector) for vector in db.vectors.read(places).values()}

    def in_use(self) -> str:
        return self.index.progress().space.embedder

    def rows_of_all(self) -> list[tuple[object, ...]]:
        with self.database.reading() as db:
            return list(dump(db))

    def nearest(self, embedder: Multilingual, text: str) -> list[str]:
        """The notes by their nearness to a text, nearest first."""
        answer = self.index.ask(IndexQuery(vector=QueryVector(embedder.query(text), embedder.name)))
        near = answer.similarities.scores if answer.similarities else {}
        return [answer.paths[note] for note in sorted(near, key=lambda note: -near[note])]

    def close(self) -> None:
        self.index.close()


@pytest.fixture
def kept(vault: Path, write: Write, tmp_path: Path) -> Iterator[Kept]:
    for k, subject in enumerate(SUBJECTS):
        write(f"n{k}.md", f"What we know about {subject}.\n")
    opened = Kept(vault, tmp_path / "index.db")
    yield opened
    opened.close()


def test_what_changes_while_vectors_are_made_is_as_if_it_had_always_been_so(
    kept: Kept, half: Half, vault: Path, write: Write, tmp_path: Path
) -> None:
    kept.fill(WHOLE)
    half.fails_after = 3
    with pytest.raises(Unavailable):
        kept.fill(half)
    write("n0.md", "What we know about ferries.\n")  # has its new vector, and needs another
    write("n5.md", "What we know about summer apples.\n")  # had none yet
    write("new.md", "What we know about kites.\n")
    (vault / "n1.md").rename(vault / "moved.md")
    (vault / "n2.md").unlink()
    kept.rows.scan()
    assert kept.in_use() == "half" and kept.nearest(WHOLE, "paper lanterns") == []
    half.fails_after = 10_000
    kept.fill(half)
    afresh = Kept(vault, tmp_path / "afresh.db")
    try:
        afresh.fill(Half())
        assert kept.rows_of_all() == afresh.rows_of_all()
    finally:
        afresh.close()


def test_a_note_that_nobody_can_read_does_not_hold_up_the_others(
    kept: Kept, half: Half, vault: Path
) -> None:
    kept.fill(WHOLE)
    (vault / "n2.md").rename(vault / "n2.away")  # and the index has not heard of it
    assert embeddings.EmbeddingJob(kept.vault, kept.database, half).run() == 5
    assert kept.in_use() == "half" and len(kept.nearest(half, "honey bees")) == 5
    (vault / "n2.away").rename(vault / "n2.md")
    assert embeddings.EmbeddingJob(kept.vault, kept.database, half).run() == 1
    assert len(kept.nearest(half, "honey bees")) == 6


def test_who_holds_vectors_in_memory_lets_the_old_ones_go(kept: Kept, vault: Path) -> None:
    kept.fill(WHOLE)
    reader = Kept(vault, kept.index.path)
    try:
        assert reader.nearest(WHOLE, "honey bees")[0] == "n1.md"
        kept.fill(OTHER)  # as wide, so that nothing but the name tells
        kept.database.rows("SELECT 1")
        with (
            kept.database.writing() as db
        ):  # vectors that would give another answer, had they been loaded
            places, _ = db.vectors.read_all(blocks=False)
            (other,) = (vector for _, vector in db.vectors.read_notes([4], blocks=False))
            db.vectors.write([(place, other) for place in places])
        assert reader.nearest(WHOLE, "honey bees") == []
        asked = QueryVector(OTHER.query("honey bees"), "other")
        similarities = reader.index.ask(IndexQuery(vector=asked)).similarities
        assert similarities is not None
        assert len({round(score, 5) for score in similarities.scores.values()}) == 1
    finally:
        reader.close()


def test_a_model_that_changes_its_width_stores_nothing(
    kept: Kept, half: Half, write: Write
) -> None:
    kept.fill(half)

    class Wider(Half):
        def documents(
            self, texts: Sequence[str], *, stopped: Callable[[], bool] = lambda: False
        ) -> list[bytes]:
            return Multilingual.documents(self, texts)

    write("more.md", "What we know about kites.\n")
    with pytest.raises(Unavailable, match="128 and 256"):
        kept.fill(Wider())
    assert kept.lengths() == {128}


def test_a_fill_stops_when_another_process_begins_with_another_embedder(
    kept: Kept, half: Half
) -> None:
    kept.fill(WHOLE)

    class Slow(Half):
        """While it makes its second vector, another process begins with another embedder."""

        def documents(
            self, texts: Sequence[str], *, stopped: Callable[[], bool] = lambda: False
        ) -> list[bytes]:
            if len(self.given) == 1:
                elsewhere = open_engine(kept.index.path, nullcontext)
                embeddings.set_embedder(elsewhere, OTHER)
                elsewhere.close()
            return super().documents(texts, stopped=stopped)

    slow = Slow()
    assert kept.fill(slow) == 1
    assert len(slow.given) == 2  # the one under way; nothing is asked for in vain after it
    assert kept.in_use() == "other" and kept.lengths() == set()


def test_vectors_are_taken_over_where_the_text_is_the_same_and_of_this_width(
    kept: Kept, half: Half, vault: Path, write: Write, tmp_path: Path
) -> None:
    kept.fill(half)
    write("n0.md", "What we know about ferries.\n")
    write("n1.md", "---\nprivate: true\n---\nWhat we know about honey bees.\n")
    far = Half()
    far.remote = True
    for width, asked in ((128, 1), (None, 1), (256, 5)):
        far.given.clear()
        other = Kept(vault, tmp_path / f"{width}.db")
        try:
            other.rows.scan()
            embeddings.set_embedder(other.database, far)
            embeddings.copy_vectors(kept.database, other.database, width)
            other.fill(far)
            assert len(far.given) == asked
            assert other.lengths() == {128} and other.index.embedded("half", True).waiting == 0
        finally:
            other.close()


def test_texts_that_wait_serve_a_note_whose_header_alone_another_process_has_seen_change(
    kept: Kept, half: Half, vault: Path, write: Write
) -> None:
    kept.rows.scan()  # the texts of all wait in this process
    write("n0.md", "---\ntags: [port]\n---\nWhat we know about harbour cranes.\n")
    other = Kept(vault, kept.index.path)
    try:
        other.fill(half)
        embeddings.set_embedder(kept.database, WHOLE)
        made = embeddings.EmbeddingJob(
            kept.vault, kept.database, WHOLE, ready=kept.rows.waiting
        ).run()
        assert (made, kept.index.progress().waiting) == (len(SUBJECTS), 0)
    finally:
        other.close()
