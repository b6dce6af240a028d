"""The commands eval init and eval run: how well search finds what is in one's own vault.

No note is changed.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from simplemem.cli.command import Answer, command, opened, progress_bar
from simplemem.cli.options import Group, VaultOption, option
from simplemem.cli.output import Lines
from simplemem.errors import Invalid

commands = typer.Typer()
_eval = typer.Typer(cls=Group, no_args_is_help=True, rich_markup_mode="rich")
_HELP = "Measure how well search finds your notes.\n\nThe questions come from your own notes. No model is needed."
commands.add_typer(_eval, name="eval", help=_HELP, rich_help_panel="Vault")
_BESIDE = "By default `.simplemem/eval.json` in the vault."
_SHOWN = {"recall5": "recall@5", "recall10": "recall@10", "mrr": "MRR"}


@command(_eval)
def init(
    size: Annotated[int, option("--size", "N", "The maximum number of questions.", min=1)] = 200,
    seed: Annotated[
        int, option("--seed", "N", "The random seed. A different seed gives different questions.")
    ] = 1,
    out: Annotated[Path | None, option("--out", "FILE", f"The file to write. {_BESIDE}")] = None,
    vault: VaultOption = None,
) -> Answer:
    """Create questions from your notes: titles, headings and sentences.

    The same vault and seed give the same questions. You can edit the file.

    $ simplemem eval init --size 500 --seed 7 --out questions.json"""
    from simplemem.evaluate import FILE, make_questions, write_questions

    with opened(vault) as store:
        questions = make_questions(store, size, seed)
        if not questions.pairs:
            why = f"no question could be created from the {questions.notes} notes in {store.root}"
            raise Invalid(
                why, hint="The vault needs a few notes with distinct titles and sentences."
            )
        file = out or store.extension.folder() / FILE
    write_questions(file, questions)
    counts = dict(Counter(pair.kind for pair in questions.pairs))
    of_kinds = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    facts = {
        "file": str(file),
        "questions": len(questions.pairs),
        "notes": questions.notes,
        **counts,
    }
    return Answer(
        facts,
        [[f"{len(questions.pairs)} questions ({of_kinds}) about {questions.notes} notes: {file}"]],
    )


@command(_eval)
def run(
    compare: Annotated[
        list[str] | None, option("--compare", "SETTING=VALUE", "Compare with this setting.")
    ] = None,
    file: Annotated[
        Path | None, option("--file", "FILE", f"The file with the questions. {_BESIDE}")
    ] = None,
    vault: VaultOption = None,
) -> Answer:
    """Run the questions, and print recall, MRR and time.

    Each figure has a 95 % interval. The questions run on a private copy of the vault.

    $ simplemem eval run --compare search.lexical_weight=0.5 --compare embed.provider=none
    $ simplemem eval run --json | jq --exit-status '.rows[0].mrr.value > 0.75'"""
    from simplemem import evaluate
    from simplemem.settings.find_vault import find_vault
    from simplemem.settings.loading import load_settings

    root = find_vault(vault)
    variants = {"simplemem": load_settings({}, vault=root)}
    for each in compare or ():
        key, equals, value = (part.strip() for part in each.partition("="))
        if not equals:
            raise typer.BadParameter(
                f"{each!r} is not SETTING=VALUE, such as search.lexical_weight=0.5"
            )
        variants[f"{key}={value}"] = load_settings({key: value}, vault=root)
    with opened(vault) as store, progress_bar() as progress:
        questions = evaluate.read_questions(file or store.root / ".simplemem" / evaluate.FILE)
        figures = evaluate.run(store, questions, variants, progress=progress)
    rows, left_out = figures["rows"], figures["left_out"]
    table: Lines = [["", *_SHOWN.values(), "CPU ms, median"]]
    warnings = (
        [f"{left_out} questions were skipped: their notes are missing or private"]
        if left_out
        else []
    )
    for row in rows:
        shown = [((row["name"], "cyan"), row, "", f"{row['ms_median']:.1f}")]
        shown += (
            [(("  difference from the first", "dim"), row["difference"], "+", "")]
            if "difference" in row
            else []
        )
        for head, of, sign, time in shown:
            figures_of = [
                [f"{of[key][each]:{sign}.3f}" for each in ("value", "low", "high")]
                for key in _SHOWN
            ]
            table.append(
                [head, *(f"{value} [{low}, {high}]" for value, low, high in figures_of), time]
            )
        if degraded := row.get("degraded"):
            warnings.append(f"{row['name']}, {degraded['questions']} questions: {degraded['why']}")
    about = f"{rows[0]['questions']} questions about {figures['notes']} notes: {figures['about']}"
    return Answer(figures, [[about]], table, warnings=warnings)
