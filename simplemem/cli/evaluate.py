"""The commands eval init, eval run and eval gate: how well search finds what is in one's own vault. No note is changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simplemem.cli.command import Answer, command
from simplemem.cli.opening import opened, progress_bar
from simplemem.cli.options import VaultOption, option
from simplemem.errors import Invalid, NotFound

if TYPE_CHECKING:
    from simplemem.cli.text import Part
    from simplemem.config import Settings
    from simplemem.store import EnhancedStore

_eval = typer.Typer(
    help="Measure how well search finds what is in your vault: questions from your own notes, no model needed.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)
commands = typer.Typer()
commands.add_typer(_eval, name="eval", rich_help_panel="Keep")
_SHOWN = {"recall5": "recall@5", "recall10": "recall@10", "mrr": "MRR"}

FileOption = Annotated[
    Path | None, option("--file", "FILE", "The questions. Without it: `.simplemem/eval.json` of the vault.")
]
LimitOption = Annotated[int, option("--limit", "N", "How many hits are looked at for MRR.", min=10, max=200)]


@command(_eval)
def init(
    size: Annotated[int, option("--size", "N", "How many questions at most.", min=1)] = 200,
    seed: Annotated[int, option("--seed", "N", "Another seed gives other questions.")] = 1,
    out: Annotated[
        Path | None, option("--out", "FILE", "Where to. Without it: `.simplemem/eval.json` of the vault.")
    ] = None,
    vault: VaultOption = None,
) -> Answer:
    """Make questions of your notes: titles, headings and sentences.

    Each comes with the notes that answer it, and with what is taken out of them while it is asked. The same
    vault and seed give the same questions. The file is yours to edit: take out what makes no sense, add your own.

    $ simplemem eval init --size 500 --seed 7 --out questions.json
    """
    from simplemem.evaluate import FILE, make_questions, write_questions

    with _asked(vault) as store:
        questions = make_questions(store, size, seed)
        if not questions.pairs:
            why = f"no question could be made of the {questions.notes} notes of {store.root}"
            raise Invalid(why, hint="It takes a few notes with titles and sentences of their own.")
        file = out or store.bench.folder() / FILE
    write_questions(file, questions)
    counts = dict(Counter(pair.kind for pair in questions.pairs))
    of_kinds = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    facts = {"file": str(file), "questions": len(questions.pairs), "notes": questions.notes, **counts}
    return Answer(facts, [[f"{len(questions.pairs)} questions ({of_kinds}) about {questions.notes} notes: {file}"]])


@command(_eval)
def run(
    compare: Annotated[
        list[str] | None, option("--compare", "SETTING=VALUE", "Ask with this setting as well. Again for more.")
    ] = None,
    file: FileOption = None,
    limit: LimitOption = 10,
    vault: VaultOption = None,
) -> Answer:
    """Ask the questions, and print what was found: recall, MRR and time.

    Each figure has its 95 % interval. A difference is taken question by question. Asked
    is a private copy of the vault; neither your notes nor your index are touched.

    $ simplemem eval run --compare search.lexical_weight=0.5 --compare embed.provider=none
    $ simplemem eval run --json | jq '.rows[0].mrr'
    """
    figures = _measured(vault, file, limit, compare or ())
    rows = figures["rows"]
    table: list[list[Part]] = [["", *_SHOWN.values(), "CPU ms, median"]]
    for row in rows:
        table.append([(row["name"], "cyan"), *(_interval(row[key]) for key in _SHOWN), f"{row['ms_median']:.1f}"])
        if change := row.get("difference"):
            table.append([("  beside the first", "dim"), *(_interval(change[key], "+") for key in _SHOWN), ""])
    about = f"{rows[0]['questions']} questions about {figures['notes']} notes: {figures['about']}"
    left_out = f"{figures['skipped']} questions about notes that are gone, {figures['private']} about private ones"
    warnings = [f"left out: {left_out}"] if figures["skipped"] or figures["private"] else []
    # What happened to a single question is the question's own: a phrase that no note holds.
    degraded = [(row["name"], each) for row in rows for each in row.get("degraded", ()) if each["questions"] > 1]
    warnings += [f"{name}, {each['questions']} questions: {each['why']}" for name, each in degraded]
    return Answer(figures, [[about]], table, warnings=warnings)


def _interval(figure: dict[str, float], sign: str = "") -> str:
    value, low, high = (f"{figure[each]:{sign}.3f}" for each in ("value", "low", "high"))
    return f"{value} [{low}, {high}]"


@command(_eval)
def gate(
    min_recall5: Annotated[float | None, option("--min-recall5", "X", "The least recall@5.", min=0, max=1)] = None,
    min_recall10: Annotated[float | None, option("--min-recall10", "X", "The least recall@10.", min=0, max=1)] = None,
    min_mrr: Annotated[float | None, option("--min-mrr", "X", "The least MRR.", min=0, max=1)] = None,
    file: FileOption = None,
    limit: LimitOption = 10,
    vault: VaultOption = None,
) -> Answer:
    """Ask the questions, and end with 1 when search finds less than it should. For CI.

    $ simplemem eval gate --min-recall5 0.85 --min-mrr 0.75
    """
    least = {"recall5": min_recall5, "recall10": min_recall10, "mrr": min_mrr}
    wanted = {name: value for name, value in least.items() if value is not None}
    if not wanted:
        raise typer.BadParameter("say what is to be reached: --min-recall5, --min-recall10 or --min-mrr")
    row = _measured(vault, file, limit, ())["rows"][0]
    figures = {name: row[name]["value"] for name in _SHOWN}
    missed = [name for name, value in wanted.items() if figures[name] < value]
    lines: list[list[Part]] = [
        [(f"{_SHOWN[name]} is {figures[name]:.3f}, wanted {value:g}", "red" if name in missed else "green")]
        for name, value in wanted.items()
    ]
    facts = {"ok": not missed, "questions": row["questions"], **figures, "least": wanted, "missed": missed}
    return Answer(facts, lines, failed=bool(missed))


def _measured(vault: Path | None, file: Path | None, limit: int, compare: Sequence[str]) -> dict[str, Any]:
    from simplemem.evaluate import FILE, read_questions, run

    variants = _variants(vault, compare)
    with _asked(vault) as store, progress_bar() as progress:
        questions = read_questions(file or store.root / ".simplemem" / FILE)
        return run(store, questions, variants, limit=limit, progress=progress)


def _asked(vault: Path | None) -> AbstractContextManager[EnhancedStore]:
    """The store of a vault, which is not made for this."""
    from simplemem.config import find_vault

    root = find_vault(vault)
    if not root.is_dir():
        raise NotFound(f"there is no vault at {root}", hint="`simplemem init PATH` makes one.")
    return opened(root)


def _variants(vault: Path | None, compare: Sequence[str]) -> dict[str, Settings]:
    """The settings in force, and those with each of the compared ones."""
    from simplemem.config import fields, find_vault, load_settings

    root = find_vault(vault)
    variants = {"simplemem": load_settings({}, vault=root)}
    # A key must not stand in what is printed; the environment or a file has it.
    sections = ("search.", "embed.", "index.", "rerank.")
    comparable = [key for key, _ in fields() if key.startswith(sections) and not key.endswith("api_key")]
    for each in compare:
        key, equals, value = (part.strip() for part in each.partition("="))
        if not equals:
            raise typer.BadParameter(f"{each!r} is no SETTING=VALUE, like search.lexical_weight=0.5")
        if key not in comparable:
            near = get_close_matches(key, comparable, 1, 0.5)
            hint = f"Did you mean {near[0]}?" if near else f"Such are: {', '.join(comparable)}."
            raise Invalid(f"{key} is no setting that can be compared", hint=hint)
        variants[f"{key}={value}"] = load_settings({key: value}, vault=root)
    return variants
