"""Sessions of coding agents come into the archive, masked. The files in tests/data were written by the programs themselves
(Claude Code 2.1.197, Codex 0.169.0, Gemini CLI 0.61.0) against a server that answered the same to all."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from simplemem import open_store
from simplemem.cli.app import app
from simplemem.importers.plan import Plan, apply_plan, make_plan
from simplemem.importers.sessions import AGENTS, read
from simplemem.note.dates import parse_moment
from simplemem.store import EnhancedStore

DATA = Path(__file__).parents[1] / "data" / "sessions"
PLACES = {
    "claude-code": ".claude/projects/-home-ida-parser/09976976.jsonl",
    "codex": ".codex/sessions/2026/11/23/rollout-2026-11-23T19-18-20-01a209d8.jsonl",
    "gemini-cli": ".gemini/tmp/parser/chats/session-2026-11-23T19-18-df5d96e4.jsonl",
}


@pytest.fixture
def home() -> Path:
    for agent, place in PLACES.items():
        file = Path.home() / place
        file.parent.mkdir(parents=True)
        shutil.copy(DATA / f"{agent}.jsonl", file)
    (Path.home() / ".gemini/tmp/parser/.project_root").write_text("/home/ida/parser")
    return Path.home()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EnhancedStore]:
    with open_store(tmp_path / "vault") as opened:
        yield opened


def planned(store: EnhancedStore, *agents: str, **how: Any) -> Plan:
    return make_plan(
        store, "sessions", "sessions", "archive/sessions", read(agents or AGENTS, **how)
    )


def notes(store: EnhancedStore) -> dict[str, str]:
    every = [each.path for each in planned(store).drafts] or list(store.extension.files())
    return {
        str(store.read(path[:-3]).frontmatter["agent"]): store.read(path[:-3]).content
        for path in every
    }


def add(file: Path, *rows: Any) -> None:
    with file.open("a") as end:
        end.writelines(json.dumps(each) + "\n" for each in rows)


def test_each_session_is_a_note_of_what_was_said_with_a_line_a_tool(
    store: EnhancedStore, home: Path
) -> None:
    apply_plan(store, planned(store))
    found = notes(store)
    assert set(found) == set(AGENTS)
    calls = {
        "claude-code": "- Bash: ls -la",
        "codex": "- exec_command: ls -la",
        "gemini-cli": "- list_directory: /home/ida",
    }
    for agent, text in found.items():
        assert "> Why does the parser fail?" in text
        assert "I look at the folder first." in text
        assert "has no encoding" in text
        assert f"> {calls[agent]}" in text
        assert all(
            each not in text
            for each in ("drwx", "a.py", "environment_context", "session_context", "skill")
        )
    assert "And on Windows?" in found["claude-code"]


def test_a_note_says_where_it_comes_from_and_secrets_are_masked(
    store: EnhancedStore, home: Path
) -> None:
    apply_plan(store, planned(store, "claude-code"))
    (path,) = store.extension.files()
    header = store.read(path[:-3]).frontmatter
    assert path.startswith("archive/sessions/2026/11/2026-11-23 Why does the parser fail")
    assert (header["type"], header["project"], header["private"]) == (
        "session",
        "/home/ida/parser",
        True,
    )
    assert str(header["source"]).startswith("claude-code:")
    text = (store.root / path).read_text()
    assert "hunter2" not in text
    assert "password: [redacted]" in text
    assert (store.search("parser").hits, len(store.search("archive: parser").hits)) == ((), 1)


def test_a_session_that_went_on_is_written_again_unless_its_note_was_edited(
    store: EnhancedStore, home: Path
) -> None:
    apply_plan(store, planned(store))
    assert planned(store).drafts == ()
    said = {
        "role": "user",
        "content": "And <private>for Bo</private> on macOS?<system-reminder>Be quick</system-reminder>",
    }
    row = {
        "type": "user",
        "message": said,
        "uuid": "u9",
        "timestamp": "2026-11-23T19:30:00Z",
        "cwd": "/home/ida/parser",
    }
    add(home / PLACES["claude-code"], row | {"isMeta": True, "message": {"content": "meta"}}, row)
    content = [{"type": "input_text", "text": "And for codex?"}]
    item = {"type": "message", "role": "user", "content": content}
    add(
        home / PLACES["codex"],
        {"timestamp": "2026-11-23T19:31:00Z", "type": "response_item", "payload": item},
    )
    (codex,) = [
        path
        for path in store.extension.files()
        if "codex" in store.read(path[:-3]).frontmatter["source"]
    ]
    store.update(codex[:-3], append="My own remark.")
    what = planned(store)
    assert (what.new, what.changed, len(what.skipped)) == (0, 1, 1)
    apply_plan(store, what)
    found = notes(store)
    assert "And  on macOS?" in found["claude-code"]
    assert "meta" not in found["claude-code"]
    assert ("And for codex?" in found["codex"], "My own remark." in found["codex"]) == (False, True)


def test_since_and_project_choose(store: EnhancedStore, home: Path) -> None:
    for how in ({"since": parse_moment("2100-01-01")}, {"project": Path("/home/ida/other")}):
        with pytest.raises(Exception, match="nothing to import"):
            planned(store, **how)
    assert planned(store, project=Path("/home/ida"), since=parse_moment("2020-01-01")).new == 3


def test_older_forms_are_read_too(store: EnhancedStore) -> None:
    old = Path.home() / ".codex/sessions/2025/06/01/rollout-old.jsonl"
    chats = Path.home() / ".gemini/tmp/f00/chats"
    for folder in (old.parent, chats):
        folder.mkdir(parents=True)
    rules = "# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>\nrules\n</INSTRUCTIONS>"
    asked = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": each}]}
        for each in (rules, "Hi?")
    ]
    shell = {
        "type": "local_shell_call",
        "action": {"type": "exec", "command": ["bash", "-lc", "ls"]},
    }
    patch = {
        "type": "custom_tool_call",
        "name": "apply_patch",
        "input": "*** Begin Patch\n*** Add File: b.py",
    }
    add(
        old,
        {"id": "old", "timestamp": "2025-06-01T10:00:00Z", "instructions": None},
        *asked,
        shell,
        patch,
    )
    user = {
        "id": "1",
        "timestamp": "2025-10-01T10:00:00Z",
        "type": "user",
        "content": "Which files?",
    }
    answer = {
        "id": "2",
        "timestamp": "2025-10-01T10:00:09Z",
        "type": "gemini",
        "content": "One.",
        "toolCalls": [],
    }
    document = {
        "sessionId": "g",
        "projectHash": "f00",
        "messages": [user, answer],
        "summary": "Files of the house",
    }
    (chats / "session-2025-10-01T10-00-g.json").write_text(json.dumps(document, indent=1))
    gone = {"id": "3", "timestamp": "2025-10-01T10:01:00Z", "type": "user", "content": "Forget me"}
    add(
        chats / "session-2025-10-01T10-00-h.jsonl",
        {"sessionId": "h", "kind": "main"},
        user,
        answer,
        gone,
        {"$rewindTo": "3"},
    )
    add(chats / "session-2025-10-01T10-00-s.jsonl", {"sessionId": "s", "kind": "subagent"}, user)
    what = planned(store)
    assert (what.new, [each.reason for each in what.skipped]) == (
        3,
        ["it contains no message from the user"],
    )
    text = "\n".join(str(each.text) for each in what.drafts)
    assert "title: Files of the house" in text
    assert "- shell: bash -lc ls\n>\n> - apply_patch: *** Begin Patch *** Add File: b.py" in text
    assert "rules" not in text
    assert "Forget me" not in text


def test_a_file_that_is_no_session_is_named_and_the_rest_comes(
    store: EnhancedStore, home: Path
) -> None:
    file = home / PLACES["claude-code"]
    file.with_name("agent-1.jsonl").write_text("a subagent's, not read")
    file.with_name("odd.jsonl").write_text('{"type": "user", "message": {"content": [3]}}\n{"cut')
    add(file.with_name("bad.jsonl"), {"type": "user", "message": {"content": 7}})
    what = planned(store, "claude-code")
    assert (what.new, sorted(Path(each.origin).name for each in what.skipped)) == (
        1,
        ["bad.jsonl", "odd.jsonl"],
    )


def test_the_command_shows_first_and_writes_nothing_in_a_dry_run(
    tmp_path: Path, home: Path
) -> None:
    (tmp_path / "vault" / ".simplemem").mkdir(parents=True)
    vault = ["--vault", str(tmp_path / "vault"), "--json"]
    shown = CliRunner().invoke(app, ["import", "sessions", "--dry-run", *vault])
    assert (json.loads(shown.stdout)["new"], list(tmp_path.rglob("*.md"))) == (3, [])
    assert (
        CliRunner()
        .invoke(app, ["import", "sessions", "--agent", "codex", "--yes", *vault])
        .exit_code
        == 0
    )
    assert len(list((tmp_path / "vault/archive/sessions/2026/11").glob("*.md"))) == 1
    for wrong in (["--agent", "cursor"], ["--since", "soon"]):
        refused = CliRunner().invoke(app, ["import", "sessions", *wrong, *vault])
        assert (refused.exit_code, "hint" in refused.stdout + refused.stderr) == (1, True)
