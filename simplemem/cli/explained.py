"""How `search --explain` and `search --why` look to a person: a short table, and sentences where a number is not enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from simplemem.cli import output

if TYPE_CHECKING:
    from rich.text import Text

    from simplemem.memory import Found

_PARTS = ("words", "phrases", "meaning", "covered", "dated")
_LEGS = {
    "note": "by note",
    "block": "by block",
    "phrase": "by phrases",
    "passage_meaning": "near passage",
    "block_meaning": "near block",
}


def print_explained(found: Found) -> None:
    """The numbers of every hit in a table, then how the question was read and carried out."""
    told = dict(found.explain or {})
    output.say()
    whys = [(f"{rank:>2}", hit.score, hit.why) for rank, hit in enumerate(found.hits, 1) if hit.why]
    if told["weights"] and whys:
        output.print_table(_numbers(whys, told["weights"]))
        output.say()
    for key, said in _facts(told):
        output.say((f"{key:<14}", "dim"), output.one_line(said))


def held_and_missing(why: Mapping[str, Any]) -> str:
    """`holds launch, budget · lacks quetzal`."""
    held, lacking = ", ".join(why["matched"]), ", ".join(why["missing"])
    return " · ".join([f"holds {held}" if held else "holds no word of it", *([f"lacks {lacking}"] if lacking else [])])


def print_why(found: Found) -> None:
    """Where a named note is, or why it is not there."""
    told = dict(found.why or {})
    style = "green" if told["verdict"] == "hit" else "yellow"
    output.say((told["name"], "bold cyan"), "  ", (told["because"], style))
    if told["hint"]:
        output.say("    ", told["hint"])
    if "matched" in told and (told["matched"] or told["missing"]):
        output.say("    ", (held_and_missing(told), "dim"))
    rows = [(each["name"], each["score"], each) for each in (told, told.get("last_hit")) if each and "legs" in each]
    if rows and any(row[2]["legs"] for row in rows):
        output.say()
        output.print_table(_numbers(rows, None), gives_way=0)


def _numbers(
    rows: Sequence[tuple[str, float, Mapping[str, Any]]], weights: Mapping[str, float] | None
) -> list[list[Text]]:
    """A row a note: its score, what each part adds to it (with weights; else the part itself), and its place in each
    leg with the leg's own score."""
    legs = dict.fromkeys(leg for _, _, why in rows for leg in why["legs"])
    legs = dict.fromkeys([leg for leg in (*_LEGS, *legs) if leg in legs])
    shown = weights if weights is not None else {part: 1 for _, _, why in rows for part in _PARTS if part in why}
    parts = [part for part in _PARTS if shown.get(part)]
    sign = " = " if weights is not None else ": "
    header = ["", f"score{sign}" + (" + " if weights is not None else ", ").join(parts)]
    table = [[output.styled((cell, "dim")) for cell in [*header, *(_LEGS.get(leg, leg) for leg in legs)]]]
    for label, score, why in rows:
        added = [why.get(part, 0.0) * shown[part] for part in parts]
        made = (" + " if weights is not None else ", ").join(f"{each:.2f}" for each in added)
        if "reranker" in why:
            made = f"reranker {why['reranker']:.3f}, rank_before {why['rank_before']}"
        cells = [output.styled((label, "dim")), output.styled((f"{score:.2f}", "bold"), f"{sign}{made}")]
        table.append([*cells, *(output.styled(_standing(why["legs"].get(leg))) for leg in legs)])
    return table


def _standing(standing: Mapping[str, Any] | None) -> str:
    return "" if standing is None else f"#{standing['rank']} {standing['raw']:.2f}"


def _facts(told: Mapping[str, Any]) -> list[tuple[str, str]]:
    score, _, meant = told["formula"].partition(". ")
    rows = [("formula", score), *([("", meant)] if meant else [])]
    if told["notes_with"]:
        counts = (f"{word} in {count or 'no'} {_notes(count)}" for word, count in told["notes_with"].items())
        rows.append(("words", ", ".join(counts)))
    for count, each in enumerate(told["filters"]):
        alone = f" ({each['removed_alone']} alone)" if count and each["removed_alone"] != each["removed"] else ""
        said = f"{each['filter']} {each['value']}: removed {each['removed']}{alone}, left {each['left']}"
        rows.append(("" if count else "filters", said))
    by = {"hybrid": "words and meaning", "text": "words", "semantic": "meaning"}[told["mode"]]
    embedder = f" ({told['embedder']})" if told["embedder"] != "none" else ""
    rows.append(("searched", f"{told['notes_after_filter']} of {told['notes']} notes, by {by}{embedder}"))
    if reranker := told.get("reranker"):
        rows.append(("reranked", f"the first {reranker['candidates']} by {reranker['name']}"))
    rows += [("" if count else "not searched", said) for count, said in enumerate(_left_out(told["not_searched"]))]
    return rows


def _left_out(left: Mapping[str, Any]) -> list[str]:
    said = [f"{count} {_notes(count)}: {reason}" for reason, count in left.get("hidden", {}).items()]
    said += [f"{file['path']}: {file['why']}" for file in left.get("files", ())]
    if more := left.get("more_files"):
        said.append(f"{more} more files")
    if count := left.get("without_vectors"):
        said.append(f"{count} {_notes(count)} by words only: no vectors yet")
    if left.get("indexing"):
        said.append("notes that are still to be read")
    return said


def _notes(count: int) -> str:
    return "note" if count == 1 else "notes"
