"""What `make dist` made, installed as users do: by pip, pipx, uvx, and as the bundle.

Each installation must serve a vault to the official client. Prints for each how many tools it
serves and, for the wheel, the size of what pip installed. Exits with an error if one does not work.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import anyio
from mcp import Client, StdioServerParameters

DIST: Final = Path(__file__).resolve().parent.parent / "dist"
NOT_OURS: Final = ("pip", "pip-*", "setuptools", "setuptools-*", "pkg_resources", "_distutils_hack")
"""What a new virtual environment contains already."""


def main() -> None:
    """Install in each way, and serve a vault with one note."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        vault = root / "notes"
        vault.mkdir()
        (vault / "Ida.md").write_text("Ida likes tea.\n")

        start = time.monotonic()
        env = make_environment(root)
        for title, command in install_each_way(root, vault, env):
            tools = anyio.run(count_tools, command, env)
            seconds = time.monotonic() - start
            print(f"{title:<16} {tools} tools, after {seconds:.0f} s", flush=True)


def make_environment(root: Path) -> dict[str, str]:
    """Return environment variables with which programs keep their files below `root`."""
    env = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("SIMPLEMEM_") and name != "VIRTUAL_ENV"
    }
    env["HOME"] = str(root)
    env["PIPX_HOME"] = str(root / "pipx")
    env["PIPX_BIN_DIR"] = str(root / "bin")
    env["UV_CACHE_DIR"] = str(root / "uv")
    return env


def install_each_way(
    root: Path, vault: Path, env: dict[str, str]
) -> Iterator[tuple[str, list[str]]]:
    """Install in one way after the other; yield its title and the command that serves the vault.

    Adds the folder of pipx and uv to the PATH in `env`.
    """
    [wheel] = DIST.glob("*.whl")
    [source] = DIST.glob("*.tar.gz")
    [bundle] = DIST.glob("*.mcpb")
    serve = ["serve", "--vault", str(vault)]

    programs = make_venv(root / "wheel", env, wheel)
    print(f"{'':<16} {installed_megabytes(root / 'wheel'):.0f} MB installed by pip")
    yield "pip, the wheel", [str(programs / "simplemem"), *serve]
    # The dependencies are those of the wheel, and need not be installed again.
    pip_install(env, programs, "--force-reinstall", "--no-deps", source)
    yield "pip, the source", [str(programs / "simplemem"), *serve]

    tools = make_venv(root / "tools", env, "pipx", "uv")
    env["PATH"] = f"{tools}{os.pathsep}{env['PATH']}"
    run(env, tools / "pipx", "install", wheel)
    yield "pipx", [str(root / "bin" / "simplemem"), *serve]
    yield "uvx --from", [str(tools / "uvx"), "--from", str(wheel), "simplemem", *serve]

    yield "the bundle", unpack_bundle(bundle, root / "bundle", vault, tools)


def unpack_bundle(bundle: Path, folder: Path, vault: Path, tools: Path) -> list[str]:
    """Unpack a bundle as Claude Desktop does, and return the command that its manifest declares."""
    with zipfile.ZipFile(bundle) as archive:
        archive.extractall(folder)
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    config = manifest["server"]["mcp_config"]
    values = {"${__dirname}": str(folder), "${user_config.vault}": str(vault)}
    arguments = [values.get(argument, argument) for argument in config["args"]]
    return [str(tools / config["command"]), *arguments]


def make_venv(folder: Path, env: dict[str, str], *packages: object) -> Path:
    """Make a virtual environment with packages, and return the folder of its programs."""
    run(env, sys.executable, "-m", "venv", folder)
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    pip_install(env, programs, *packages)
    return programs


def pip_install(env: dict[str, str], programs: Path, *arguments: object) -> None:
    """Run `pip install` in the virtual environment with these programs."""
    pip = [programs / "python", "-m", "pip", "--quiet", "--disable-pip-version-check"]
    run(env, *pip, "install", *arguments)


def installed_megabytes(venv: Path) -> float:
    """Return the size of what pip installed into a new virtual environment, with compiled files."""
    [site_packages] = venv.rglob("site-packages")
    total = 0
    for entry in site_packages.iterdir():
        if any(entry.match(pattern) for pattern in NOT_OURS):
            continue
        files = entry.rglob("*") if entry.is_dir() else [entry]
        total += sum(file.stat().st_size for file in files if file.is_file())
    return total / 1e6


def run(env: dict[str, str], *command: object) -> None:
    """Run a program without its output.

    Raises:
        subprocess.CalledProcessError: It failed.
    """
    subprocess.run([*map(str, command)], check=True, env=env, stdout=subprocess.DEVNULL)


async def count_tools(command: list[str], env: dict[str, str]) -> int:
    """Start a server, wait until it finds the note, and return how many tools it has.

    Raises:
        TimeoutError: It did not find the note within 60 s.
    """
    server = StdioServerParameters(command=command[0], args=command[1:], env=env)
    async with Client(server) as client:
        with anyio.fail_after(60):
            while not await finds_note(client):
                await anyio.sleep(0.1)  # the first index is being made
        return len((await client.list_tools()).tools)


async def finds_note(client: Client) -> bool:
    """Tell whether a search returns the note of the vault."""
    result = await client.call_tool("search_memories", {"query": "who likes tea"})
    hits = (result.structured_content or {})["hits"]
    return [hit["name"] for hit in hits] == ["Ida"]


if __name__ == "__main__":
    main()
