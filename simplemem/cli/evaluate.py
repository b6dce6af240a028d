"""The commands `eval init` and `eval run`: how well search finds the user's own notes.

No note is changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simplemem.cli.command import Answer, command, opened, progress_bar
from simplemem.cli.options import Group, VaultOption, option
from simplemem.cli.output import Lines, Part
from simplemem.errors import Invalid

if TYPE_CHECKING:
    from simplemem.settings.model import Settings

commands = typer.Typer()
_eval = typer.Typer(cls=Group, no_args_is_help=True, rich_markup_mode="rich")
_HELP = (
    "Measure how well search finds your notes.\n\n"
    "The questions come from your own notes. No model is needed."
)
commands.add_typer(_eval, name="eval", help=_HELP, rich_help_panel="Vault")
_DEFAULT_FILE = "By default `.simplemem/eval.json` in the vault."
# The measures of `evaluate.QUALITY`, with their columns.
_MEASURES = {"recall5": "recall@5", "recall10": "recall@10", "mrr": "MRR"}


@command(_eval)
def init(
    size: Annotated[int, option("--size", "N", "The maximum number of questions.", min=1)] = 200,
    seed: Annotated[
        int, option("--seed", "N", "The random seed. A different seed gives different questions.")
    ] = 1,
    out: Annotated[
        Path | None, option("--out", "FILE", f"The file to write. {_DEFAULT_FILE}")
    ] = None,
    vault: VaultOption = None,
) -> Answer:
    """Create questions from your notes: titles, headings and sentences.

    The same vault and seed give the same questions. You can edit the file.

    $ simplemem eval init --size 500 --seed 7 --out questions.json"""
    from simplemem.evaluate import FILE, make_questions, write_questions

    with opened(vault) as store:
        questions = make_questions(store, size, seed)
        if not questions.pairs:
            raise Invalid(
                f"no question could be created from the {questions.notes} notes in {store.root}",
                hint="The vault needs a few notes with distinct titles and sentences.",
            )
        file = out or store.extension.folder() / FILE
    write_questions(file, questions)

    question_count = len(questions.pairs)
    kinds = Counter(pair.kind for pair in questions.pairs)
    facts = {
        "file": str(file),
        "questions": question_count,
        "notes": questions.notes,
        **kinds,
    }
    by_kind = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    line = f"{question_count} questions ({by_kind}) about {questions.notes} notes: {file}"
    return Answer(facts, [[line]])


@command(_eval)
def run(
    compare: Annotated[
        list[str] | None, option("--compare", "SETTING=VALUE", "Compare with this setting.")
    ] = None,
    file: Annotated[
        Path | None, option("--file", "FILE", f"The file with the questions. {_DEFAULT_FILE}")
    ] = None,
    vault: VaultOption = None,
) -> Answer:
    """Run the questions, and print recall, MRR and time.

    Each figure has a 95 % interval. The questions run on a private copy of the vault.

    $ simplemem eval run --compare search.lexical_weight=0.5 --compare embed.provider=none
    $ simplemem eval run --json | jq --exit-status '.rows[0].mrr.value > 0.75'"""
    from simplemem import evaluate
    from simplemem.settings.find_vault import find_vault

    variants = _load_variants(find_vault(vault), compare or ())
    with opened(vault) as store, progress_bar() as progress:
        questions_file = file or store.root / ".simplemem" / evaluate.FILE
        questions = evaluate.read_questions(questions_file)
        figures = evaluate.run(store, questions, variants, progress=progress)

    rows = figures["rows"]
    question_count = rows[0]["questions"]
    head = f"{question_count} questions about {figures['notes']} notes: {figures['about']}"

    table: Lines = [["", *_MEASURES.values(), "CPU ms, median"]]
    for row in rows:
        table += _variant_lines(row)
    warnings = _warnings_of(figures)
    return Answer(figures, [[head]], table, warnings=warnings)


def _load_variants(root: Path, changes: Iterable[str]) -> dict[str, Settings]:
    """Return settings by label: "simplemem" for those of the vault `root`, then each variant.

    A change is a text `SETTING=VALUE`, applied alone to the vault's settings. Its label is the same
    without blanks around the two parts. Raises typer.BadParameter for one without an equals sign,
    Invalid for an unknown or illegal setting, and Unavailable if a settings file cannot be read.
    """
    from simplemem.settings.loading import load_settings

    variants = {"simplemem": load_settings({}, vault=root)}
    for change in changes:
        key, equals, value = change.partition("=")
        if not equals:
            raise typer.BadParameter(
                f"{change!r} is not SETTING=VALUE, such as search.lexical_weight=0.5"
            )
        key = key.strip()
        value = value.strip()
        variants[f"{key}={value}"] = load_settings({key: value}, vault=root)
    return variants


def _variant_lines(row: Mapping[str, Any]) -> Lines:
    """Return a line for a variant, and one for its difference from the first if it has one.

    `row` is one of the `rows` of `evaluate.run`.
    """
    name: Part = (row["name"], "cyan")
    cells = _figure_cells(row)
    lines: Lines = [[name, *cells, f"{row['ms_median']:.1f}"]]
    if "difference" in row:
        label: Part = ("  difference from the first", "dim")
        cells = _figure_cells(row["difference"], sign="+")
        lines.append([label, *cells, ""])
    return lines


def _figure_cells(figures: Mapping[str, Any], sign: str = "") -> list[str]:
    """Return the measures with their intervals, such as `0.812 [0.790, 0.834]`, in order.

    With the sign "+", positive figures get a sign too. `figures` are those of a variant or of its
    difference, by measure.
    """
    cells = []
    for key in _MEASURES:
        figure = figures[key]
        value = f"{figure['value']:{sign}.3f}"
        low = f"{figure['low']:{sign}.3f}"
        high = f"{figure['high']:{sign}.3f}"
        cells.append(f"{value} [{low}, {high}]")
    return cells


def _warnings_of(figures: Mapping[str, Any]) -> list[str]:
    """Return warnings about questions that were skipped, and about searches that were degraded.

    `figures` are those of `evaluate.run`.
    """
    warnings = []
    skipped = figures["left_out"]
    if skipped:
        warnings.append(f"{skipped} questions were skipped: their notes are missing or private")
    for row in figures["rows"]:
        if "degraded" in row:
            degraded = row["degraded"]
            warnings.append(f"{row['name']}, {degraded['questions']} questions: {degraded['why']}")
    return warnings
