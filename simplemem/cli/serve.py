"""The command serve, sent here before the rest of the command line is loaded. Standard output is the protocol's."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simplemem.errors import Invalid, NotFound, SimplememError, Unavailable

if TYPE_CHECKING:
    from simplemem.profiles.profile import Profile
    from simplemem.server.executor import StoreExecutor
    from simplemem.settings.model import Settings
    from simplemem.tools.tool import Tool
    from simplemem.web.standard_streams import StandardStreams

_EXAMPLES = """\
examples:
  simplemem serve                                    the nearest vault
  simplemem serve --vault ~/notes
  simplemem serve --vault ~/notes --read-only        agents can read, not write
  simplemem serve --profile simplemem                the eight tools of the original simplemem
  simplemem serve --profile server-memory            the tools of the MCP memory server
  simplemem serve --profile self-improving           lessons of an agent, and its graph
  simplemem serve --profile remembrances             facts and documents of users
  simplemem serve --vault ~/notes --http             MCP, REST and a web page at http://127.0.0.1:8080
  simplemem serve --vault work=~/work --vault home=~/notes --profile work=memento --http
"""


_LOG_LEVELS = ("debug", "info", "warning", "error")


class _ServeParser(argparse.ArgumentParser):
    """The parser of `serve`. Guards the option whose help names the profiles, which are listed only for help."""

    def name_profiles(self, option: argparse.Action) -> None:
        self._profile_option = option

    def format_help(self) -> str:
        from simplemem.profiles.registry import built_in_profiles

        names = ", ".join(built_in_profiles())
        self._profile_option.help = f"the profile of tools: {names}"
        return super().format_help()


def _parser() -> argparse.ArgumentParser:
    parser = _ServeParser(
        prog="simplemem serve",
        description="Serve a vault to AI agents: MCP over standard input and output, or over the network.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add(
        "--vault",
        metavar="FOLDER",
        action="append",
        help="the folder of notes; by default the nearest vault",
    )
    add(
        "--default-vault",
        metavar="FOLDER",
        help="the vault to serve if the current folder is not in a vault",
    )
    add("--config", metavar="FILE", help="the settings file of a profile that has its own")
    add(
        "--knowledge-base",
        metavar="FOLDER",
        help="another folder of Markdown files, which two additional tools search and add to",
    )
    add(
        "--db",
        "--dbpath",
        "--db-path",
        metavar="FILE",
        help="the file of the index, if not in <vault>/.simplemem",
    )
    parser.name_profiles(add("--profile", metavar="NAME", action="append", help=""))
    add(
        "--tools",
        metavar="NAMES",
        action="append",
        help="tool groups to add; a minus before a name removes the group",
    )
    add("--read-only", action="store_true", default=None, help="refuse every write")
    add("--no-delete", action="store_true", default=None, help="offer no tool that deletes")
    add(
        "--yes",
        "-y",
        action="store_true",
        help="if the vault does not exist, create it without asking",
    )
    add(
        "--log-level",
        choices=_LOG_LEVELS,
        help="how much is logged on stderr",
    )
    net = parser.add_argument_group("over the network (docs/network.md)").add_argument
    net(
        "--http",
        metavar="HOST:PORT",
        nargs="?",
        const="",
        help="serve over HTTP, by default at 127.0.0.1:8080",
    )
    net(
        "--sse",
        action="store_true",
        default=None,
        help="with --http: also serve the older SSE transport, at /sse",
    )
    net("--stateless", action="store_true", help="keep no sessions, for use behind a load balancer")
    net(
        "--allow-host",
        metavar="NAME",
        action="append",
        default=[],
        help="a host name that requests may use, besides those of a loopback address",
    )
    net("--behind-proxy", action="store_true", help="a proxy on this machine terminates TLS")
    trusted = (
        "the address or network of a proxy on another machine, whose X-Forwarded-For is trusted"
    )
    net("--trusted-proxy", metavar="ADDRESS", action="append", default=[], help=trusted)
    net("--tls-cert", metavar="FILE", type=Path, help="the certificate, for HTTPS")
    net("--tls-key", metavar="FILE", type=Path, help="the key of the certificate")
    rest = "serve HTTP at 127.0.0.1:8080 as well as standard input and output, as Remembrances does"
    net("--rest-api-serve", action="store_true", default=None, help=rest)
    return parser


def serve_main(argv: Sequence[str]) -> int:
    """Serve, or say why not. Exit codes as everywhere: 1 failed, 2 wrong usage."""
    asked = _parser().parse_args(list(argv))
    try:
        _part_by_vault(asked)
        _warn_of_unknown_variables()
        if _is_http(asked):
            return _serve_http(asked)
        if _is_rest_asked(asked):
            return _serve_both(asked)
        return _serve(asked)
    except SimplememError as error:
        from simplemem.cli.output import plain

        print(
            plain(f"simplemem: {error.message}" + (f"\n{error.hint}" if error.hint else "")),
            file=sys.stderr,
        )
        return 1


def _part_by_vault(asked: argparse.Namespace) -> None:
    asked.vaults, asked.profiles = _by_vault(asked.vault), _by_vault(asked.profile)
    asked.vault, asked.profile = (
        asked.vaults.get(""),
        asked.profiles.get("", os.environ.get("SIMPLEMEM_PROFILE")),
    )


def _by_vault(said: Sequence[str] | None) -> dict[str, str]:
    """What was said of each vault by its name (`work=~/notes`); of the only one by "". The last word counts."""
    return {
        name if is_named else "": value if is_named else name
        for name, is_named, value in map(_parted, said or ())
    }


def _parted(said: str) -> tuple[str, bool, str]:
    name, sign, value = said.partition("=")
    is_named = bool(sign) and name.isascii() and name.replace("-", "").replace("_", "").isalnum()
    return (name, True, value) if is_named else (said, False, "")


def _is_http(asked: argparse.Namespace) -> bool:
    """Whether the network alone is asked for, here or as the servers did whose places are taken."""
    return asked.http is not None or bool(asked.sse) or _is_set("GOMEM_SSE")


def _is_rest_asked(asked: argparse.Namespace) -> bool:
    """Whether HTTP is asked for beside standard streams, as Remembrances does it."""
    return bool(asked.rest_api_serve) or _is_set("GOMEM_REST_API_SERVE")


def _is_set(variable: str) -> bool:
    return os.environ.get(variable, "").lower() in ("1", "true", "yes")


def _serve_both(asked: argparse.Namespace) -> int:
    """Serve HTTP and, if a client is at the other end of standard input, MCP over standard streams.

    A second client starts a second server: where the address is taken, it is served over standard
    streams alone.
    """
    from simplemem.web.standard_streams import StandardStreams, has_client

    if not has_client():
        return _serve_http(asked)
    if asked.vaults.keys() - {""}:
        raise Invalid("several vaults can be served only over HTTP", hint="Add --http.")
    from simplemem.server.serve import take_standard_streams

    again = copy(asked)
    streams = StandardStreams(*take_standard_streams())
    try:
        return _serve_http(asked, streams)
    except Unavailable as error:
        print(
            f"simplemem: {error.message}; MCP is served over standard streams only",
            file=sys.stderr,
            flush=True,
        )
    return _serve(again, streams)


def _serve(asked: argparse.Namespace, streams: tuple[int, int] | None = None) -> int:
    gc.disable()  # until all that stays for good is imported: a twentieth of the start
    if asked.vaults.keys() - {""}:
        raise Invalid("several vaults can be served only over HTTP", hint="Add --http.")
    is_behind_proxy = asked.behind_proxy or asked.trusted_proxy
    if asked.allow_host or is_behind_proxy or asked.stateless or asked.tls_cert or asked.tls_key:
        message = "--allow-host, --behind-proxy, --trusted-proxy, --stateless, --tls-cert and --tls-key need HTTP"
        raise Invalid(message, hint="Add --http.")
    profile, tools, root, settings, opening = _chosen(asked, has_client=True)
    from simplemem.server.executor import StoreExecutor
    from simplemem.server.serve import serve_stdio, take_standard_streams

    if streams is None and sys.stdin is not None and sys.stdin.isatty():
        waits = (
            "waits for an MCP client; `simplemem connect CLIENT` configures one. Ctrl-C stops it."
        )
        print(f"simplemem serves {root} and {waits}", file=sys.stderr, flush=True)
    wire = streams or take_standard_streams()
    door = StoreExecutor(lambda: opening(settings), _answer_commands)
    return serve_stdio(profile, tools, root, door, wire, settings.log_level)


def _answer_commands(door: StoreExecutor) -> Callable[[], None]:
    from simplemem.cli.served import answer_commands  # beside the start, not on its way

    return answer_commands(door)


def _serve_http(asked: argparse.Namespace, streams: StandardStreams | None = None) -> int:
    has_client = streams is not None
    from simplemem.web.address import Address, parse_address
    from simplemem.web.serve import serve_http
    from simplemem.web.vault_view import MountedVault

    if unknown := asked.profiles.keys() - asked.vaults.keys() - {""}:
        raise Invalid(
            f"no vault called {min(unknown)!r}", hint="Name a vault with `--vault NAME=FOLDER`."
        )
    if "" in asked.vaults and len(asked.vaults) > 1:
        raise Invalid(
            "to serve several vaults, each needs a name",
            hint="Use `--vault work=~/work --vault home=~/notes`.",
        )
    vaults, usual = [], asked.profile
    for name in asked.vaults or [""]:
        asked.vault, asked.profile = asked.vaults.get(name), asked.profiles.get(name, usual)
        profile, tools, root, settings, opening = _chosen(asked, has_client=has_client)
        reading = partial(_settings, copy(asked), profile, root)
        vaults.append(
            MountedVault(name, root, profile, tools, settings, opening, reading, _answer_commands)
        )
    if len(vaults) > 1 and any(each.settings.db for each in vaults):
        hint = "Remove --db, the setting db, SIMPLEMEM_DB and GOMEM_DB_PATH."
        raise Invalid("the path of the index cannot be set for several vaults", hint=hint)
    port_text = os.environ.get("MCP_SERVER_PORT") or vaults[0].profile.port
    _, usual_port = parse_address(f":{port_text}", 0)
    host, port = parse_address(asked.http or "", usual_port)
    address = Address(
        host,
        port,
        tuple(asked.allow_host),
        asked.tls_cert,
        asked.tls_key,
        behind_proxy=asked.behind_proxy or bool(asked.trusted_proxy),
        trusted_proxies=tuple(asked.trusted_proxy),
    )
    sse = bool(asked.sse) or os.environ.get("GOMEM_SSE", "").lower() in ("1", "true", "yes")
    return serve_http(
        vaults,
        address,
        sse=sse,
        stateless=asked.stateless,
        log_level=vaults[0].settings.log_level,
        streams=streams,
    )


def _chosen(
    asked: argparse.Namespace, *, has_client: bool
) -> tuple[Profile, tuple[Tool, ...], Path, Settings, Callable[[Settings], Any]]:
    """The profile, its tools, the vault with its settings, and how its store is opened.

    Raises Invalid or NotFound if the vault cannot be served. `has_client`: an MCP client may have started the server.
    """
    from simplemem.note.dates import now
    from simplemem.profiles.registry import choose_tools
    from simplemem.server.serve import import_legacy_file

    now()  # a clock that is no time is said at once
    profile, toolsets, tools = _profile(asked)
    root = _vault(asked, profile)
    if root.exists() and not root.is_dir():
        hint = "A vault is a folder. Name the folder that contains the file."
        raise Invalid(f"{root} is a file, not a folder", hint=hint)

    settings = _settings(asked, profile, root)
    if not root.exists():
        _check_new_vault(
            root, is_read_only=settings.read_only, is_confirmed=asked.yes, has_client=has_client
        )
    if base := settings.documents.knowledge_base:
        from simplemem.features.documents.knowledge_base import knowledge_base_of, locate_folder

        locate_folder(base, root)
        tools = choose_tools(profile, f"{toolsets},knowledge-base")
    if settings.voyage_ai.api_key and "voyage" not in (
        settings.embed.provider,
        settings.rerank.provider,
    ):
        why = "to send notes to Voyage, set embed.provider (SIMPLEMEM_EMBED_PROVIDER) or rerank.provider to voyage"
        print(f"simplemem: voyage_ai.api_key is not used: {why}", file=sys.stderr)

    for variable, reason in profile.unread_variables.items():
        if os.environ.get(variable):
            print(f"simplemem: {variable} is ignored: {reason}", file=sys.stderr)

    def opening(settings: Settings) -> Any:
        from simplemem.store import open_store

        if not root.exists() and not settings.read_only:
            print(f"simplemem: creating the vault {root}", file=sys.stderr, flush=True)
        store = open_store(root, settings=settings, read_only=settings.read_only)
        if profile.file_env:
            import_legacy_file(profile, store, os.environ)
        if settings.documents.knowledge_base:
            knowledge_base_of(store)
        return store

    tools = tuple(tool for tool in tools if not (settings.no_delete and tool.deletes))
    return profile, tools, root, settings, opening


def _warn_of_unknown_variables() -> None:
    """Warn on stderr: a misspelt `SIMPLEMEM_READ_ONLY` would let agents write."""
    from simplemem.settings.loading import unknown_variables

    for warning in unknown_variables(os.environ):
        print(f"simplemem: {warning}", file=sys.stderr, flush=True)


def _check_new_vault(
    root: Path, *, is_read_only: bool, is_confirmed: bool, has_client: bool
) -> None:
    """Raise NotFound if the server must not create a vault that does not exist.

    At a terminal, the user is asked, and the vault is created. A client that starts the server has no terminal and
    must not fail: its first call creates the vault. A service must not serve an empty vault because of a typo.
    """
    from shlex import quote

    init = f"`simplemem init {quote(str(root))}` creates it"
    if is_read_only:
        raise NotFound(f"no vault at {root}", hint=f"{init}; a read-only server cannot create it.")
    if is_confirmed:
        return

    has_terminal = all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))
    if has_terminal:
        _confirm_new_vault(root)
    elif not has_client:
        raise NotFound(f"no vault at {root}", hint=f"{init}, and so does `--yes`.")


def _confirm_new_vault(root: Path) -> None:
    """Ask the user whether to create a vault, and create it. Raises NotFound if the answer is no."""
    print(f"There is no vault at {root}. Create it? [y/N]: ", end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline().strip().lower()
    if answer not in ("y", "yes"):
        raise NotFound(
            f"no vault at {root}",
            hint="Pass another folder with `--vault`, or create this one with `--yes`.",
        )
    (root / ".simplemem").mkdir(parents=True)


def _settings(asked: argparse.Namespace, profile: Profile, root: Path) -> Settings:
    from simplemem.settings.loading import load_settings

    flags: dict[str, Any] = {
        key: getattr(asked, key) for key in ("db", "read_only", "no_delete", "log_level")
    }
    flags["documents.knowledge_base"] = _knowledge_base(asked)
    for key, variable in profile.settings_env.items():
        flags[key] = flags.get(key) or _variable_of_setting(key, variable)
    return load_settings({**_own_settings(asked, profile), **flags}, vault=root)


def _variable_of_setting(key: str, variable: str) -> str | None:
    """Return what a variable of another server sets, or None. A log level that is none of ours is ignored."""
    value = os.environ.get(variable)
    if key != "log_level" or not value:
        return value or None
    level = value.lower()
    return level if level in _LOG_LEVELS else None


def _profile(asked: argparse.Namespace) -> tuple[Profile, str, tuple[Tool, ...]]:
    """The profile that is asked for, the toolsets that are added to it or taken away, and the tools that makes."""
    from simplemem.profiles.registry import DEFAULT_PROFILE, choose_tools, find_profile

    profile = find_profile(asked.profile or DEFAULT_PROFILE)
    toolsets = ",".join(asked.tools or []) or os.environ.get("SIMPLEMEM_TOOLS", "")
    return profile, toolsets, choose_tools(profile, toolsets)


def _knowledge_base(asked: argparse.Namespace) -> str | None:
    return (
        asked.knowledge_base
        or os.environ.get("GOMEM_KB_PATH")
        or os.environ.get("GOMEM_KNOWLEDGE_BASE")
        or None
    )


def _own_settings(asked: argparse.Namespace, profile: Profile) -> dict[str, Any]:
    """Return what the settings file of the replaced server says. Raises Invalid if it has none and one is named."""
    named = Path(asked.config).expanduser() if asked.config else None
    if named is not None and not profile.settings_reader:
        hint = "Leave out --config. `simplemem config --help` says which files contain settings."
        raise Invalid(f"the profile {profile.name} has no settings file of its own", hint=hint)
    return profile.read_settings_file(Path.cwd(), os.environ, named)


def _vault(asked: argparse.Namespace, profile: Profile) -> Path:
    from simplemem.settings.find_vault import find_vault

    named = asked.vault is not None or os.environ.get("SIMPLEMEM_VAULT")
    own_folder = None if named else profile.folder(os.environ)
    return own_folder or find_vault(asked.vault, default=asked.default_vault)


def for_a_client(argv: Sequence[str]) -> tuple[Path, list[str]]:
    """The vault and the options with which a client starts it: those given, and what the environment chooses here."""
    asked = _parser().parse_args(list(argv))
    _part_by_vault(asked)
    if _is_http(asked):
        message = "a client can start a server only over standard streams"
        raise Invalid(
            message, hint="To connect a client to an HTTP server, use `connect --http URL`."
        )
    profile, toolsets, _ = _profile(
        asked
    )  # a mistake is told here rather than in the log of a client
    if asked.config:
        _own_settings(asked, profile)
    asked.knowledge_base = _knowledge_base(asked)
    given = {
        key: file
        for key, file in vars(asked).items()
        if key in ("config", "db", "knowledge_base") and file
    }
    files = {key: os.path.abspath(os.path.expanduser(file)) for key, file in given.items()}
    chosen, more = {**vars(asked), **files, "tools": toolsets}, list[str]()
    chosen["rest_api_serve"] = _is_rest_asked(asked)
    names = (
        "profile",
        "tools",
        "read_only",
        "no_delete",
        "knowledge_base",
        "config",
        "db",
        "log_level",
    )
    for key in (*names, "rest_api_serve"):
        option, value = "--" + key.replace("_", "-"), chosen[key]
        if value:  # with `=`, as the name of a toolset may begin with a minus
            more += (
                [option]
                if value is True
                else [f"{option}={value}"]
                if key == "tools"
                else [option, value]
            )
    return _vault(asked, profile), more
