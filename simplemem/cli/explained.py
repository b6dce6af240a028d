"""How `search --explain` and `search --why` look to a person: a short table, and sentences where a number is not enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from simplemem.cli.text import one_line
from simplemem.note.words import counted

if TYPE_CHECKING:
    from simplemem.cli.output import Screen
    from simplemem.cli.text import Part
    from simplemem.memory import Found

_PARTS = ("words", "phrases", "meaning", "covered", "dated")
_LEGS = {
    "note": "by note",
    "block": "by block",
    "phrase": "by phrases",
    "passage_meaning": "near passage",
    "block_meaning": "near block",
}


def print_explained(found: Found, screen: Screen) -> None:
    """The numbers of every hit in a table, then how the question was read and carried out."""
    facts = dict(found.explain or {})
    screen.say()
    rows = [(f"{rank:>2}", hit.score, hit.why) for rank, hit in enumerate(found.hits, 1) if hit.why]
    if facts["weights"] and rows:
        screen.table(_numbers(rows, facts["weights"]))
        screen.say()
    for key, sentence in _facts(facts):
        screen.say((f"{key:<14}", "dim"), one_line(sentence))


def held_and_missing(why: Mapping[str, Any]) -> str:
    """`holds launch, budget · lacks quetzal`."""
    held, lacking = ", ".join(why["matched"]), ", ".join(why["missing"])
    return " · ".join([f"holds {held}" if held else "holds no word of it", *([f"lacks {lacking}"] if lacking else [])])


def print_why(why: Mapping[str, Any], screen: Screen) -> None:
    """Where a named note is, or why it is not there."""
    style = "green" if why["verdict"] == "hit" else "yellow"
    screen.say((why["name"], "bold cyan"), "  ", (why["because"], style))
    if why["hint"]:
        screen.say("    ", why["hint"])
    if why.get("matched") or why.get("missing"):
        screen.say("    ", (held_and_missing(why), "dim"))
    rows = [(each["name"], each["score"], each) for each in (why, why.get("last_hit")) if each and "legs" in each]
    if any(row[2]["legs"] for row in rows):
        screen.say()
        screen.table(_numbers(rows, None), gives_way=0)


def _numbers(
    rows: Sequence[tuple[str, float, Mapping[str, Any]]], weights: Mapping[str, float] | None
) -> list[list[Part]]:
    """A row a note: its score, what each part adds to it (with weights; else the part itself), and its place in each
    leg with the leg's own score."""
    ranked = dict.fromkeys(leg for _, _, why in rows for leg in why["legs"])
    legs = [*(leg for leg in _LEGS if leg in ranked), *(leg for leg in ranked if leg not in _LEGS)]
    weighed = weights if weights is not None else {part: 1 for _, _, why in rows for part in _PARTS if part in why}
    parts = [part for part in _PARTS if weighed.get(part)]
    sign, between = (" = ", " + ") if weights is not None else (": ", ", ")
    header = ["", f"score{sign}{between.join(parts)}", *(_LEGS.get(leg, leg) for leg in legs)]
    table: list[list[Part]] = [[(cell, "dim") for cell in header]]
    for label, score, why in rows:
        made = between.join(f"{why.get(part, 0.0) * weighed[part]:.2f}" for part in parts)
        if "reranker" in why:
            made = f"reranker {why['reranker']:.3f}, rank_before {why['rank_before']}"
        table.append([(label, "dim"), f"{score:.2f}{sign}{made}", *(_standing(why["legs"].get(leg)) for leg in legs)])
    return table


def _standing(standing: Mapping[str, Any] | None) -> str:
    return "" if standing is None else f"#{standing['rank']} {standing['raw']:.2f}"


def _facts(explain: Mapping[str, Any]) -> list[tuple[str, str]]:
    score, _, meaning = explain["formula"].partition(". ")
    rows = [("formula", score), *([("", meaning)] if meaning else [])]
    if explain["notes_with"]:
        counts = (f"{word} in {_notes(count)}" for word, count in explain["notes_with"].items())
        rows.append(("words", ", ".join(counts)))
    for count, each in enumerate(explain["filters"]):
        alone = f" ({each['removed_alone']} alone)" if count and each["removed_alone"] != each["removed"] else ""
        sentence = f"{each['filter']} {each['value']}: removed {each['removed']}{alone}, left {each['left']}"
        rows.append(("" if count else "filters", sentence))
    by = {"hybrid": "words and meaning", "text": "words", "semantic": "meaning"}[explain["mode"]]
    embedder = f" ({explain['embedder']})" if explain["embedder"] != "none" else ""
    rows.append(("searched", f"{explain['notes_after_filter']} of {explain['notes']} notes, by {by}{embedder}"))
    if reranker := explain.get("reranker"):
        rows.append(("reranked", f"the first {reranker['candidates']} by {reranker['name']}"))
    left = _left_out(explain["not_searched"])
    return rows + [("" if count else "not searched", sentence) for count, sentence in enumerate(left)]


def _left_out(left: Mapping[str, Any]) -> list[str]:
    lines = [f"{_notes(count)}: {reason}" for reason, count in left.get("hidden", {}).items()]
    lines += [f"{file['path']}: {file['why']}" for file in left.get("files", ())]
    if more := left.get("more_files"):
        lines.append(f"{more} more files")
    if count := left.get("without_vectors"):
        lines.append(f"{_notes(count)} by words only: no vectors yet")
    if left.get("indexing"):
        lines.append("notes that are still to be read")
    return lines


def _notes(count: int) -> str:
    return counted(count, "note") if count else "no notes"
