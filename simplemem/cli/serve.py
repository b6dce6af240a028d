"""The command serve: read its options and start the server. It loads neither Typer nor anything else that
a start would pay for.

`simplemem serve` is sent here before the rest of the command line is imported; standard output belongs to
the protocol from then on.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simplemem.errors import SimplememError

if TYPE_CHECKING:
    from simplemem.tools.toolsets import Profile

_EXAMPLES = """\
examples:
  simplemem serve                                    the vault that is found from here
  simplemem serve --vault ~/notes
  simplemem serve --vault ~/notes --read-only        an agent that may look, not touch
  simplemem serve --profile simplemem                the eight tools of the original simplemem
  simplemem serve --vault ~/notes --print-config claude-desktop
"""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="simplemem serve",
        description="Serve a vault to an AI agent: MCP over standard input and output.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--vault", metavar="FOLDER", help="the folder of notes; without it one is found")
    parser.add_argument("--db", metavar="FILE", help="another place for the index than <vault>/.simplemem")
    parser.add_argument(
        "--profile", metavar="NAME", help="which tools to show: default, or simplemem for the original's"
    )
    parser.add_argument(
        "--tools", metavar="NAMES", action="append", help="toolsets to add, or with a minus to take away"
    )
    parser.add_argument("--read-only", action="store_true", default=None, help="refuse every write")
    parser.add_argument("--log-level", choices=("debug", "info", "warning", "error"), help="how much is said on stderr")
    parser.add_argument("--print-config", metavar="CLIENT", help="print the lines a client needs, and end")
    return parser


def serve_main(argv: Sequence[str]) -> int:
    """Serve, or say why not. Exit codes as everywhere: 1 failed, 2 wrong usage."""
    asked = _parser().parse_args(list(argv))
    try:
        if asked.print_config:
            return _print_config(asked)
        return _serve(asked)
    except SimplememError as error:
        print(f"simplemem: {error.message}" + (f"\n{error.hint}" if error.hint else ""), file=sys.stderr)
        return 1


def _serve(asked: argparse.Namespace) -> int:
    gc.disable()  # until all that stays for good is imported
    from simplemem.config import load_settings
    from simplemem.server.standard_streams import take_standard_streams
    from simplemem.tools.toolsets import choose, profile_called, split_names

    profile = profile_called(asked.profile or os.environ.get("SIMPLEMEM_PROFILE"))
    tools = choose(profile, split_names(asked.tools or os.environ.get("SIMPLEMEM_TOOLS")))
    root = _vault(asked, profile)
    flags: dict[str, Any] = {"db": asked.db, "read_only": asked.read_only, "log_level": asked.log_level}
    settings = load_settings({**profile.settings_for(Path.cwd(), os.environ), **flags}, vault=root)
    wire = take_standard_streams()

    def opening() -> Any:
        from simplemem.store import open_store

        return open_store(root, settings=settings, read_only=settings.read_only)

    from simplemem.server.serve import serve_stdio

    return serve_stdio(tools, profile.instructions, root, opening, wire, log_level=settings.log_level)


def _vault(asked: argparse.Namespace, profile: Profile) -> Path:
    from simplemem.config import find_vault

    if asked.vault is None and profile.vault and not os.environ.get("SIMPLEMEM_VAULT"):
        return Path.cwd() / profile.vault
    return find_vault(asked.vault)


def _print_config(asked: argparse.Namespace) -> int:
    from simplemem.cli.clients import client_called, server_command
    from simplemem.tools.toolsets import profile_called

    client = client_called(asked.print_config)
    profile = profile_called(asked.profile)
    more = ["--profile", asked.profile] if asked.profile else []
    more += [f"--tools={names}" for names in asked.tools or ()]
    more += ["--read-only"] if asked.read_only else []
    more += ["--db", os.path.abspath(os.path.expanduser(asked.db))] if asked.db else []
    print(f"For {client.title}, in {client.where}:", file=sys.stderr)
    print(client.lines(server_command(_vault(asked, profile), more)))
    return 0
