"""The beginning: which vault, which tools, which settings; and answers while the vault is still being read."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from bare_client import Bare
from waiting import write_many_notes

from simplemem.cli.serve_choice import choose_folder
from simplemem.cli.serve_options import ServeOptions
from simplemem.profiles.registry import built_in_profiles, choose_tools

META = {"title": "t", "description": "", "tags": {}}
EVERY_TOOL = {tool.name for face in built_in_profiles().values() for tool in choose_tools(face)}
ORIGINAL = [
    "create_memory",
    "read_memory",
    "update_memory",
    "delete_memory",
    "list_memories",
    "search_memories",
]


def serving(*options: str) -> list[str]:
    return [sys.executable, "-m", "simplemem", "serve", *options]


@pytest.fixture
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to start in. The tests' own Python path goes with it."""
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([os.getcwd(), os.environ.get("PYTHONPATH", "")])
    )
    folder = tmp_path / "here"
    folder.mkdir()
    return folder


def test_the_profile_of_the_original_works_as_that_did(working_folder: Path) -> None:
    """Beside its files: a vault called .memories, config.toml, variables."""
    (working_folder / "config.toml").write_text(
        "max_memory_length = 20\n[voyage_ai]\napi_key = 'k'\n"
    )
    long = "this is longer than twenty"
    with Bare(
        working_folder, command=serving("--profile", "simplemem"), cwd=working_folder, fresh=True
    ) as bare:
        assert "create memories as you learn" in bare.initialize()["instructions"]
        assert "voyage_ai.api_key is not used" in bare.log.decode()
        assert [tool["name"] for tool in bare.request("tools/list")["result"]["tools"]][
            :6
        ] == ORIGINAL
        created = bare.call("create_memory", name="a", metadata=META, content="short enough")
        assert (
            created["content"][0]["text"] == "Memory 'a' was created."
            and "structuredContent" not in created
        )
        refused = bare.call("create_memory", name="b", metadata=META, content=long)
        assert refused["isError"] is True and refused["content"][0]["text"].startswith("too_long: ")
    assert (working_folder / ".memories" / "a.md").is_file()
    env = {"SIMPLEMEM_MAX_MEMORY_LENGTH": "40", "SIMPLEMEM_PROFILE": "simplemem"}
    with Bare(
        working_folder, command=serving("--config", "config.toml"), cwd=working_folder, env=env
    ) as bare:
        bare.initialize()
        assert not bare.call("create_memory", name="b", metadata=META, content=long)["isError"]
        assert bare.call("create_memory", name="c", metadata=META, content="forty " * 9)["isError"]
        listed = bare.call("list_memories")["content"][0]["text"]
        assert "## a\n" in listed and "## b\n" in listed


def test_the_profile_of_what_is_learned_keeps_it_where_the_original_was_told_to(
    working_folder: Path,
) -> None:
    env = {"SIMPLEMEM_EMBED_PROVIDER": "none", "MEMORY_STORAGE_PATH": "learned/here"}
    with Bare(
        working_folder, env=env, command=serving("--profile", "self-improving"), cwd=working_folder
    ) as bare:
        assert bare.initialize()["instructions"].startswith("This is what you have learned")
        assert len(bare.request("tools/list")["result"]["tools"]) == 31
        bare.call("save_knowledge", type="error", content="It broke", confidence=0.9, tags=[])
        refused = bare.call("link_knowledge", sourceId="a", targetId="b")
        assert refused["isError"] and refused["content"][0]["text"].startswith(
            "Error: Knowledge entry not found: a"
        )
        assert refused["structuredContent"]["error"]["code"] == "not_found"
    assert (working_folder / "learned" / "here" / "knowledge" / "error" / "it-broke.md").exists()


@pytest.mark.parametrize("profile", ["default", "simplemem"])
def test_prompts_name_only_tools_that_the_profile_has(working_folder: Path, profile: str) -> None:
    with Bare(working_folder, command=serving("--profile", profile), cwd=working_folder) as bare:
        bare.initialize()
        tool_names = {tool["name"] for tool in bare.request("tools/list")["result"]["tools"]}
        for prompt in ("recall", "remember", "review"):
            arguments = {"topic": "balloons"} if prompt == "recall" else {}
            got = bare.request("prompts/get", {"name": prompt, "arguments": arguments})
            prompt_text = got["result"]["messages"][0]["content"]["text"]
            assert {
                word for word in re.findall(r"[a-z]+_[a-z_]+", prompt_text) if word in EVERY_TOOL
            } <= tool_names
            assert "search_memories" in prompt_text or prompt != "recall"


@pytest.mark.parametrize(
    ("env", "named", "where"),
    [
        ({}, None, ".claude-memory"),
        ({"MEMORY_STORAGE_PATH": "learned"}, None, "learned"),
        ({"MEMORY_STORAGE_PATH": "learned", "SIMPLEMEM_VAULT": "own"}, None, "own"),
        ({"MEMORY_STORAGE_PATH": "learned", "SIMPLEMEM_VAULT": "own"}, "named", "named"),
    ],
)
def test_which_vault_a_profile_with_a_place_of_its_own_serves(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    env: dict[str, str],
    named: str | None,
    where: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    options = ServeOptions(vaults=[named] if named else None)
    assert choose_folder(options, built_in_profiles()["self-improving"]) == tmp_path / where


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--profile", "nobody"], "simplemem"),
        (["--tools", "original"], "two tool groups have a tool"),
        (["--profile", "simplemem", "--config", "x.toml"], "x.toml"),
    ],
)
def test_a_wrong_choice_is_told_before_anything_begins(
    working_folder: Path, options: list[str], said: str
) -> None:
    ended = subprocess.run(
        serving(*options),
        cwd=working_folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 1 and said in ended.stderr
    assert ended.stdout == "" and os.listdir(working_folder) == []


def test_the_log_says_what_happened_and_never_what_a_note_says(
    vault: Path, write: Callable[..., Path]
) -> None:
    """At the loudest level, with failures of every sort. The note cannot be opened: its error would quote its name."""
    write("a.md", "---\ntitle: quokka\n---\nThe wombat is here. [[kangaroo]]")
    write("broken.md", "---\ntitle: [platypus\n---\nText.")
    with Bare(vault, "--log-level", "debug") as bare:
        bare.initialize()
        bare.request("tools/list")
        for _ in range(2):
            bare.call("search_memories", query="echidna")
            bare.call("create_memory", name="b", content="A numbat.", overwrite=True)
            bare.call("update_memory", name="b", content="dingo", if_sha256="0" * 64)
            bare.call("change_tag", name="broken", tags={"bilby": True})
            bare.call("read_memory", name="a")
            bare.send(
                b'{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":5,"arguments":"potoroo"}}\n'
            )
            bare.request("resources/read", {"uri": "memory://bandicoot"})
        bare.end_input()
        bare.process.wait(10)
    log_text = bare.log.decode()
    for word in (
        "quokka", "wombat", "kangaroo", "platypus", "echidna", "numbat", "dingo", "bilby", "potoroo", "bandicoot"
    ):  # fmt: skip
        assert word not in log_text


def test_a_failure_inside_is_told_in_the_log_without_its_message(vault: Path) -> None:
    """A tool of ours that fails in a way nobody thought of, in a server that is otherwise the real one."""
    tool = (
        "import threading\n"
        "def helper():\n"
        "    raise RuntimeError('the diary says')\n"
        "def fails() -> Reply[None]:\n"
        "    thread = threading.Thread(target=helper, name='helper')\n"
        "    thread.start()\n"
        "    thread.join()\n"
        "    helper()\n"
    )
    with Bare.with_tool(vault, tool) as bare:
        bare.initialize()
        answer = bare.call("fails")
        assert answer["structuredContent"]["error"]["code"] == "unavailable"
        assert "RuntimeError" in answer["content"][0]["text"]
        bare.end_input()
        bare.process.wait(10)
    log_text = bare.log.decode()
    assert "the tool fails failed [RuntimeError at " in log_text
    assert (
        "the thread helper failed [RuntimeError at " in log_text
        and "diary" not in log_text + json.dumps(answer)
    )


SEEN = [
    "zebra",
    "violin",
    "glacier",
    "harbour",
    "saffron",
    "telescope",
    "marathon",
    "pottery",
    "volcano",
    "orchid",
]


def write_small_vault(vault: Path) -> None:
    """Write two notes of each thing: one for tools that find notes, one for tools that find entities."""
    for name in SEEN:
        (vault / f"note of {name}.md").write_text(
            f"# About a {name}\n\nThe {name} was seen in Bergen.\n"
        )
        header = f"---\ntitle: Entity {name}\ntype: entity\nentity_type: thing\n---\n"
        (vault / f"Entity {name}.md").write_text(
            f"{header}\n## Observations\n- Was bought as a {name} in Oslo\n"
        )


@pytest.mark.parametrize(
    ("profile", "tool", "found"),
    [
        ("default", "search_memories", "note of {}"),
        ("default", "build_context", "The {} was seen"),
        ("simplemem", "search_memories", "note of {}"),
        ("server-memory", "search_nodes", "Entity {}"),
        ("memento", "semantic_search", "Entity {}"),
        ("supermemento", "superrag_search", "Entity {}"),
        ("chatgpt", "search", "note of {}"),
        ("basic-memory", "search_notes", "note-of-{}"),
    ],
)
def test_right_after_the_list_of_tools_a_small_vault_is_wholly_searchable(
    vault: Path, profile: str, tool: str, found: str
) -> None:
    write_small_vault(vault)
    with Bare(vault, "--profile", profile) as bare:
        bare.initialize()
        bare.request("tools/list")
        for name in SEEN:
            answer = bare.call(tool, query=name)
            text = " ".join(part["text"] for part in answer["content"])
            assert found.format(name) in text
            assert "not indexed yet" not in text and "not yet by meaning" not in text


@pytest.mark.parametrize(
    ("profile", "tool"),
    [("default", "search_memories"), ("simplemem", "search_memories"), ("chatgpt", "search")],
)
def test_a_vault_that_is_still_being_read_is_never_said_to_hold_nothing(
    vault: Path, profile: str, tool: str
) -> None:
    write_many_notes(vault)
    with Bare(vault, "--profile", profile) as bare:
        bare.initialize()
        bare.request("tools/list")
        for question in ("plum2999", "a word of no note: quetzal"):
            answer = bare.call(tool, query=question)
            text = " ".join(part["text"] for part in answer["content"])
            assert re.search(
                r"[1-9]\d* of 3000 notes are not indexed yet, and [1-9]\d* have no vector yet", text
            )
            assert not re.search(
                "nothing (was )?found|no memories were found|no (memory|note) (holds|contains)",
                text,
                re.IGNORECASE,
            )


def test_a_name_that_is_not_indexed_yet_is_not_said_to_be_of_no_note(vault: Path) -> None:
    write_small_vault(vault)
    (vault / "Kite.md").write_text(
        "---\ntitle: The paper kite\naliases: [dragon]\n---\nIt flies.\n"
    )
    with Bare(vault) as bare:
        bare.initialize()
        bare.request("tools/list")
        assert "It flies." in bare.call("read_memory", name="dragon")["content"][0]["text"]


def _write_first_note(server: Bare) -> None:
    server.initialize()
    assert not server.call(
        "create_memory", name="First", content="The first note.", metadata=META
    ).get("isError")


def test_in_a_folder_that_obsidian_uses_serve_writes_into_that_folder(
    working_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(working_folder.parent / "home"))
    (working_folder / ".obsidian").mkdir()
    (working_folder / "people").mkdir()
    command = serving("--default-vault", "~/simplemem")  # which counts only outside of every vault
    with Bare(working_folder, command=command, cwd=working_folder / "people") as server:
        _write_first_note(server)
    assert (working_folder / "First.md").is_file()
    assert not (working_folder.parent / "home").exists()


def test_a_misspelt_variable_is_named_at_the_start(
    working_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIMPLEMEM_READONLY", "true")
    (working_folder / ".obsidian").mkdir()
    served = subprocess.run(
        serving(), cwd=working_folder, input=b"", capture_output=True, timeout=60, check=False
    )
    assert b"SIMPLEMEM_READONLY has no effect; did you mean SIMPLEMEM_READ_ONLY?" in served.stderr
    assert served.returncode == 0 and not served.stdout


def test_among_other_notes_serve_uses_no_vault_but_one_that_is_named(
    working_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = working_folder.parent / "home"
    monkeypatch.setenv("HOME", str(home))
    (working_folder / "chapter.md").write_text("A chapter of a handbook.\n")
    refused = subprocess.run(
        serving(), cwd=working_folder, input=b"", capture_output=True, timeout=60, check=False
    )
    assert refused.returncode == 1 and not refused.stdout
    assert (
        f"no vault in {working_folder}" in refused.stderr.decode()
        and b"simplemem init ." in refused.stderr
    )
    assert not home.exists()

    with Bare(
        working_folder, command=serving("--default-vault", "~/simplemem"), cwd=working_folder
    ) as server:
        _write_first_note(server)
    assert (home / "simplemem" / "First.md").is_file()
    assert sorted(os.listdir(working_folder)) == ["chapter.md"]
