"""How facts and conversations in people's own words are routed, remembered and found.

    python bench/natural.py [--half development|held_out | --folder FOLDER]
        [--by rules|agent|model] [--json]

Plays the natural material of `tests/data/natural` through the tools of the profiles hmlr,
remembrances and supermemento, over real stores, and prints a row for each figure. The classes
`ChatFigures`, `StatementFigures` and `ConstraintFigures` define the figures.

- `--by rules` (default): a client passes the texts word for word, and no model is configured.
- `--by agent`: a client also passes what it understood, as the annotation has it: topics at each
  change of subject, and facts, constraints and preferences if the tools take them. It does not
  store statements that are not worth it.
- `--by model`: a client passes the texts, and a language model is configured that answers
  perfectly (`bench/perfect_model.py`). `--route` is the setting `llm.route`: whether the model is
  asked for the topic of each message (always), or, as by default, only if the rules are not
  certain (close).

`--folder` measures other material in the files that `tests/data/natural/README.md` describes.

The half `held_out` is for the end of an issue. Whoever changes rules must not look at it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.chat_server import ChatServer
from bench.natural_agent import agent_constraint, agent_speaker
from bench.natural_chats import ChatFigures, measure_chats
from bench.natural_constraints import ConstraintFigures, measure_constraints
from bench.natural_figures import Count
from bench.natural_material import HALVES, Material, read_folder, read_material
from bench.natural_statements import StatementFigures, measure_statements
from bench.perfect_model import PerfectModel
from bench.tool_caller import own_clock

By = Literal["rules", "agent", "model"]
WAYS: Final[tuple[By, ...]] = ("rules", "agent", "model")


class Figures(NamedTuple):
    """All figures of one half, for one way of storing it."""

    chats: ChatFigures
    statements: StatementFigures
    constraints: ConstraintFigures


@dataclass(frozen=True)
class Row:
    """A row of the table: what was counted, and its goal by rules and with a perfect model."""

    title: str
    count: Count
    goals: dict[By, str]


def main() -> None:
    """Print the table, or JSON, of one half for one way of storing it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--half", choices=HALVES, default="development")
    source.add_argument("--folder", type=Path, help="other material, in the same files")
    parser.add_argument("--by", choices=WAYS, default="rules")
    parser.add_argument("--route", choices=("always", "close", "off"), default="close")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()

    with own_clock():
        material = read_folder(options.folder) if options.folder else read_material(options.half)
        figures = measure(material, options.by, options.route)
    rows = list(rows_of(figures))
    if options.json:
        print(json.dumps(_as_json(rows), indent=2))
    else:
        print(f"{options.folder or options.half}, by {options.by}: {describe(material)}\n")
        print_table(rows, options.by)


def measure(material: Material, by: By, route: str = "always") -> Figures:
    """Store the material in one way, and return all figures. `route` is for a model."""
    if by == "agent":
        return Figures(
            measure_chats(material.chats, material.questions, names_topics=True),
            measure_statements(material.people, material.questions, speaker=agent_speaker),
            measure_constraints(material.constraints, arguments_of=agent_constraint),
        )
    if by == "model":
        return measure_with_model(material, route)
    return Figures(
        measure_chats(material.chats, material.questions),
        measure_statements(material.people, material.questions),
        measure_constraints(material.constraints),
    )


def measure_with_model(material: Material, route: str) -> Figures:
    """Store the material with a perfect model beside the rules, and return all figures."""
    model = PerfectModel(material)
    with ChatServer(model.answer) as server:
        settings = server.settings(route)
        figures = Figures(
            measure_chats(material.chats, material.questions, settings=settings, observer=model),
            measure_statements(
                material.people, material.questions, settings=settings, observer=model
            ),
            measure_constraints(material.constraints, settings=settings),
        )
        print(f"the model was asked {len(server.completions)} times", file=sys.stderr)
    return figures


def rows_of(figures: Figures) -> Iterator[Row]:
    """Yield the rows of the table, those with goals first."""
    chats, statements, constraints = figures

    yield Row("turns routed right", chats.right, _goals("0.70", "0.90", agent="0.97"))
    yield Row("changes of subject noticed", chats.changes, _goals("0.55", "0.85"))
    yield Row("outdated facts superseded or disputed", statements.outdated, _goals("0.70", "0.95"))
    yield Row("wrongly superseded memories", statements.wrong, _goals("0", "0"))
    yield Row("greetings, questions, sarcasm stored", statements.noise, _goals("≤ 0.20", "≤ 0.05"))
    yield Row("temporary facts ended in time", statements.ended, _goals("0.75", "0.95"))
    yield Row("constraints recognised", constraints.constraints, _goals("0.65", "0.95"))
    yield Row("stale value as current", statements.stale + chats.stale, _goals("0", "0"))
    yield Row("turn that answers is in the retrieval", chats.found, _goals("0.95", ""))

    yield Row("  as talk_quality.py counts right turns", chats.right_decisions, {})
    yield Row("  stayed in the topic without a change", chats.kept, {})
    yield Row("  all turns with evidence in the retrieval", chats.found_all, {})
    yield Row("  turns returned per question", chats.turns_returned, {})
    yield Row("  statements with facts stored", statements.kept, {})
    yield Row("  outdated facts that were never stored", statements.never_stored, {})
    yield Row("  valid facts lost with superseded memories", statements.lost, {})
    yield Row("  valid memories disputed", statements.doubted, {})
    yield Row("  lasting facts ended by time", statements.ended_wrongly, {})
    yield Row("  facts gone that were to be forgotten", statements.forgotten, {})
    yield Row("  stale memory among the hits without a mark", statements.stale_anywhere, {})
    yield Row("  memory that answers is in the retrieval", statements.found, {})
    yield Row("  preferences recognised", constraints.preferences, {})
    yield Row("  no constraint, but stored as one", constraints.neither, {})
    yield Row("  withdrawn constraints gone or disputed", constraints.withdrawn, {})


def _goals(rules: str, model: str, agent: str = "") -> dict[By, str]:
    return {"rules": rules, "model": model, "agent": agent}


def describe(material: Material) -> str:
    """Return how much material there is, in words."""
    statements = sum(len(person.statements) for person in material.people)
    return (
        f"{len(material.chats)} chats, {statements} statements of {len(material.people)} people, "
        f"{len(material.constraints)} constraints, {len(material.questions)} questions"
    )


def print_table(rows: list[Row], by: By) -> None:
    """Print the rows with their shares and the goals for one way of storing."""
    print(f"{'':46}{'':>11}{'share':>8}{'goal':>8}")
    for row in rows:
        goal = row.goals.get(by, "")
        print(f"{row.title:46}{row.count!s:>11}{row.count.share:8.2f}{goal:>8}")


def _as_json(rows: list[Row]) -> dict[str, dict[str, float]]:
    figures = {}
    for row in rows:
        figures[row.title.strip()] = {
            "number": row.count.number,
            "total": row.count.total,
            "share": round(row.count.share, 4),
        }
    return figures


if __name__ == "__main__":
    main()
