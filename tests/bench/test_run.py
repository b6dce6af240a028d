"""A benchmark is asked of each haystack or of the whole corpus, and printed as a table or as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench.retrieval.__main__ import main
from bench.retrieval.data import Benchmark, Document, Question
from bench.retrieval.run import run
from bench.retrieval.servers import SimplememServer, content_words
from bench.retrieval.systems import Answer, Search, simplemem_systems

BENCHMARK = Benchmark(
    "kayaks",
    {
        "ann": (
            Document("a1", "The red kayak leans on the barn.\n"),
            Document("a2", "Tea is in the tin.\n"),
        ),
        "ben": (Document("b1", "The barometer fell all day.\n"),),
    },
    (
        Question("where does the red kayak lean?", "place", "ann", frozenset({"a1"})),
        Question("what did the barometer do?", "event", "ben", frozenset({"b1"})),
    ),
)


class Recorder:
    """A system that finds all notes, and records what it was given."""

    name = "recorder"

    def __init__(self) -> None:
        self.opened: list[list[str]] = []

    @contextmanager
    def open(self, documents: Sequence[Document], folder: Path) -> Iterator[Mapping[str, Search]]:
        names = tuple(document.name for document in documents)
        self.opened.append(list(names))
        assert not folder.exists()
        yield {"all": lambda _question, limit: Answer(names[:limit], False)}


@pytest.mark.parametrize(
    ("is_whole", "opened", "sizes"),
    [(False, [["a1", "a2"], ["b1"]], {1, 2}), (True, [["a1", "a2", "b1"]], {3})],
    ids=["haystacks", "whole"],
)
def test_questions_are_asked_of_their_haystack_or_of_the_corpus(
    is_whole: bool, opened: list[list[str]], sizes: set[int]
) -> None:
    system = Recorder()
    progress: list[int] = []
    report = run(
        BENCHMARK,
        [system],
        is_whole=is_whole,
        ks=(1, 3),
        progress=lambda _stage, done, _total: progress.append(done),
    )
    assert system.opened == opened
    assert progress == [1, 2]
    assert {row.figures.corpus_size for row in report.rows[:2]} == sizes
    assert [row.figures.kind for row in report.rows] == ["event", "place", "all"]


def test_simplemem_is_searched_by_words_by_meaning_and_by_both() -> None:
    systems = simplemem_systems(["wordllama"], ["words", "meaning", "both"])
    report = run(BENCHMARK, systems, is_whole=True, ks=(1,), progress=lambda *_: None)
    hits = {row.way: row.figures.hits[1] for row in report.rows if row.figures.kind == "all"}
    assert hits == {"words": 1, "meaning": 1, "both": 1}


def test_words_are_searched_with_the_first_embedder_only() -> None:
    first, second = simplemem_systems(["wordllama", "none"], ["words", "both"])
    assert list(first.modes) == ["words", "both"]
    assert list(second.modes) == ["both"]


def test_a_server_is_asked_through_its_own_tools() -> None:
    report = run(BENCHMARK, [SimplememServer()], is_whole=True, ks=(1,), progress=lambda *_: None)
    assert report.rows[-1].figures.hits == {1: 1}


def test_the_command_prints_a_table_and_the_same_figures_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = [{"facts": {"en": "The kayak is red."}, "questions": {"en": "colour of the kayak"}}]
    file = tmp_path / "facts.json"
    file.write_text(json.dumps(facts), encoding="utf-8")
    arguments = ["languages", "--data", str(file), "--mode", "words", "--k", "1"]

    main(arguments)
    table = capsys.readouterr().out
    assert "| simplemem, wordllama | words | en | 1 | 1 | 1.000 | 1.000" in table

    main([*arguments, "--json"])
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert (row["n"], row["hit@1"], row["recall@1"], row["corpus"]) == (1, 1, 1, 1)


def test_an_unknown_server_is_refused_and_a_missing_one_left_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit, match="no server is called 'elsewhere'"):
        main(["languages", "--server", "elsewhere"])
    main(
        [
            "languages",
            "--questions",
            "1",
            "--only-servers",
            "--server",
            "basic-memory=no-such-program",
        ]
    )
    assert "no-such-program is not installed, left out" in capsys.readouterr().err


def test_content_words_are_those_that_are_no_stop_words() -> None:
    assert content_words("Where is the red kayak, the RED one?") == ["red", "kayak", "one"]
    assert content_words("Who is it?") == ["who", "is", "it"]
