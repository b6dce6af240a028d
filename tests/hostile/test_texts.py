"""Whatever bytes a note holds, it is read, and in time that grows with its length."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from effort import LONG, chance, rounds
from linear import HOSTILE, grows_too_fast

from simplemem.errors import SimplememError
from simplemem.index.api import Stat
from simplemem.index.text import parse_note
from simplemem.note.header import read_header
from simplemem.note.names import check_name, clean_reference, legal_name
from simplemem.note.note import read_note
from simplemem.note.passages import cut_passages
from simplemem.note.properties import set_property
from simplemem.note.sentences import sentences
from simplemem.note.tag_changes import change_tags
from simplemem.note.tag_requests import parse_tag_request
from simplemem.search.query import read_query
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore
from simplemem.tools.core import TOOLS
from simplemem.tools.render import line, warnings_of
from simplemem.tools.tool import DEFAULT_ADAPTER

PLAIN = Settings.model_validate({"embed": {"provider": "none"}})
SEARCH = next(tool for tool in TOOLS if tool.name == "search_memories")
READ = next(tool for tool in TOOLS if tool.name == "read_memory")


def whole(text: str) -> None:
    """All that indexing does with a note, but for the tables."""
    note = read_note(text.encode("utf-8", "replace"))
    cut_passages(note.text, note.body)
    parse_note("a.md", note, Stat(0, 0, 0))


WORK: dict[str, Callable[[str], object]] = {
    "a body": whole,
    "a header": lambda text: read_header(f"---\na: b\n{text}\n---\nx"),
    "a property": lambda text: read_header(f"---\na: {text}\n---\nx"),
    "one line of a list": lambda text: whole(f"- {text}\n"),
    "a cell of a table": lambda text: whole(f"| a | b |\n|---|---|\n| {text} | c |\n"),
    "a question": read_query,
    "a name": check_name,
    "a title": legal_name,
    "a reference": clean_reference,
    "a request for tags": parse_tag_request,
    "a tag in a header": lambda text: change_tags("---\ntags: [a]\n---\nx", {text: True}),
    "a value in a header": lambda text: set_property("---\na: b\n---\nx", "a", text),
    "a sentence": sentences,
    "a line of an answer": line,
    "a warning": warnings_of,
    "the query of a call": lambda text: DEFAULT_ADAPTER.read(SEARCH, {"query": text, "tags": text}),
    "the name of a call": lambda text: DEFAULT_ADAPTER.read(READ, {"name": text, "section": text}),
}


@pytest.mark.parametrize("what", WORK)
def test_twice_the_text_is_at_most_thrice_the_work(what: str) -> None:
    def work(text: str) -> None:
        with contextlib.suppress(SimplememError):
            WORK[what](text)

    pieces = HOSTILE if LONG else HOSTILE[:: 2 if what == "a body" else 5]
    slow = [
        told
        for piece in pieces
        if (told := grows_too_fast(work, piece, 100_000 if LONG else 16_000))
    ]
    assert not slow, "\n".join(slow)


PIECES = [
    piece.encode()
    for piece in (
        *HOSTILE,
        "---\n",
        "---\na: ",
        "tags: [",
        "\ufeff",
        "```\n",
        "    ",
        "<div>\n",
        "[[x]]",
        "#t ",
    )
]
PIECES += [b"\xff", b"\0", b"\xed\xa0\x80", b"\xfe\xff\0a", b"\r", b"\xe2\x80\xa8", b"\xc3"]


def test_any_bytes_are_a_note() -> None:
    """Random pieces in random order, and ordinary notes with a few bytes changed."""
    luck = chance("any bytes")
    ordinary = b"---\ntitle: A\ntags:\n  - a\n  - b/c\naliases: [x, y]\n---\n"
    ordinary += b"# H\n\nSee [[b|c]] and [d](e.md). #tag\n\n- [ ] do ^id\n"
    for number in range(rounds(1500, 200_000)):
        if number % 2:
            data = b"".join(
                luck.choice(PIECES) * luck.randint(1, 3) for _ in range(luck.randint(1, 40))
            )
        else:
            changed = bytearray(ordinary)
            for _ in range(luck.randint(1, 5)):
                at = luck.randrange(len(changed))
                changed[at : at + luck.randrange(3)] = luck.choice(PIECES)
            data = bytes(changed)
        note = read_note(data)
        assert note.problem is not None or note.text.encode() == data, data
        for link in note.body.links:
            assert 0 <= link.start < link.end <= len(note.text), data
        cut_passages(note.text, note.body)
        parse_note("a.md", note, Stat(0, 0, 0))


def test_a_question_of_any_text_is_no_error(tmp_path: Path) -> None:
    """What a person types never reaches the index as its syntax."""
    luck = chance("questions")
    words = "plum pear \" ' * ^ - + : ( ) AND OR NOT NEAR( tag: type: path: title: { } \\ ; -- 日本 é multi-agent".split()
    words += [
        *"38.101 C++ foo/bar % _ , # @ [[ ]]".split(),
        "\0",
        "\ud800",
        "\n",
        "\u2028",
        "a" * 300,
    ]
    with EnhancedStore(tmp_path, PLAIN) as store:
        store.create("a", "The plum and the pear: multi-agent 38.101 C++ foo/bar.")
        for _ in range(rounds(150, 60_000)):
            question = luck.choice(["", " "]).join(
                luck.choice(words) for _ in range(luck.randint(1, 12))
            )
            try:
                store.search(question)
            except SimplememError as error:
                assert error.code == "invalid", (question, error)
        for asked in ("multi-agent", "38.101", "C++", "foo/bar"):
            assert [hit.name for hit in store.search(asked).hits] == ["a"], asked


def confined(script: str, root: Path, memory: int) -> str:
    """What a process with so many megabytes and a minute of processor said at its end: a parser that crashes would take
    the tests with it."""
    begin = f"""
        import resource, sys
        from pathlib import Path
        resource.setrlimit(resource.RLIMIT_AS, ({memory} << 20, {memory} << 20))
        resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
        from simplemem.settings.model import Settings
        from simplemem.errors import TooLong, Unreadable
        from simplemem.store import EnhancedStore
        root = Path(sys.argv[1])
        settings = Settings.model_validate({{"embed": {{"provider": "none"}}, "write": {{"durability": "fast"}}}})
        def refuses(error, work):
            try:
                work()
            except error:
                return
            raise SystemExit("it was not refused")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(begin) + textwrap.dedent(script), str(root)],
        capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


POSIX = pytest.mark.skipif(sys.platform == "win32", reason="limits of a process are of POSIX")


@POSIX
def test_a_header_made_to_do_harm_is_served_and_searched_and_not_rewritten(tmp_path: Path) -> None:
    script = """
        merged = "".join(f"k{k}: &k{k} {{<<: [{','.join([f'*k{k-1}' if k else '*b'] * 9)}]}}\\n" for k in range(9))
        laughs = "".join(f"b{k}: &b{k} [{','.join([f'*b{k-1}' if k else '*a'] * 9)}]\\n" for k in range(12))
        headers = [
            "a: " + "[" * 30_000, "a: " + "{a: " * 30_000, "- " * 30_000 + "a",
            "\\n".join(" " * k + "a:" for k in range(2_000)),
            "a: &a {x: 1}\\nb: &b {<<: [*a,*a,*a,*a,*a,*a,*a,*a,*a]}\\n" + merged, "a: &a [x,x,x,x,x,x,x,x,x]\\n" + laughs,
            "a: &a [*a]", "date: 2024-02-30", "n: " + "9" * 5_000, "n: 0x" + "f" * 100_000, "n: 1e999999999",
            "n: " + "1:" * 20_000 + "1", "a: !!python/object/apply:os.system [exit 3]", "a: !!binary " + "A" * 100_000,
            "a: 1\\na: 2", "\\ta: 1", "a: @x", "- a\\n- b", "just text", "\\n".join(f"k{k}: {k}" for k in range(50_000)),
            "? [a, b]\\n: c", "a: 1\\n...\\n--- \\nb: 2", "%YAML 9.9\\n--- a", "a: " + "x" * 2_000_000,
        ]
        notes = {f"n{k}": f"---\\n{header}\\n---\\nThe plum of number{k}.\\n".encode() for k, header in enumerate(headers)}
        for name, text in notes.items():
            (root / f"{name}.md").write_bytes(text)
        with EnhancedStore(root, settings) as store:
            store.sync()
            refused = 0
            for k, (name, text) in enumerate(notes.items()):
                assert f"plum of number{k}" in store.read(name).text, name
                assert [hit.name for hit in store.search(f'"plum of number{k}"').hits] == [name], name
                if store.read(name).problem:
                    refused += 1
                    refuses(Unreadable, lambda: store.change_tags(name, {"todo": True}))
                    assert (root / f"{name}.md").read_bytes() == text, name
            print(len(notes), refused)
    """
    count, refused = map(int, confined(script, tmp_path, memory=1500).split())
    assert count == 24 and refused >= 12


@POSIX
def test_a_gigabyte_is_listed_as_too_large_and_not_read(tmp_path: Path) -> None:
    """A sparse file is a gigabyte to whoever reads it."""
    script = """
        with (root / "huge.md").open("wb") as file:
            file.truncate(1 << 30)
        (root / "small.md").write_text("A plum, see [[huge]].")
        with EnhancedStore(root, settings) as store:
            assert [path for path, _ in store.sync().skipped] == ["huge.md"]
            assert [hit.name for hit in store.search("plum").hits] == ["small"]
            refuses(TooLong, lambda: store.read("huge"))
            refuses(TooLong, lambda: store.update("huge", append="x"))
            refuses(TooLong, lambda: store.change_tags("huge", {"a": True}))
            store.doctor()
            print((root / "huge.md").stat().st_size)
    """
    assert confined(script, tmp_path, memory=800).split() == [str(1 << 30)]


SPOON = "Ein Löffel"
OTHER_TEXTS = {
    "utf-16": SPOON.encode("utf-16"),
    "utf-16-be": SPOON.encode("utf-16-be"),
    "utf-32": SPOON.encode("utf-32"),
    "latin-1": SPOON.encode("latin-1"),
    "binary": b"\x89PNG\r\n\0\0spoon" * 50,
    "nul": b"spoon\0",
}


@pytest.mark.parametrize("data", OTHER_TEXTS.values(), ids=OTHER_TEXTS.keys())
def test_what_is_not_utf_8_is_served_and_every_edit_refused(tmp_path: Path, data: bytes) -> None:
    """No encoding is guessed, and no byte is changed."""
    (tmp_path / "n.md").write_bytes(data)
    with EnhancedStore(tmp_path, PLAIN) as store:
        store.sync()
        assert store.read("n").problem
        for change in (
            lambda: store.update("n", append="x"),
            lambda: store.update("n", metadata={"title": "x"}),
            lambda: store.change_tags("n", {"todo": True}),
        ):
            with pytest.raises(SimplememError) as refused:
                change()
            assert refused.value.code == "unreadable"
        store.move("n", "moved")
        assert (tmp_path / "moved.md").read_bytes() == data


@pytest.mark.parametrize("piece", ["- ", "> ", "1. ", ">- ", "  ", "* - + "])
def test_three_hundred_levels_are_read_or_capped(piece: str) -> None:
    for text in (
        piece * 300 + "deep [[x]]\n",
        "".join(f"{piece * k}a\n" for k in range(300)) + "[[x]]\n",
    ):
        note = read_note(text.encode())
        assert [link.target for link in note.body.links] in (["x"], []), piece
        assert note.text == text
