"""The package of docs/plugins.md in a fresh environment: pip installs it, and every plug-in is used."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
import sysconfig
import tomllib
import venv
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import anyio
import pytest
from mcp import Client, StdioServerParameters

REPOSITORY = Path(__file__).resolve().parents[1]
EXAMPLE = REPOSITORY / "plugin-example"


def packaged_files(project: Path, package_data: dict[str, list[str]]) -> Iterator[Path]:
    """Yield the files that setuptools puts into a wheel: modules, and the declared package data."""
    for package, patterns in package_data.items():
        for file in sorted((project / package).rglob("*")):
            if file.suffix == ".py" or any(fnmatch(file.name, pattern) for pattern in patterns):
                yield file


def build_wheel(project: Path, folder: Path, *, is_editable: bool = False) -> Path:
    """Write the wheel of a project, as setuptools does, but without downloading setuptools.

    An editable one contains only the path of the project.
    """
    settings = tomllib.loads((project / "pyproject.toml").read_text("utf-8"))
    about = settings["project"]
    name = about["name"].replace("-", "_")
    version = about.get("version", "1")

    contents: dict[str, bytes] = {}
    if is_editable:
        contents[f"{name}.pth"] = str(project).encode()
    else:
        for file in packaged_files(project, settings["tool"]["setuptools"]["package-data"]):
            contents[file.relative_to(project).as_posix()] = file.read_bytes()

    groups = {"console_scripts": about.get("scripts", {}), **about.get("entry-points", {})}
    entry_points = []
    for group, entries in groups.items():
        entry_points += [f"[{group}]", *(f"{key} = {value}" for key, value in entries.items())]
    metadata = f"{name}-{version}.dist-info"
    contents[f"{metadata}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: {about['name']}\nVersion: {version}\n".encode()
    )
    contents[f"{metadata}/WHEEL"] = (
        b"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    )
    contents[f"{metadata}/entry_points.txt"] = "\n".join(entry_points).encode()

    record = [f"{metadata}/RECORD,,"]
    for path, data in contents.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record.append(f"{path},sha256={digest},{len(data)}")
    contents[f"{metadata}/RECORD"] = "\n".join(record).encode()

    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    with ZipFile(wheel, "w") as archive:
        for path, data in contents.items():
            archive.writestr(path, data)
    return wheel


class Installation:
    """A fresh environment with simplemem and the example package, and a vault."""

    def __init__(self, folder: Path) -> None:
        self.vault = folder / "vault"
        self.vault.mkdir()
        (self.vault / ".simplemem").mkdir()
        environment = folder / "environment"
        venv.create(environment, with_pip=True)
        scripts = "Scripts" if sys.platform == "win32" else "bin"
        self.python = environment / scripts / "python"
        self.simplemem = environment / scripts / "simplemem"
        self.env = {key: value for key, value in os.environ.items() if "SIMPLEMEM" not in key}
        self.env |= {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder / "config")}
        self.env.pop("PYTHONPATH", None)

        # The packages that simplemem needs are those of this environment.
        code = "import sysconfig; print(sysconfig.get_path('purelib'))"
        site = Path(self.output(self.python, "-c", code).strip())
        dependencies = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
        dependencies |= {path for path in sys.path if path.endswith("site-packages")}
        (site / "dependencies.pth").write_text("\n".join(sorted(dependencies)) + "\n")

        wheels = [
            build_wheel(REPOSITORY, folder, is_editable=True),
            build_wheel(EXAMPLE, folder),
        ]
        install = ["-m", "pip", "install", "--quiet", "--no-index", "--no-deps", *map(str, wheels)]
        # Any simplemem among the dependencies is an editable one, of another version of this tree.
        self.output(self.python, *install, "--ignore-installed")

    def output(self, *command: str | Path) -> str:
        """Run a command that succeeds, and return its output."""
        ran = subprocess.run(
            command,
            capture_output=True,
            text=True,
            env=self.env,
            cwd=self.vault,
            timeout=120,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    def ask(self, *arguments: str) -> dict[str, Any]:
        """Run a command of simplemem, and return its JSON."""
        answer: dict[str, Any] = json.loads(self.output(self.simplemem, *arguments, "--json"))
        return answer

    async def call(self, profile: str, tool: str, **arguments: object) -> Any:
        """Call one tool with the official client, and return the structured answer."""
        options = ["serve", "--profile", profile, "--vault", str(self.vault)]
        server = StdioServerParameters(command=str(self.simplemem), args=options, env=self.env)
        async with Client(server) as client:
            answer = await client.call_tool(tool, arguments)
        assert not answer.is_error, answer.content
        return answer.structured_content


@pytest.mark.slow
def test_all_plug_ins_of_a_package_that_pip_installed(tmp_path: Path) -> None:
    installed = Installation(tmp_path)

    plugins = installed.ask("plugins")["plugins"]
    assert {plugin["kind"]: plugin["name"] for plugin in plugins} == {
        "profiles": "recipes",
        "importers": "recipe-cards",
        "embedders": "recipe-letters",
        "rerankers": "recipe-ingredients",
    }
    assert all(plugin["error"] is None for plugin in plugins)

    cards = tmp_path / "cards"
    cards.mkdir()
    (cards / "soup.txt").write_text("Soup\nLeeks and potatoes.\n")
    installed.ask("import", "recipe-cards", str(cards), "--yes")

    installed.output(installed.simplemem, "config", "set", "embed.provider", "recipe-letters")
    installed.output(installed.simplemem, "config", "set", "rerank.provider", "recipe-ingredients")
    kept = anyio.run(
        lambda: installed.call(
            "recipes", "keep_recipe", title="Lasagne", text="Pasta, tomatoes, cheese."
        )
    )
    assert kept == {"name": "recipes/Lasagne"}
    found = anyio.run(lambda: installed.call("recipes", "find_recipes", ingredients="leeks cheese"))
    assert set(found["names"]) == {"recipes/Soup", "recipes/Lasagne"}

    installed.ask("index")
    misspelt = anyio.run(
        lambda: installed.call("default", "search_memories", query="lasanya", mode="semantic")
    )
    assert misspelt["hits"][0]["name"] == "recipes/Lasagne"

    stats = installed.ask("stats")
    assert stats["embedding"]["in_use"] == "recipe-letters/trigrams-v1-512"
    assert stats["embedding"]["notes_with_vectors"] == 2
    assert stats["reranker"] == "recipe-ingredients/shared-words"
