"""Claude's memory tool, case by case beside the implementation that its SDK ships, and what ours adds to it."""

from __future__ import annotations

import importlib.util
import json
import random
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from simplemem import open_store
from simplemem.errors import SimplememError
from simplemem.features.files import run
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

# It is imported in the tests: to import it takes longer than to run them, and every process of a run reads this module.
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("anthropic") is None, reason="needs the extra `anthropic`"
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EnhancedStore]:
    with open_store(tmp_path / "vault") as store:
        yield store


def run_command(store: EnhancedStore, **call: Any) -> str:
    try:
        return run(store, call)
    except SimplememError as error:
        return f"failed: {error.message}"


def run_reference(tool: Any, **call: Any) -> str:
    from anthropic.tools import ToolError

    try:
        return str(tool.call(call))
    except ToolError as error:
        return f"failed: {error}"


def unsized(answer: str) -> str:
    """Without the sizes of directories, which each file system has its own of."""
    answer = re.sub(r"(hidden items:\n)[\d.]+[BKMG]\t", r"\1", answer)
    return re.sub(r"^[\d.]+[BKMG]\t(.*/)$", r"\1", answer, flags=re.MULTILINE)


PATHS = ["/memories", "/elsewhere/a.md"]
PATHS += [
    f"/memories{name}"
    for name in "/ /a.md /b.txt /d /d/c.md /d/e /d/e/f.xml /x/../a.md /../a.md /none.md".split()
]
FILES = [
    path for path in PATHS if "." in path.rpartition("/")[2]
]  # a name without an ending is shown with .md
TEXTS = [
    "",
    "one\n",
    "one\ntwo\nthree",
    "one\ntwo\none\n",
    "x\r\ny\r\n",
    "---\nkey: v\n---\n\nbody\n",
]
STRINGS = ["one", "two", "one\n", "o", "none", "\n"]


def a_call(dice: random.Random) -> dict[str, Any]:
    """Any command, on one of a few files."""
    path, text = dice.choice(PATHS), dice.choice(TEXTS)
    views: list[dict[str, Any]] = [
        {"view_range": view_range} for view_range in ([1, 2], [2, -1], [0, 1], [3, 9])
    ]
    return dice.choice(
        [
            {"command": "view", "path": path},
            {"command": "view", "path": path, **dice.choice(views)},
            {"command": "create", "path": dice.choice(FILES), "file_text": text},
            {"command": "create", "path": dice.choice(FILES), "file_text": text},
            {
                "command": "str_replace",
                "path": path,
                "old_str": dice.choice(STRINGS),
                "new_str": text,
            },
            {
                "command": "insert",
                "path": path,
                "insert_line": dice.randint(-1, 4),
                "insert_text": text,
            },
            {"command": "delete", "path": path},
            {"command": "rename", "old_path": dice.choice(FILES), "new_path": dice.choice(FILES)},
            {
                "command": "rename",
                "old_path": "/memories/d",
                "new_path": dice.choice(["/memories/f", "/memories/d/e"]),
            },
        ]
    )


@pytest.mark.parametrize("seed", range(40))
def test_any_calls_are_answered_as_by_the_implementation_of_the_sdk(
    seed: int, store: EnhancedStore, tmp_path: Path
) -> None:
    from anthropic.tools import BetaLocalFilesystemMemoryTool

    dice, reference = random.Random(seed), BetaLocalFilesystemMemoryTool(str(tmp_path))
    for _ in range(15):
        call = a_call(dice)
        try:
            expected = run_reference(reference, **call)
        except OSError:  # it lets the system's own errors through, as of a file in a folder's place
            assert run_command(store, **call).startswith("failed: ")
            return
        assert unsized(run_command(store, **call)) == unsized(expected), call
        for folder in sorted((tmp_path / "memories").rglob("*/"), reverse=True):
            if folder.is_dir() and not any(
                folder.iterdir()
            ):  # an empty folder is nothing in a vault
                folder.rmdir()


def test_a_file_is_a_note_that_people_find_and_its_name_comes_back(store: EnhancedStore) -> None:
    run_command(
        store, command="create", path="/memories/progress.txt", file_text="Phase two has begun.\n"
    )
    run_command(
        store, command="create", path="/memories/plans/q3.md", file_text="Ship the balloon.\n"
    )
    found = store.search("which phase", mode="text")
    assert {hit.name for hit in found.hits} == {"memories/progress.txt"}
    lines = run_command(store, command="view", path="/memories").split("\n")[1:]
    assert [line.split("\t")[1] for line in lines] == [
        "/memories",
        "/memories/plans/",
        "/memories/plans/q3.md",
        "/memories/progress.txt",
    ]
    assert (store.root / "memories/progress.txt.md").read_bytes() == b"Phase two has begun.\n"


def test_every_change_can_be_undone_and_a_folder_goes_and_moves_as_one(
    store: EnhancedStore,
) -> None:
    for name in ("d/a.md", "d/b.txt", "d/e/c.md"):
        run_command(store, command="create", path=f"/memories/{name}", file_text=f"{name}\n")
    original_files = {path: path.read_bytes() for path in (store.root / "memories").rglob("*.md")}
    run_command(store, command="rename", old_path="/memories/d", new_path="/memories/archive/d")
    assert run_command(store, command="view", path="/memories/archive/d/b.txt").endswith(
        "     1\td/b.txt\n     2\t"
    )
    store.undo(store.next_to_undo())
    run_command(store, command="delete", path="/memories/d")
    assert not list((store.root / "memories").rglob("*.md"))
    store.undo(store.next_to_undo())
    assert {
        path: path.read_bytes() for path in (store.root / "memories").rglob("*.md")
    } == original_files


def test_links_follow_a_folder_that_is_renamed_and_its_other_files_and_texts_come_along(
    store: EnhancedStore,
) -> None:
    folder = store.root / "memories/d"
    for name in ("a.md", "b.md"):
        run_command(
            store,
            command="create",
            path=f"/memories/d/{name}",
            file_text="See [[memories/d/a]] and [b](./b.md).\n",
        )
    store.create("diary", "About [[memories/d/b]] and ![](memories/d/photo.png).")
    (folder / "photo.png").write_bytes(b"\x89PNG \xff")
    (folder / "latin.md").write_bytes(b"Caf\xe9.\n")
    answer = run_command(store, command="rename", old_path="/memories/d", new_path="/memories/e")
    assert answer == "Successfully renamed /memories/d to /memories/e"
    assert not list(folder.iterdir())
    assert (store.root / "memories/e/photo.png").read_bytes() == b"\x89PNG \xff"
    assert (store.root / "memories/e/latin.md").read_bytes() == b"Caf\xe9.\n"
    assert (store.root / "memories/e/b.md").read_text() == "See [[memories/e/a]] and [b](./b.md).\n"
    assert (
        "About [[memories/e/b]] and ![](memories/e/photo.png)."
        in (store.root / "diary.md").read_text()
    )
    assert [
        finding
        for finding in store.doctor()
        if finding.level == "error" and "latin" not in str(finding)
    ] == []
    assert {link.name for link in store.backlinks("memories/e/a", kinds=["link"])} == {
        "memories/e/b"
    }


@pytest.mark.parametrize("is_hidden", [True, False], ids=["hidden", "seen"])
@pytest.mark.parametrize("name", ["a", "e/c"])
def test_a_folder_is_not_renamed_if_a_hidden_link_to_any_note_of_it_would_break(
    tmp_path: Path, name: str, is_hidden: bool
) -> None:
    vault = tmp_path / "vault"
    for path, text in {
        "memories/d/a.md": "One.\n",
        "memories/d/e/c.md": "Two.\n",
        "Private/quetzal.md": f"See [[memories/d/{name}]].\n",
    }.items():
        (vault / path).parent.mkdir(parents=True, exist_ok=True)
        (vault / path).write_text(text)
    access = {"hidden": ["Private/"]} if is_hidden else {}
    settings = Settings.model_validate({"embed": {"provider": "none"}, "access": access})
    with open_store(vault, settings=settings) as store:
        store.sync()
        answer = run_command(
            store, command="rename", old_path="/memories/d", new_path="/memories/x"
        )
    assert answer.startswith("failed: ") == is_hidden
    assert "quetzal" not in answer
    assert (vault / "memories/d/a.md").exists() == is_hidden
    assert (vault / "memories/x/e/c.md").exists() != is_hidden
    led = f"See [[memories/{'d' if is_hidden else 'x'}/{name}]].\n"
    assert (vault / "Private/quetzal.md").read_text() == led


@pytest.mark.parametrize(
    "path",
    [
        "/memories/\0.md",
        "/memories/" + "x" * 300 + ".md",
        "/memories/a\ud800.md",
        "/memories/CON.md",
        "/memories/.hidden",
    ],
)
def test_names_that_no_file_can_have_are_a_failure_in_words(
    store: EnhancedStore, path: str
) -> None:
    for call in (
        {"command": "create", "file_text": "x"},
        {"command": "view"},
        {"command": "delete"},
    ):
        assert run_command(store, path=path, **call).startswith("failed: ")
    assert not list(store.root.glob("memories/*"))


def test_two_who_edit_the_same_file_lose_nothing(store: EnhancedStore) -> None:
    run_command(store, command="create", path="/memories/log.md", file_text="")

    def write(who: int) -> None:
        with open_store(store.root) as own:
            for k in range(20):
                assert "edited" in run_command(
                    own,
                    command="insert",
                    path="/memories/log.md",
                    insert_line=0,
                    insert_text=f"{who} {k}",
                )

    both = [threading.Thread(target=write, args=(who,)) for who in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    lines = (store.root / "memories/log.md").read_text().split("\n")
    assert sorted(lines) == sorted(["", *(f"{who} {k}" for who in range(2) for k in range(20))])


class _Model(BaseHTTPRequestHandler):
    """The Messages API, with a model that looks, writes and is done."""

    requests: ClassVar[list[Any]] = []

    def do_POST(self) -> None:
        sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.requests.append(sent)
        calls = [{"command": "view", "path": "/memories"}]
        calls += [
            {"command": "create", "path": "/memories/coffee.md", "file_text": "Likes coffee.\n"}
        ]
        turn = len(self.requests) - 1
        block: dict[str, Any] = {"type": "text", "text": "Noted."}
        if turn < len(calls):
            block = {
                "type": "tool_use",
                "id": f"toolu_{turn}",
                "name": "memory",
                "input": calls[turn],
            }
        reason = "tool_use" if turn < len(calls) else "end_turn"
        body = json.dumps(
            {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": sent["model"],
                "content": [block],
            }
            | {
                "stop_reason": reason,
                "stop_sequence": None,
                "usage": {"input_tokens": 1, "output_tokens": 1},
            }
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None: ...


def test_the_class_serves_the_runner_of_the_sdk(tmp_path: Path) -> None:
    import anthropic

    from simplemem.anthropic import MemoryTool

    server = HTTPServer(("127.0.0.1", 0), _Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    client = anthropic.Anthropic(api_key="none", base_url=f"http://127.0.0.1:{server.server_port}")
    with MemoryTool(tmp_path / "vault") as tool, client:
        message = client.beta.messages.tool_runner(
            model="claude",
            max_tokens=100,
            messages=[{"role": "user", "content": "I like coffee"}],
            tools=[tool],
        ).until_done()
        assert message.content[0].text == "Noted."
        assert tool.store.read("memories/coffee").text == "Likes coffee.\n"
        assert (
            tool.clear_all_memory() == "All memory cleared"
            and tool.call({"command": "view", "path": "/memories"}).count("\n") == 1
        )
    server.shutdown()
    server.server_close()
    assert _Model.requests[0]["tools"] == [{"type": "memory_20250818", "name": "memory"}]
    results = [block for sent in _Model.requests[1:] for block in sent["messages"][-1]["content"]]
    assert "excluding hidden items" in str(results[0]) and "created successfully" in str(results[1])
