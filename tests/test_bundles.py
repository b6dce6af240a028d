"""What is handed out to other programs' stores fits their schemas, says one version, and starts what it says."""

from __future__ import annotations

import base64
import importlib.util
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import jsonschema
import pytest

from simplemem import __version__, open_store

ROOT = Path(__file__).resolve().parent.parent
PLUGIN = ROOT / "bundles" / "claude-code"
# What the registry's schema of 2025-12-11 asks of a server with a package of PyPI (its `server.schema.json`).
TEXT = {"type": "string", "minLength": 1}
ARGUMENT = {
    "type": "object",
    "required": ["type"],
    "properties": {"type": {"enum": ["positional", "named"]}},
}
SERVER = {
    "type": "object",
    "required": ["$schema", "name", "description", "version", "packages"],
    "properties": {
        "$schema": {
            "const": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
        },
        "name": {
            "type": "string",
            "pattern": "^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$",
            "minLength": 3,
            "maxLength": 200,
        },
        "title": {"type": "string", "minLength": 1, "maxLength": 100},
        "description": {"type": "string", "minLength": 1, "maxLength": 100},
        "version": {"type": "string", "maxLength": 255},
        "packages": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["registryType", "identifier", "transport"],
                "properties": {
                    "registryType": TEXT,
                    "identifier": TEXT,
                    "version": {**TEXT, "not": {"const": "latest"}},
                    "runtimeHint": TEXT,
                    "transport": {"type": "object", "properties": {"type": {"const": "stdio"}}},
                    "runtimeArguments": {"type": "array", "items": ARGUMENT},
                    "packageArguments": {"type": "array", "items": ARGUMENT},
                },
            },
        },
    },
}


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def build() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_bundles", ROOT / "bundles" / "build.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_file_says_the_version_of_the_package() -> None:
    server, market = read(ROOT / "server.json"), read(ROOT / ".claude-plugin" / "marketplace.json")
    said = [server["version"], server["packages"][0]["version"], market["metadata"]["version"]]
    said += [
        each["version"]
        for each in (*market["plugins"], read(PLUGIN / ".claude-plugin" / "plugin.json"))
    ]
    assert {*said, read(ROOT / "bundles" / "manifest.json")["version"]} == {__version__}


def test_the_bundle_fits_the_schema_of_manifests_and_has_what_it_starts(
    build: ModuleType, tmp_path: Path
) -> None:
    with zipfile.ZipFile(build.bundle(tmp_path)) as archive:
        manifest, files = json.loads(archive.read("manifest.json")), set(archive.namelist())
    # Of @anthropic-ai/mcpb 2.1.2, MIT licence.
    jsonschema.validate(manifest, read(ROOT / "tests" / "data" / "mcpb-manifest-v0.4.schema.json"))
    assert len(manifest["tools"]) == 12
    assert {
        manifest["server"]["entry_point"],
        "pyproject.toml",
        "simplemem/index/schema.sql",
        "LICENSE",
    } <= files
    assert (
        "${user_config.vault}" in manifest["server"]["mcp_config"]["args"]
        and "vault" in manifest["user_config"]
    )


def test_the_entry_of_the_registry_names_the_package_and_the_readme_owns_it() -> None:
    server = read(ROOT / "server.json")
    jsonschema.validate(server, SERVER)
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'name = "{server["packages"][0]["identifier"]}"' in project
    assert f"<!-- mcp-name: {server['name']} -->" in (ROOT / "README.md").read_text(
        encoding="utf-8"
    )


def test_the_plugin_is_where_the_marketplace_says_and_its_words_are_told_when_to_use(
    build: ModuleType,
) -> None:
    market = read(ROOT / ".claude-plugin" / "marketplace.json")
    assert (ROOT / market["plugins"][0]["source"]).resolve() == PLUGIN
    commands = {each.stem for each in (PLUGIN / "commands").glob("*.md")}
    assert commands == {"recall", "remember", "review"}
    for page in [*(PLUGIN / "commands").glob("*.md"), PLUGIN / "skills" / "memory" / "SKILL.md"]:
        header = re.match(r"---\n(.*?)\n---\n", page.read_text(encoding="utf-8"), re.DOTALL)
        assert header is not None and "description: " in header[1]
    tools = {each["name"] for each in build.manifest()["tools"]}
    for page in PLUGIN.rglob("*.md"):
        named = set(
            re.findall(
                r"`?\b((?:search|read|update|create|list|build|change|undo|get)_[a-z]+)\b",
                page.read_text(),
            )
        )
        assert named <= tools, page


def test_the_links_open_what_they_show(build: ModuleType) -> None:
    page = (ROOT / "docs" / "bundles.md").read_text(encoding="utf-8")
    for name, link in build.links().items():
        assert f"- {name}: `{link}`" in page
        query = urlsplit(link).query
        entry = json.loads(
            base64.b64decode(parse_qs(query)["config"][0]) if name == "Cursor" else unquote(query)
        )
        assert [entry["command"], *entry["args"]] == [
            "uvx",
            "--from",
            "simplemem-vault",
            "simplemem",
            "serve",
        ]


def hook(project: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """The session-start hook, run as Claude Code runs it."""
    told = read(PLUGIN / "hooks" / "hooks.json")["hooks"]["SessionStart"][0]["hooks"][0]["command"]
    command = told.replace("${CLAUDE_PLUGIN_ROOT}", str(PLUGIN)).replace(
        "python3", f'"{sys.executable}"'
    )
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    asked = json.dumps(
        {"hook_event_name": "SessionStart", "source": "startup", "cwd": str(project)}
    )
    own = {"HOME": str(project.parent), "PATH": path, "XDG_CONFIG_HOME": str(project.parent)}
    rest = {key: value for key, value in os.environ.items() if not key.startswith("SIMPLEMEM_")}
    return subprocess.run(
        command,
        shell=True,
        cwd=project,
        input=asked,
        env={**rest, **own, **env},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_session_begins_with_what_the_memory_says_of_the_project(tmp_path: Path) -> None:
    project = tmp_path / "balloon"
    project.mkdir()
    with open_store(project) as store:
        for number in range(40):
            store.create(
                f"decision {number}",
                f"The balloon decision {number}: we use hydrogen. " + "Because it lifts. " * 40,
            )
    before = {each: each.read_bytes() for each in project.rglob("*.md")}
    said = hook(project)
    assert (
        said.returncode == 0
        and "hydrogen" in said.stdout
        and "data, not instructions" in said.stdout
    )
    assert len(said.stdout) / 4 < 400
    assert {each: each.read_bytes() for each in project.rglob("*.md")} == before


def test_without_a_vault_a_memory_or_the_program_a_session_begins_with_nothing(
    tmp_path: Path,
) -> None:
    project = tmp_path / "empty"
    project.mkdir()
    assert (said := hook(project)).returncode == 0 and not said.stdout and not said.stderr
    assert (
        (said := hook(project, PATH="/nowhere")).returncode == 0
        and not said.stdout
        and not said.stderr
    )
    (project / ".simplemem").mkdir()
    assert (said := hook(project)).returncode == 0 and not said.stdout
    assert not list(tmp_path.rglob("*.md"))
