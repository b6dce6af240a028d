"""Measure how well search finds the evidence of a benchmark.

    python -m bench.retrieval longmemeval --data longmemeval_s.json
    python -m bench.retrieval locomo --data locomo10.json --whole
    python -m bench.retrieval beam --data BEAM/chats/100K
    python -m bench.retrieval languages --k 1 3
    python -m bench.retrieval precision --data FOLDER

Each question is asked of its own haystack or, with `--whole`, of the notes of all haystacks. hit@k
is the share of questions with any evidence among the first k notes, recall@k the mean share of the
evidence that is among them. Both come with the number of questions and of notes, per type of
question. `--server NAME` or `--server NAME=COMMAND` runs a server through its own MCP tools in the
same run: simplemem, markdown-vault-mcp, basic-memory, server-memory. docs/benchmarks.md explains
the figures. A progress bar appears on a terminal.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.retrieval.loaders import LANGUAGES_FILE, LOADERS, WrongFormat
from bench.retrieval.precision import load_precision, run_precision
from bench.retrieval.run import DEFAULT_KS, run
from bench.retrieval.servers import SERVERS, McpServer
from bench.retrieval.systems import MODES, System, simplemem_systems
from simplemem.cli.command import progress_bar

_PRECISION = "precision"


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the benchmark, run it, and print the figures.

    Raises:
        SystemExit: The arguments are wrong, or the data has another format.
    """
    options = _parse(arguments)
    try:
        if options.benchmark == _PRECISION:
            _print_precision(options)
        else:
            _print_retrieval(options)
    except (WrongFormat, OSError) as error:
        raise SystemExit(str(error)) from error


def _print_retrieval(options: argparse.Namespace) -> None:
    benchmark = LOADERS[options.benchmark](options.data)
    if options.questions:
        benchmark = benchmark.first(options.questions)

    systems: list[System] = []
    if not options.only_servers:
        systems += simplemem_systems(options.embedder, options.mode)
    systems += _installed_servers(options.server)

    with progress_bar() as progress:
        report = run(benchmark, systems, is_whole=options.whole, ks=options.k, progress=progress)
    if options.json:
        print(json.dumps(report.as_dict(), ensure_ascii=False, indent=2))
    else:
        print(report.as_table())


def _print_precision(options: argparse.Namespace) -> None:
    benchmark = load_precision(options.data)
    with progress_bar() as progress:
        report = run_precision(benchmark, progress)
    if options.json:
        print(json.dumps(report.as_dict(), ensure_ascii=False, indent=2))
    else:
        print(report.as_table())


def _installed_servers(requests: Sequence[str]) -> list[McpServer]:
    """Return the servers that `--server` names. Those whose program is missing are left out."""
    servers = []
    for request in requests:
        name, _, command = request.partition("=")
        if name not in SERVERS:
            raise SystemExit(f"no server is called {name!r}; there are {', '.join(SERVERS)}")
        server = SERVERS[name](command)
        if server.is_installed():
            servers.append(server)
        else:
            print(f"{name}: {server.command[0]} is not installed, left out", file=sys.stderr)
    return servers


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.retrieval",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("benchmark", choices=[*LOADERS, _PRECISION])
    parser.add_argument("--data", type=Path, help="file or folder of the benchmark")
    parser.add_argument("--whole", action="store_true", help="ask the notes of all haystacks")
    parser.add_argument(
        "--embedder",
        action="append",
        metavar="PROVIDER[:MODEL]",
        help="repeat it to compare embedders (default: wordllama)",
    )
    parser.add_argument(
        "--mode", action="append", choices=MODES, help="repeat it (default: all three)"
    )
    parser.add_argument(
        "--server", action="append", default=[], metavar="NAME[=COMMAND]", help="repeat it"
    )
    parser.add_argument("--only-servers", action="store_true", help="leave simplemem out")
    parser.add_argument("--k", type=int, nargs="+", default=DEFAULT_KS, help="ranks to count to")
    parser.add_argument("--questions", type=int, metavar="N", help="ask only the first N")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)

    options.embedder = options.embedder or ["wordllama"]
    options.mode = options.mode or list(MODES)
    options.k = sorted(set(options.k))
    if options.data is None:
        if options.benchmark != "languages":
            parser.error(f"{options.benchmark} needs --data")
        options.data = LANGUAGES_FILE
    return options


if __name__ == "__main__":
    main()
