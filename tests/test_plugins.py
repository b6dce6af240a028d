"""Another package adds a plug-in of each kind: the package of docs/plugins.md, installed beside simplemem."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from processes import Program, run_program

REPOSITORY = Path(__file__).resolve().parents[1]
EXAMPLE = REPOSITORY / "plugin-example"
PAGE = REPOSITORY / "docs" / "plugins.md"


def install(site: Path, package: Path) -> None:
    """Put a package into a folder of Python packages, with the metadata that pip would write."""
    project = tomllib.loads((package / "pyproject.toml").read_text("utf-8"))["project"]
    shutil.copytree(package, site, dirs_exist_ok=True)
    metadata = site / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    lines = []
    for group, entries in project["entry-points"].items():
        lines.append(f"[{group}]")
        lines += [f"{name} = {target}" for name, target in entries.items()]
    (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n")


class Environment:
    """A folder of packages and a vault. Commands run in processes of their own."""

    def __init__(self, folder: Path) -> None:
        self.site = folder / "site"
        self.vault = folder / "vault"
        self.site.mkdir()
        (self.vault / ".simplemem").mkdir(parents=True)
        self.env = {
            **{key: value for key, value in os.environ.items() if "SIMPLEMEM" not in key},
            "PYTHONPATH": os.pathsep.join([str(self.site), str(REPOSITORY)]),
            "HOME": str(folder),
            "SIMPLEMEM_EMBED_PROVIDER": "none",
        }

    def run(self, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
        return run_program(
            *arguments, env=self.env, stdin_data=given, cwd=self.site, late_path=True
        )

    def ask(self, *arguments: str) -> dict[str, Any]:
        """Run a command that succeeds, and return its JSON."""
        ran = self.run(*arguments, "--json")
        assert ran.returncode == 0, ran.stderr
        answer: dict[str, Any] = json.loads(ran.stdout)
        return answer

    def plugins(self) -> list[dict[str, Any]]:
        plugins: list[dict[str, Any]] = self.ask("plugins")["plugins"]
        return plugins


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    return Environment(tmp_path)


@pytest.fixture
def with_example(environment: Environment) -> Environment:
    install(environment.site, EXAMPLE)
    return environment


def test_the_page_shows_the_package_that_is_tested() -> None:
    page = [line.strip() for line in PAGE.read_text("utf-8").splitlines() if line.strip()]
    text = "\n".join(page)
    shown = [*EXAMPLE.rglob("*.py"), EXAMPLE / "pyproject.toml"]
    for file in shown:
        lines = [line.strip() for line in file.read_text("utf-8").splitlines() if line.strip()]
        assert "\n".join(lines) in text, file.name


def test_plugins_lists_what_a_package_adds(with_example: Environment) -> None:
    about = {"package": "simplemem-recipes", "version": "1.0", "error": None}
    assert with_example.plugins() == [
        {"kind": "profiles", "name": "recipes", **about},
        {"kind": "importers", "name": "recipe-cards", **about},
        {"kind": "embedders", "name": "recipe-letters", **about},
        {"kind": "rerankers", "name": "recipe-ingredients", **about},
    ]
    text = with_example.run("plugins").stdout
    assert "recipe-cards" in text and "simplemem-recipes 1.0" in text


def test_without_plug_ins_the_list_says_so(environment: Environment) -> None:
    assert environment.plugins() == []
    assert "No installed package adds a plug-in." in environment.run("plugins").stdout


def test_a_profile_of_a_package_serves_its_tools_over_mcp(with_example: Environment) -> None:
    about = {"protocolVersion": "2025-06-18", "capabilities": {}}
    about["clientInfo"] = {"name": "test", "version": "1"}
    kept = {"title": "Soup", "text": "Leeks and potatoes."}
    calls = [
        ("initialize", about),
        ("tools/list", {}),
        ("tools/call", {"name": "keep_recipe", "arguments": kept}),
        ("tools/call", {"name": "find_recipes", "arguments": {"ingredients": "leeks"}}),
    ]
    messages = [
        {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        for number, (method, params) in enumerate(calls)
    ]
    messages.insert(1, {"jsonrpc": "2.0", "method": "notifications/initialized"})
    answers = converse(with_example, messages)

    assert answers[0]["instructions"].startswith("Keep the recipes that the user likes. Before")
    assert [tool["name"] for tool in answers[1]["tools"]] == ["keep_recipe", "find_recipes"]
    assert answers[2]["content"][0]["text"] == "Kept Soup."
    assert answers[3]["structuredContent"] == {"names": ["recipes/Soup"]}
    assert "Leeks and potatoes." in (with_example.vault / "recipes/Soup.md").read_text("utf-8")


def converse(environment: Environment, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Send messages to a server over standard streams one by one, and return the results."""
    command = [sys.executable, "-m", "simplemem", "serve", "--profile", "recipes"]
    command += ["--vault", str(environment.vault)]
    results = []
    with Program(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment.env,
        cwd=environment.site,
        late_path=True,
    ) as server:
        assert server.stdin is not None and server.stdout is not None
        for message in messages:
            server.stdin.write(json.dumps(message) + "\n")
            server.stdin.flush()
            while "id" in message:
                answer = json.loads(server.stdout.readline())
                if answer.get("id") == message["id"]:
                    results.append(answer["result"])
                    break
        server.stdin.close()
    return results


def test_a_tool_group_of_a_package_is_added_to_another_profile(with_example: Environment) -> None:
    listed = with_example.run("tools", "list", "--tools", "recipes", "--json").stdout
    names = [tool["name"] for tool in json.loads(listed)["tools"]]
    assert names[-2:] == ["keep_recipe", "find_recipes"] and "search_memories" in names


def test_an_importer_of_a_package_is_a_command(with_example: Environment) -> None:
    cards = with_example.vault.parent / "cards"
    cards.mkdir()
    (cards / "one.txt").write_text("Soup\nLeeks and potatoes.\n")
    (cards / "two.txt").write_text("\nNo name.\n")
    where = ["--vault", str(with_example.vault)]
    ran = with_example.run("import", "recipe-cards", str(cards), "--yes", "--json", *where)
    assert ran.returncode == 0, ran.stderr

    note = (with_example.vault / "recipes/Soup.md").read_text("utf-8")
    assert "Leeks and potatoes." in note and "source: recipe-cards:one.txt" in note
    assert "its first line is empty" in ran.stdout
    assert "recipe-cards" in with_example.run("import", "--help").stdout


def install_broken(environment: Environment, module: str, **attributes: str) -> None:
    """Install the package `broken-one` with one module of this text.

    `attributes` has, by kind of plug-in, the attribute of the module that it offers as `broken`.
    """
    package = environment.vault.parent / "broken"
    package.mkdir()
    (package / "broken_one.py").write_text(module + "\n")
    project = '[project]\nname = "broken-one"\nversion = "2"\n'
    for kind, attribute in attributes.items():
        project += f'[project.entry-points."simplemem.{kind}"]\n'
        project += f'broken = "broken_one:{attribute}"\n'
    (package / "pyproject.toml").write_text(project)
    install(environment.site, package)


def write_recipes(vault: Path) -> None:
    (vault / "Lasagne.md").write_text("Sheets of pasta with tomatoes, carrots and cheese.\n")
    (vault / "Soup.md").write_text("Leeks, potatoes and carrots in broth.\n")
    (vault / "Bread.md").write_text("Flour, water, yeast and salt.\n")


def test_an_embedder_of_a_package_makes_the_vectors(with_example: Environment) -> None:
    write_recipes(with_example.vault)
    where = ["--vault", str(with_example.vault)]
    with_example.env["SIMPLEMEM_EMBED_PROVIDER"] = "recipe-letters"
    with_example.env["SIMPLEMEM_EMBED_DIMENSIONS"] = "300"
    with_example.ask("index", *where)

    stats = with_example.ask("stats", *where)["embedding"]
    assert stats["in_use"] == "recipe-letters/trigrams-v1-300"
    assert stats["dimension"] == 300 and stats["notes_with_vectors"] == 3
    assert stats["remote"] is False and stats["trouble"] == ""

    misspelt = with_example.ask("search", "lasanya", "--mode", "semantic", *where)
    assert misspelt["hits"][0]["name"] == "Lasagne"


def test_another_name_of_the_embedder_replaces_its_vectors(with_example: Environment) -> None:
    write_recipes(with_example.vault)
    where = ["--vault", str(with_example.vault)]
    with_example.env["SIMPLEMEM_EMBED_PROVIDER"] = "recipe-letters"
    for dimensions in (64, 128):
        with_example.env["SIMPLEMEM_EMBED_DIMENSIONS"] = str(dimensions)
        with_example.ask("index", *where)
        stats = with_example.ask("stats", *where)["embedding"]
        assert stats["dimension"] == dimensions and stats["notes_with_vectors"] == 3


def test_a_reranker_of_a_package_orders_the_hits(with_example: Environment) -> None:
    write_recipes(with_example.vault)
    where = ["--vault", str(with_example.vault)]
    query = "soup pasta tomatoes carrots cheese"
    with_example.env["SIMPLEMEM_RERANK_PROVIDER"] = "recipe-ingredients"
    found = with_example.ask("search", query, "--explain", *where)
    assert found["hits"][0]["name"] == "Lasagne" and found["hits"][0]["score"] == 0.8
    assert "recipe-ingredients/shared-words" in json.dumps(found["explain"])


def test_a_vault_cannot_choose_the_embedder_of_a_package(with_example: Environment) -> None:
    where = ["--vault", str(with_example.vault)]
    config = with_example.vault / ".simplemem" / "config.toml"
    for section, name in (("embed", "recipe-letters"), ("rerank", "recipe-ingredients")):
        config.write_text(f'[{section}]\nprovider = "{name}"\n')
        refused = with_example.run("search", "soup", *where)
        assert refused.returncode != 0
        assert "which a vault may not set" in refused.stderr and name in refused.stderr


def test_an_unknown_embedder_is_refused_with_the_names_that_there_are(
    with_example: Environment,
) -> None:
    where = ["--vault", str(with_example.vault)]
    with_example.env["SIMPLEMEM_EMBED_PROVIDER"] = "letters"
    refused = with_example.run("search", "soup", *where)
    assert refused.returncode != 0
    names = "'wordllama', 'local', 'voyage', 'openai', 'ollama', 'none' or 'recipe-letters'"
    assert f"Input should be {names}" in " ".join(refused.stderr.split())

    del with_example.env["SIMPLEMEM_EMBED_PROVIDER"]
    refused = with_example.run("config", "set", "rerank.provider", "ingredients")
    assert "Allowed: none, voyage, http, recipe-ingredients." in refused.stderr


def test_the_packages_are_not_read_for_an_embedder_of_simplemem(environment: Environment) -> None:
    code = """
import importlib.metadata
from simplemem.settings.loading import load_settings
importlib.metadata.entry_points = None  # so that a call raises TypeError
settings = load_settings({"embed.provider": "openai", "rerank.provider": "http"})
assert settings.embed.provider == "openai"
"""
    # Without this, pydantic reads the packages for plug-ins of its own.
    env = {**environment.env, "PYDANTIC_DISABLE_PLUGINS": "__all__"}
    subprocess.run([sys.executable, "-c", code], env=env, check=True, timeout=60)


@pytest.mark.parametrize(
    ("module", "problem"),
    [
        ("raise RuntimeError('no network')", "RuntimeError: no network"),
        ("PROVIDER = 1", "is not an EmbedderProvider"),
        (
            "from simplemem.providers.api import EmbedderProvider\n"
            "PROVIDER = EmbedderProvider('broken', lambda config: config.nothing)",
            "failed with AttributeError (broken_one.py, line 2)",
        ),
        (
            "from simplemem.providers.api import EmbedderProvider\n"
            "PROVIDER = EmbedderProvider('broken', lambda config: object())",
            "creates no Embedder",
        ),
    ],
)
def test_without_the_embedder_of_a_package_a_search_goes_by_words_and_says_why(
    environment: Environment, module: str, problem: str
) -> None:
    install_broken(environment, module, embedders="PROVIDER")
    write_recipes(environment.vault)
    environment.env["SIMPLEMEM_EMBED_PROVIDER"] = "broken"

    found = environment.ask("search", "leeks", "--vault", str(environment.vault))
    assert [hit["name"] for hit in found["hits"]] == ["Soup"]
    assert problem in found["degraded"]


@pytest.mark.parametrize(
    ("module", "problem"),
    [
        ("raise RuntimeError('no network')", "RuntimeError: no network"),
        ("PROFILE = SOURCE = 1", "is not a"),
        ("", "AttributeError"),
    ],
)
def test_a_broken_plug_in_is_named_and_stops_nothing(
    environment: Environment, module: str, problem: str
) -> None:
    install_broken(environment, module, profiles="PROFILE", importers="SOURCE")

    for plugin in environment.plugins():
        assert plugin["package"] == "broken-one" and problem in plugin["error"]

    where = ["--vault", str(environment.vault)]
    assert environment.run("serve", *where).returncode == 0
    assert environment.run("import", "markdown", "--help").returncode == 0

    wanted = environment.run("serve", "--profile", "broken", *where)
    assert wanted.returncode == 1 and problem in wanted.stderr and "broken-one" in wanted.stderr

    unknown = environment.run("serve", "--profile", "nothing", *where)
    assert unknown.returncode == 1 and "no profile called 'nothing'" in unknown.stderr


def test_a_plug_in_does_not_replace_a_profile_of_simplemem(environment: Environment) -> None:
    package = environment.vault.parent / "other"
    package.mkdir()
    (package / "other.py").write_text("raise RuntimeError('was imported')\n")
    (package / "pyproject.toml").write_text(
        '[project]\nname = "other"\nversion = "1"\n'
        '[project.entry-points."simplemem.profiles"]\nchatgpt = "other:PROFILE"\n'
    )
    install(environment.site, package)
    listed = environment.run("tools", "list", "--profile", "chatgpt", "--json")
    names = [tool["name"] for tool in json.loads(listed.stdout)["tools"]]
    assert names == ["search", "fetch"]
