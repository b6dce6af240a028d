"""What `make dist` made, tried as its users get it: the wheel and the source by pip, the wheel by pipx and by uvx, the
bundle by its own command line. Each must serve a vault to the official client. Exit code 1 when one does not."""

import json
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import anyio
from mcp import Client, StdioServerParameters

DIST = Path(__file__).resolve().parent.parent / "dist"


async def tools_of(command: list[str], env: dict[str, str]) -> int:
    """How many tools a server has that found the memory it was asked for."""
    async with Client(
        StdioServerParameters(command=command[0], args=command[1:], env=env)
    ) as client:
        with anyio.fail_after(60):
            while True:
                found = (
                    await client.call_tool("search_memories", {"query": "who likes tea"})
                ).structured_content or {}
                if [hit["name"] for hit in found["hits"]] == ["Ida"]:
                    break
                await anyio.sleep(0.1)  # the first index is being made
        return len((await client.list_tools()).tools)


def ways(room: Path, vault: Path, env: dict[str, str]) -> Iterator[tuple[str, list[str]]]:
    """Each way to install, and the command that then serves."""
    [wheel], [source], [bundle] = DIST.glob("*.whl"), DIST.glob("*.tar.gz"), DIST.glob("*.mcpb")

    def run(*command: object) -> None:
        subprocess.run([*map(str, command)], check=True, env=env, stdout=subprocess.DEVNULL)

    def venv(name: str, *packages: object) -> Path:
        run(sys.executable, "-m", "venv", room / name)
        found = room / name / ("Scripts" if os.name == "nt" else "bin")
        run(
            found / "python",
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            *packages,
        )
        return found

    serve = ["serve", "--vault", str(vault)]
    for name, file in (("pip, the wheel", wheel), ("pip, the source", source)):
        yield name, [str(venv(name, file) / "simplemem"), *serve]
    tools = venv("tools", "pipx", "uv")
    env["PATH"] = f"{tools}{os.pathsep}{env['PATH']}"
    run(tools / "pipx", "install", wheel)
    yield "pipx", [str(room / "bin" / "simplemem"), *serve]
    yield "uvx --from", [str(tools / "uvx"), "--from", str(wheel), "simplemem", *serve]
    with zipfile.ZipFile(bundle) as archive:
        archive.extractall(room / "bundle")
    config = json.loads((room / "bundle" / "manifest.json").read_text(encoding="utf-8"))["server"][
        "mcp_config"
    ]
    known = {"${__dirname}": str(room / "bundle"), "${user_config.vault}": str(vault)}
    yield (
        "the bundle",
        [known.get(each, each) for each in (str(tools / config["command"]), *config["args"])],
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        room = Path(name)
        homes = {
            "HOME": room,
            "PIPX_HOME": room / "pipx",
            "PIPX_BIN_DIR": room / "bin",
            "UV_CACHE_DIR": room / "uv",
        }
        env = {**os.environ, **{key: str(place) for key, place in homes.items()}}
        for key in [each for each in env if each.startswith("SIMPLEMEM_") or each == "VIRTUAL_ENV"]:
            del env[key]
        vault = room / "notes"
        vault.mkdir()
        (vault / "Ida.md").write_text("Ida likes tea.\n")
        began = time.monotonic()
        for way, command in ways(room, vault, env):
            tools = anyio.run(tools_of, command, env)
            print(f"{way:<16} {tools} tools, after {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
