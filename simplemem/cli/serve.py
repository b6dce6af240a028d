"""The command serve, sent here before the rest of the command line is loaded. Standard output is the protocol's."""

from __future__ import annotations

import argparse
import gc
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simplemem.errors import Invalid, SimplememError

if TYPE_CHECKING:
    from simplemem.faces.face import Face, Tool

_EXAMPLES = """\
examples:
  simplemem serve                                    the vault that is found from here
  simplemem serve --vault ~/notes
  simplemem serve --vault ~/notes --read-only        an agent that may look, not touch
  simplemem serve --profile simplemem                the eight tools of the original simplemem
  simplemem serve --profile server-memory            in the place of that graph memory server
  simplemem serve --profile self-improving           what an agent learns, and its graph
  simplemem serve --profile remembrances             statements that age, and documents
  simplemem serve --vault ~/notes --print-config claude-desktop
"""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="simplemem serve",
        description="Serve a vault to an AI agent: MCP over standard input and output.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    profiles = "which tools to show: default, simplemem, server-memory, memento, self-improving, hmlr or remembrances"
    clients = "claude-desktop, claude-code, cursor, vscode, zed, codex, windsurf"
    add("--vault", metavar="FOLDER", help="the folder of notes; without it one is found")
    add("--config", metavar="FILE", help="the settings file of a profile that has its own")
    add("--knowledge-base", metavar="FOLDER", help="a folder of Markdown beside the memory, with two tools of its own")
    add("--db", metavar="FILE", help="another place for the index than <vault>/.simplemem")
    add("--profile", metavar="NAME", default=os.environ.get("SIMPLEMEM_PROFILE"), help=profiles)
    add("--tools", metavar="NAMES", action="append", help="toolsets to add, or with a minus to take away")
    add("--read-only", action="store_true", default=None, help="refuse every write")
    add("--no-delete", action="store_true", default=None, help="offer no tool that deletes")
    add("--log-level", choices=("debug", "info", "warning", "error"), help="how much is said on stderr")
    add("--print-config", metavar="CLIENT", help=f"print the lines a client needs, and end: {clients}")
    return parser


def serve_main(argv: Sequence[str]) -> int:
    """Serve, or say why not. Exit codes as everywhere: 1 failed, 2 wrong usage."""
    asked = _parser().parse_args(list(argv))
    try:
        return _print_config(asked) if asked.print_config else _serve(asked)
    except SimplememError as error:
        from simplemem.cli.output import plain

        print(plain(f"simplemem: {error.message}" + (f"\n{error.hint}" if error.hint else "")), file=sys.stderr)
        return 1


def _serve(asked: argparse.Namespace) -> int:
    gc.disable()  # until all that stays for good is imported: a twentieth of the start
    from simplemem.config import load_settings
    from simplemem.faces.face import choose
    from simplemem.note.clock import now
    from simplemem.server.serve import Door, serve_stdio, take_over, take_standard_streams

    now()  # a clock that is no time is said at once
    profile, toolsets, tools = _profile(asked)
    root = _vault(asked, profile)
    flags: dict[str, Any] = {key: getattr(asked, key) for key in ("db", "read_only", "no_delete", "log_level")}
    flags["documents.knowledge_base"] = _knowledge_base(asked)
    settings = load_settings({**_own_settings(asked, profile), **flags}, vault=root)
    if base := settings.documents.knowledge_base:
        from simplemem.kinds.documents.base import base_of, located

        located(base, root)
        tools = choose(profile, f"{toolsets},knowledge-base")
    if settings.voyage_ai.api_key and "voyage" not in (settings.embed.provider, settings.rerank.provider):
        why = "no note is sent to a service unless embed.provider or rerank.provider is voyage"
        print(f"simplemem: voyage_ai.api_key is not used: {why} (SIMPLEMEM_EMBED_PROVIDER)", file=sys.stderr)
    tools = tuple(tool for tool in tools if not (settings.no_delete and tool.deletes))
    if sys.stdin is not None and sys.stdin.isatty():
        waits = "waits for an MCP client; `simplemem serve --print-config CLIENT` prints what it needs. Ctrl-C ends it."
        print(f"simplemem serves {root} and {waits}", file=sys.stderr, flush=True)
    wire = take_standard_streams()

    def opening() -> Any:
        from simplemem.store import open_store

        if not root.exists() and not settings.read_only:
            print(f"simplemem: a new vault: {root}", file=sys.stderr, flush=True)
        store = open_store(root, settings=settings, read_only=settings.read_only)
        if profile.file_env:
            take_over(profile, store, os.environ)
        if settings.documents.knowledge_base:
            base_of(store)
        return store

    return serve_stdio(profile, tools, root, Door(opening), wire, settings.log_level)


def _profile(asked: argparse.Namespace) -> tuple[Face, str, tuple[Tool, ...]]:
    """The profile that is asked for, the toolsets that are added to it or taken away, and the tools that makes."""
    from simplemem.faces.face import PROFILES, choose

    if (profile := PROFILES.get(asked.profile or "default")) is None:
        raise Invalid(f"There is no profile {asked.profile!r}.", hint="There are " + ", ".join(PROFILES) + ".")
    toolsets = ",".join(asked.tools or []) or os.environ.get("SIMPLEMEM_TOOLS", "")
    return profile, toolsets, choose(profile, toolsets)


def _knowledge_base(asked: argparse.Namespace) -> str | None:
    return asked.knowledge_base or os.environ.get("GOMEM_KB_PATH") or os.environ.get("GOMEM_KNOWLEDGE_BASE") or None


def _own_settings(asked: argparse.Namespace, profile: Face) -> dict[str, Any]:
    """What the files of another program say, for a profile that stands in its place."""
    if "original" in profile.toolsets:
        from simplemem.faces.original import original_settings

        return original_settings(Path.cwd(), os.environ, Path(asked.config).expanduser() if asked.config else None)
    if asked.config:
        hint = "Settings lie in <vault>/.simplemem/config.toml and ~/.config/simplemem/config.toml."
        raise Invalid(f"the profile {profile.name} has no settings file of its own", hint=hint)
    return {}


def _vault(asked: argparse.Namespace, profile: Face) -> Path:
    from simplemem.config import find_vault

    named = asked.vault is not None or os.environ.get("SIMPLEMEM_VAULT")
    return (None if named else profile.folder(os.environ)) or find_vault(asked.vault)


def _print_config(asked: argparse.Namespace) -> int:
    """The lines on stdout, with what the environment chooses here; what a person should know about them on stderr."""
    from simplemem.cli.clients import client_called, server_command

    client = client_called(asked.print_config)
    profile, toolsets, _ = _profile(asked)  # a mistake is told here rather than in the log of a client
    if asked.config:
        _own_settings(asked, profile)
    vault = _vault(asked, profile)
    asked.knowledge_base = _knowledge_base(asked)
    given = {key: file for key, file in vars(asked).items() if key in ("config", "db", "knowledge_base") and file}
    files = {key: os.path.abspath(os.path.expanduser(file)) for key, file in given.items()}
    chosen = {**vars(asked), **files, "tools": toolsets}
    more: list[str] = []
    for key in ("profile", "tools", "read_only", "no_delete", "knowledge_base", "config", "db", "log_level"):
        option, value = "--" + key.replace("_", "-"), chosen[key]
        if value:  # with `=`, as the name of a toolset may begin with a minus
            more += [option] if value is True else [f"{option}={value}"] if key == "tools" else [option, value]
    if isinstance(sys.stdout, io.TextIOWrapper) and not sys.stdout.isatty():
        sys.stdout.reconfigure(encoding="utf-8")
    place = client.here if client.here == "a terminal" else f"{client.here}, beside what stands there"
    print(f"For {client.title}, in {place}:", file=sys.stderr)
    print(client.lines(server_command(vault, more)), flush=True)
    print(f"Then: {client.then}.", file=sys.stderr)
    if not vault.is_dir():
        soon = "`simplemem init` makes it" if asked.read_only else "the server makes it when it starts"
        print(f"There is no folder {vault} yet; {soon}.", file=sys.stderr)
    return 0
