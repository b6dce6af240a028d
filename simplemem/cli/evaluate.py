"""The commands eval init, eval run and eval gate: how well search finds what is in one's own vault. No note is changed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simplemem.cli.options import JsonOption, VaultOption, command
from simplemem.errors import Invalid, NotFound

if TYPE_CHECKING:
    from simplemem.config import Settings
    from simplemem.evaluate.pairs import Questions
    from simplemem.evaluate.scratch import Read
    from simplemem.index.reconcile import Progress
    from simplemem.store import EnhancedStore

_eval = typer.Typer(
    help="Measure how well search finds what is in your vault: questions from your own notes, no model needed.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)
_PANEL = "Measure"
_BASE = "simplemem"
_SECTIONS = ("search.", "embed.", "index.", "rerank.")
_NEXT_SETTING = re.compile(r",(?=[a-z_]+\.[a-z_]+=)")

FileOption = Annotated[
    Path | None,
    typer.Option("--file", metavar="FILE", help="The questions. Without it: `.simplemem/eval.json` of the vault."),
]
LocomoOption = Annotated[
    Path | None,
    typer.Option("--locomo", metavar="FILE", help="Ask LoCoMo-shaped JSON, in a vault of its own, instead of yours."),
]
YesOption = Annotated[
    bool,
    typer.Option("--yes", "-y", help="Send as many texts as it takes to a remote embedder without asking."),
]
LimitOption = Annotated[
    int,
    typer.Option("--limit", min=10, max=200, metavar="N", help="How many hits are looked at for MRR."),
]


@command(
    _eval,
    _PANEL,
    name="init",
    examples=["simplemem eval init", "simplemem eval init --size 500 --seed 7 --out questions.json"],
)
def init(
    size: Annotated[int, typer.Option("--size", min=1, metavar="N", help="How many questions at most.")] = 200,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Another seed gives other questions.")] = 1,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Where to. Without it: `.simplemem/eval.json` of the vault."),
    ] = None,
    vault: VaultOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make questions of your notes: titles, aliases, headings, links, descriptions and sentences.

    Each comes with the notes that answer it, and with what is taken out of them while it is asked. The same
    vault and seed give the same questions. The file is yours to edit: take out what makes no sense, add your own.
    """
    from simplemem.cli import output
    from simplemem.cli.opening import progress_bar
    from simplemem.evaluate.pairs import FILE, in_order, write_questions
    from simplemem.evaluate.sampling import sample
    from simplemem.evaluate.scratch import make_sidecar

    with progress_bar() as progress:
        read = _read(vault, progress)
        questions = sample(read.sources, list(read.times), size, seed, progress)
    if not questions.pairs:
        raise Invalid(
            f"no question could be made of the {len(read.sources)} notes of {read.root}",
            hint="It takes a few notes with titles and sentences of their own.",
        )
    file = out or make_sidecar(read.root) / FILE
    write_questions(file, questions)
    counted = Counter(pair.kind for pair in questions.pairs)
    counts = {kind: counted[kind] for kind in in_order(counted)}
    if as_json:
        output.print_json({"file": str(file), "questions": len(questions.pairs), "notes": questions.notes, **counts})
        return
    output.say((f"{len(questions.pairs)} questions", "green"), f" about {questions.notes} notes: {file}")
    output.say(("  " + ", ".join(f"{count} {kind}" for kind, count in counts.items()), "dim"))


@command(
    _eval,
    _PANEL,
    name="run",
    examples=[
        "simplemem eval run",
        "simplemem eval run --compare search.lexical_weight=0.5 --compare embed.provider=none",
        "simplemem eval run --json | jq '.rows[0].mrr'",
        "simplemem eval run --locomo locomo.json.gz --plot figures.png",
    ],
)
def run(
    compare: Annotated[
        list[str] | None,
        typer.Option(
            "--compare",
            metavar="SETTING=VALUE",
            help="Ask with this setting as well; with several, by commas. Again for more.",
        ),
    ] = None,
    file: FileOption = None,
    locomo: LocomoOption = None,
    limit: LimitOption = 10,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE.png", help="Draw a chart too (needs the extra `plot`)."),
    ] = None,
    yes: YesOption = False,
    vault: VaultOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ask the questions, and print what was found: recall, MRR, time and tokens, beside plain grep.

    Each figure has its 95 % interval, by resampling the questions. A difference is taken question by question. Asked
    is a private copy of the vault; neither your notes nor your index are touched.
    """
    from simplemem.cli import evaluate_output, output

    variants = _variants(vault, compare or ())
    if plot is not None:
        from simplemem.evaluate.chart import must_be_able_to_draw

        must_be_able_to_draw(plot)
    shown = _measured(vault, file, locomo, variants, limit, grep=True, yes=yes)
    if plot is not None:
        from simplemem.evaluate.chart import draw

        draw(shown, plot)
    if as_json:
        output.print_json(shown)
    else:
        evaluate_output.print_report(shown)


@command(
    _eval,
    _PANEL,
    name="gate",
    examples=["simplemem eval gate --min-recall5 0.85 --min-mrr 0.75"],
)
def gate(
    min_recall5: Annotated[
        float | None, typer.Option("--min-recall5", min=0, max=1, metavar="X", help="The least recall@5.")
    ] = None,
    min_recall10: Annotated[
        float | None, typer.Option("--min-recall10", min=0, max=1, metavar="X", help="The least recall@10.")
    ] = None,
    min_mrr: Annotated[
        float | None, typer.Option("--min-mrr", min=0, max=1, metavar="X", help="The least MRR.")
    ] = None,
    file: FileOption = None,
    locomo: LocomoOption = None,
    limit: LimitOption = 10,
    yes: YesOption = False,
    vault: VaultOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ask the questions, and end with 1 when search finds less than it should. For CI."""
    from simplemem.cli import output

    least = {"recall5": min_recall5, "recall10": min_recall10, "mrr": min_mrr}
    wanted = {name: value for name, value in least.items() if value is not None}
    if not wanted:
        raise typer.BadParameter("say what is to be reached: --min-recall5, --min-recall10 or --min-mrr")
    row = _measured(vault, file, locomo, _variants(vault, ()), limit, grep=False, yes=yes)["rows"][0]
    found = {name: row[name]["value"] for name in least}
    missed = [name for name, value in wanted.items() if found[name] < value]
    if as_json:
        output.print_json({"ok": not missed, "questions": row["questions"], **found, "least": wanted, "missed": missed})
    else:
        for name, value in wanted.items():
            low, high = row[name]["low"], row[name]["high"]
            said = f"{_NAMES[name]} is {found[name]:.3f} ({low:.3f} to {high:.3f})"
            fails = name in missed
            output.say((f"{said}, {'below' if fails else 'at least'} {value:g}", "red" if fails else "green"))
    if missed:
        raise typer.Exit(1)


_NAMES = {"recall5": "recall@5", "recall10": "recall@10", "mrr": "MRR"}


def _measured(
    vault: Path | None,
    file: Path | None,
    locomo: Path | None,
    variants: Mapping[str, Settings],
    limit: int,
    *,
    grep: bool,
    yes: bool,
) -> dict[str, Any]:
    """The figures, and what they are about. Without `yes` a person is asked before much is sent away."""
    from simplemem.cli.opening import progress_bar
    from simplemem.cli.vault import ask_for_much
    from simplemem.evaluate.asking import measure
    from simplemem.evaluate.figures import report

    with progress_bar() as progress, _asked(vault, file, locomo, progress) as (read, questions, told):

        def agree(store: EnhancedStore) -> None:
            if not yes:
                progress.stop()
                ask_for_much(store.estimate(), store.settings.embed.max_tokens_unasked)

        measured = measure(
            read, questions.pairs, variants, _as_the_tool_shows, limit=limit, grep=grep, progress=progress, agree=agree
        )
    if not any(measured.rows.values()):
        raise Invalid(
            "none of the questions is about notes that are in the vault",
            hint="`simplemem eval init` makes new ones.",
        )
    head = {"about": told, "notes": len(read.sources), "seed": questions.seed, "limit": limit}
    return head | report(measured, _BASE)


@contextmanager
def _asked(
    vault: Path | None, file: Path | None, locomo: Path | None, progress: Progress
) -> Iterator[tuple[Read, Questions, str]]:
    """The notes that are asked, the questions, and what they are called."""
    from simplemem.evaluate.locomo import write_locomo
    from simplemem.evaluate.pairs import FILE, read_questions
    from simplemem.evaluate.scratch import read_vault, temporary_folder

    if locomo is None:
        root = _root(vault)
        questions = read_questions(file or root / ".simplemem" / FILE)
        yield _read(vault, progress), questions, str(root)
        return
    if file is not None:
        raise typer.BadParameter("either --file or --locomo, not both")
    with temporary_folder() as folder:
        room = Path(folder) / "vault"
        questions = write_locomo(locomo, room)
        yield read_vault(room, _settings(vault, {}), progress), questions, str(locomo)


def _root(vault: Path | None) -> Path:
    from simplemem.config import find_vault

    root = find_vault(vault)
    if not root.is_dir():
        raise NotFound(f"there is no vault at {root}", hint="`simplemem init PATH` makes one.")
    return root


def _read(vault: Path | None, progress: Progress) -> Read:
    from simplemem.evaluate.scratch import read_vault

    return read_vault(_root(vault), _settings(vault, {}), progress)


def _settings(vault: Path | None, changed: Mapping[str, str]) -> Settings:
    from simplemem.config import find_vault, load_settings

    return load_settings(changed, vault=find_vault(vault))


def _variants(vault: Path | None, compare: Sequence[str]) -> dict[str, Settings]:
    """The settings in force, and those with each of the compared ones."""
    from difflib import get_close_matches

    from simplemem.config import known_keys

    variants = {_BASE: _settings(vault, {})}
    # A key must not stand in what is printed; the environment or a file has it.
    can_be = [key for key in known_keys() if key.startswith(_SECTIONS) and not key.endswith("api_key")]
    for each in compare:
        changed = {}
        for one in _NEXT_SETTING.split(each):
            key, equals, value = (part.strip() for part in one.partition("="))
            if not equals:
                raise typer.BadParameter(f"{one!r} is no SETTING=VALUE, like search.lexical_weight=0.5")
            if key not in can_be:
                near = get_close_matches(key, can_be, 1, 0.5)
                raise Invalid(
                    f"{key} is no setting that can be compared",
                    hint=f"Did you mean {near[0]}?" if near else f"Such are: {', '.join(can_be)}.",
                )
            changed[key] = value
        variants[",".join(f"{key}={value}" for key, value in changed.items())] = _settings(vault, changed)
    return variants


def _as_the_tool_shows(store: EnhancedStore, question: str) -> str:
    """What an agent reads of five hits."""
    from simplemem.faces.core_search import SEARCH, SearchArguments
    from simplemem.faces.tool import Call

    asked = SearchArguments(query=question, limit=5)
    return SEARCH.run(Call(store, "eval", SEARCH.name), asked).text


commands = typer.Typer()
commands.add_typer(_eval, name="eval", rich_help_panel="Keep")
