"""Questions are asked of notes that lack what is asked for, in a copy; the vault itself never knows."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from simplemem.config import Settings
from simplemem.evaluate import asking
from simplemem.evaluate.asking import GREP, Outcome, held_out, measure
from simplemem.evaluate.figures import Figure, difference
from simplemem.evaluate.pairs import Held, Pair
from simplemem.evaluate.sampling import sample
from simplemem.evaluate.scratch import Read, read_vault, scratch
from simplemem.evaluate.sentences import key_of
from simplemem.note.note import read_note
from simplemem.store import EnhancedStore


def shown(store: EnhancedStore, question: str) -> str:
    return " ".join(hit.snippet for hit in store.search(question, limit=5).hits)


def of_vault(read: Read) -> tuple[Pair, ...]:
    return sample(read.sources, list(read.times), 60, 1).pairs


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        file.relative_to(folder).as_posix(): (os.stat(file).st_mtime_ns, file.read_bytes() if file.is_file() else b"")
        for file in [folder, *folder.rglob("*")]
    }


def asked(read: Read, pair: Pair, settings: Settings) -> tuple[list[str], list[str]]:
    """What is found of a pair's question as the notes are, and while its text is held out."""
    with scratch(read, {"only": settings}) as copy:
        before = [hit.name for hit in copy.stores[0].search(pair.question).hits]
        paths = {source.name: source.path for source in read.sources}
        texts = {source.name: source.text for source in read.sources}
        changed = held_out(pair, 7, paths, texts)
        assert changed is not None
        copy.hold({path: (now, text.encode()) for path, (now, text) in changed.items()})
        return before, [hit.name for hit in copy.stores[0].search(pair.question).hits]


@pytest.mark.parametrize(
    ("what", "text", "question", "where"),
    [
        ("title", "Kettle repair", "repair", "Kettle repair"),
        ("alias", "Teapot ward", "teapot ward", "Kettle repair"),
        ("description", "Descaling with citric vinegar mornings", "descaling citric", "Kettle repair"),
        ("heading", "Thermostat replacement steps", "thermostat replacement steps", "Kettle repair"),
        ("sentence", "Layers of straw and kitchen waste heat up within days.", "waste heat up", "garden/Compost"),
        ("link", "boiling vessel handbook", "boiling vessel handbook", "garden/Tomatoes"),
    ],
)
def test_what_is_held_out_is_found_before_and_not_while_it_is_asked(
    read: Read, words_only: Settings, what: str, text: str, question: str, where: str
) -> None:
    others = (Held(where, "heading", text),) if what == "title" else ()
    pair = Pair(what, question, (where,), (Held(where, what, text), *others))
    before, while_asked = asked(read, pair, words_only)
    assert where in before and where not in while_asked
    if what != "heading" and what != "title":
        return
    assert not any(name.endswith("x0") for name in while_asked)  # nor under the name it has meanwhile


def test_no_note_says_what_is_held_out_of_it_for_any_question_of_a_vault(read: Read) -> None:
    paths = {source.name: source.path for source in read.sources}
    texts = {source.name: source.text for source in read.sources}
    pairs = of_vault(read)
    assert len(pairs) > 15
    for number, pair in enumerate(pairs):
        changed = held_out(pair, number, paths, texts)
        assert changed is not None
        for held in pair.held_out:
            path, text = changed[paths[held.note]]
            note = read_note(text.encode())
            left = [note.string("title"), note.string("description"), *note.aliases, path.rsplit("/", 1)[-1][:-3]]
            left += [heading.text for heading in note.body.headings] + [link.display for link in note.body.links]
            assert key_of(held.text) not in [key_of(each) for each in left if each]
            assert held.what != "sentence" or key_of(held.text) not in key_of(text)


def test_after_a_question_a_note_is_as_it_was(read: Read, words_only: Settings) -> None:
    with scratch(read, {"only": words_only}) as copy:
        (store,) = copy.stores
        before = snapshot(copy.root)
        copy.hold({"Kettle repair.md": ("q1.md", b"A zither.\n"), "garden/Compost.md": ("garden/Compost.md", b"x\n")})
        assert [hit.name for hit in store.search("zither").hits] == ["q1"]
        copy.hold({"Kettle repair.md": ("q2.md", b"An oboe.\n")})
        assert [hit.name for hit in store.search("oboe").hits] == ["q2"]
        assert store.search("zither").hits == ()
        assert "garden/Compost" in [hit.name for hit in store.search("straw").hits]
        copy.hold({})
        assert store.search("oboe").hits == ()
        assert store.search("thermostat").hits[0].name == "Kettle repair"
        now = snapshot(copy.root)
        kept = [path for path in before if not path.startswith(".simplemem") and (copy.root / path).is_file()]
        assert [now[path] for path in kept] == [before[path] for path in kept]
        assert sorted(store.names()) == sorted(source.name for source in read.sources)


def test_a_note_of_the_same_size_and_time_is_read_again(read: Read, words_only: Settings) -> None:
    with scratch(read, {"only": words_only}) as copy:
        for word in ("zebra", "camel", "tiger"):
            copy.hold({"Kettle repair.md": ("Kettle repair.md", f"A {word}.\n".encode())})
            assert [hit.name for hit in copy.stores[0].search(word).hits] == ["Kettle repair"]


def test_vectors_follow_what_is_held_out(read: Read) -> None:
    with scratch(read, {"only": Settings()}) as copy:
        (store,) = copy.stores
        copy.hold({"Kettle repair.md": ("Kettle repair.md", b"Elephants and giraffes of the savannah.\n")})
        assert store.search("zoo animals of Africa", mode="semantic").hits[0].name == "Kettle repair"
        assert store.state().pending == 0
        copy.hold({})
        found = store.search("zoo animals of Africa", mode="semantic").hits
        assert not any("Elephants" in hit.snippet for hit in found)
        assert store.state().pending == 0


def test_neither_the_vault_nor_its_index_is_touched(notes: Path, words_only: Settings) -> None:
    with EnhancedStore(notes, words_only) as store:
        store.sync()
    (notes / "picture.png").write_bytes(b"not really")
    before = snapshot(notes)
    read = read_vault(notes, words_only)
    measure(read, of_vault(read)[:6], {"simplemem": words_only}, shown)
    assert snapshot(notes) == before


def test_a_vault_without_an_index_gets_none(notes: Path, words_only: Settings) -> None:
    read = read_vault(notes, words_only)
    measure(read, of_vault(read)[:2], {"simplemem": words_only}, shown)
    assert not (notes / ".simplemem").exists()


def test_the_copy_is_gone_afterwards_whatever_happens(
    read: Read, words_only: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()

    def interrupted(store: EnhancedStore, question: str) -> str:
        assert list((tmp_path / "temporary").iterdir())
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure(read, of_vault(read), {"simplemem": words_only}, interrupted)
    assert list((tmp_path / "temporary").iterdir()) == []


def test_the_same_settings_differ_by_nothing_and_others_may(read: Read, words_only: Settings) -> None:
    variants = {"simplemem": Settings(), "same": Settings(), "words": words_only}
    measured = measure(read, of_vault(read)[:12], variants, shown)
    base = measured.rows["simplemem"]
    assert set(difference(measured.rows["same"], base).values()) == {Figure(0.0, 0.0, 0.0)}
    assert measured.rows["words"] != base


def test_outcomes_are_what_the_search_and_grep_gave(read: Read, words_only: Settings) -> None:
    pairs = [
        Pair("mine", "thermostat torx limestone", ("Kettle repair",)),
        Pair("mine", "thirds metronome", ("music/Violin practice", "garden/Compost")),
        Pair("mine", "xyzzy", ("Kettle repair",)),
    ]
    measured = measure(read, pairs, {"simplemem": words_only}, shown)
    ours, of_grep = measured.rows["simplemem"], measured.rows[GREP]
    assert [(each.recall5, each.recall10, each.mrr) for each in ours] == [(1, 1, 1), (0.5, 0.5, 1), (0, 0, 0)]
    assert [(each.recall5, each.mrr, each.ms) for each in of_grep] == [(1, 1, None), (0.5, 0.5, None), (0, 0, None)]
    assert ours[0].tokens > 10 and ours[2].tokens == 0 and of_grep[2].tokens == 0
    assert all(isinstance(each, Outcome) and each.ms is not None and each.ms >= 0 for each in ours)


def test_a_search_with_less_than_it_should_have_is_counted(read: Read, words_only: Settings) -> None:
    pairs = [
        Pair("mine", '"no such words" limestone', ("Kettle repair",)),
        Pair("mine", "limestone", ("Kettle repair",)),
    ]
    measured = measure(read, pairs, {"simplemem": words_only}, lambda *_: "")
    assert [(count, "no such words" in why) for why, count in measured.degraded["simplemem"].items()] == [(1, True)]


def test_a_question_that_no_note_answers_counts_as_missed(read: Read, words_only: Settings) -> None:
    measured = measure(read, [Pair("mine", "limestone", ())], {"simplemem": words_only}, shown, grep=False)
    assert [(each.recall5, each.mrr) for each in measured.rows["simplemem"]] == [(0, 0)]
    assert list(measured.rows) == ["simplemem"]


def test_pairs_of_notes_that_are_gone_are_left_out_and_counted(notes: Path, read: Read, words_only: Settings) -> None:
    pairs = [
        Pair("title", "Kettle repair", ("Kettle repair",), (Held("Kettle repair", "title", "Kettle repair"),)),
        Pair("link", "string", ("music/Violin practice",), (Held("music/Choir", "link", "string warm-up routine"),)),
    ]
    (notes / "Kettle repair.md").unlink()
    again = read_vault(notes, words_only)
    measured = measure(again, pairs, {"simplemem": words_only}, shown)
    assert measured.skipped == 1 and len(measured.rows["simplemem"]) == len(measured.rows[GREP]) == 1


def test_progress_is_told_to_the_last_question(read: Read, words_only: Settings) -> None:
    told: list[tuple[str, int, int]] = []
    measure(read, of_vault(read)[:3], {"simplemem": words_only}, shown, progress=lambda *each: told.append(each))
    assert [each for each in told if each[0] == "asking"] == [("asking", number, 3) for number in (1, 2, 3)]


def test_hidden_notes_and_attachments_keep_their_places_in_the_copy(notes: Path, words_only: Settings) -> None:
    (notes / ".obsidian").mkdir()
    (notes / ".obsidian" / "app.json").write_text('{"userIgnoreFilters": ["garden/"]}', encoding="utf-8")
    (notes / "plan.png").write_bytes(b"a picture")
    read = read_vault(notes, words_only)
    with scratch(read, {"only": words_only}) as copy:
        assert copy.stores[0].search("straw").hits == ()
        assert (copy.root / "plan.png").read_bytes() == b""
        assert (copy.root / "garden" / "Compost.md").read_bytes() == (notes / "garden" / "Compost.md").read_bytes()
    assert asking.GREP not in {source.name for source in read.sources}


def test_the_notes_that_a_killed_evaluation_left_behind_go_with_the_next(
    read: Read, words_only: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    left, under_way, others = (
        tmp_path / "temporary" / name for name in ("simplemem-eval-a", "simplemem-eval-b", "other")
    )
    for folder in (left, under_way, others):
        (folder / "vault").mkdir(parents=True)
        (folder / "vault/secret.md").write_text("The combination of the safe.")
    for folder in (left, others):
        os.utime(folder, (1_700_000_000, 1_700_000_000))
    with scratch(read, {"only": words_only}):
        assert not left.exists()
    assert sorted((tmp_path / "temporary").iterdir()) == [others, under_way]
