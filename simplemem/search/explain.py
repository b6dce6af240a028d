"""Explain a search: the numbers behind each hit, and why another note is no hit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

from simplemem.index.api import IndexFilter, NoteId, NoteRow
from simplemem.index.service import IndexService
from simplemem.models import Found, Hit
from simplemem.note.names import is_copy_reason, name_of
from simplemem.search.conditions import PAST_SESSIONS_LABEL, Condition, ConditionChecker
from simplemem.search.needs import IndexMonitor, NameResolver
from simplemem.search.pipeline import MAX_LIMIT, Search, SearchAnswer, SearchRequest
from simplemem.search.rank import Ranked

_MAX_FILES = 20  # how many files are listed as not searched


class _WordMatches(NamedTuple):
    """Which notes contain a word of the query in any form.

    `note_count` is the number of all of them. `notes` has only those that were asked for.
    """

    note_count: int
    notes: set[NoteId]


@dataclass(frozen=True, slots=True)
class _Verdict:
    """Why a note is a hit or not.

    `verdict` is "hit", "below", "filtered", "no_match", "hidden" or "not_indexed", and `because`
    says it in a sentence. `hint` says how to find the note; "" if there is nothing to say.
    `numbers` are further items of the JSON answer.
    """

    verdict: str
    because: str
    hint: str = ""
    numbers: dict[str, Any] = field(default_factory=dict)


class ExplainedSearch:
    """Runs searches and explains their answers. Guards no state."""

    def __init__(
        self,
        search: Search,
        index: IndexService,
        *,
        names: NameResolver,
        monitor: IndexMonitor,
        conditions: ConditionChecker,
    ) -> None:
        self._search = search
        self._index = index
        self._names = names
        self._monitor = monitor
        self._conditions = conditions

    def search(self, request: SearchRequest, *, explain: bool, why: str) -> Found:
        """Return what `Search.search` does, with explanations.

        With `explain`, the search and each hit have the numbers behind them. `why` is the name of a
        note whose rank, or absence, is explained; "" for none. Raises NotFound or Ambiguous for
        this name, and what `Search.search` raises.
        """
        answer = self._search.answer(request)
        found = answer.found
        explanation = _Explanation(
            answer,
            self._index,
            self._names,
            self._monitor,
            self._conditions,
        )
        if explain:
            hits = tuple(explanation.explain_hits(found.hits))
            found = replace(found, explain=explanation.explain_search(), hits=hits)
        if why:
            found = replace(found, why=explanation.explain_note(why, found.hits))
        return found


class _Explanation:
    """Explains one search. Guards the whole ranking, which is computed when it is first needed."""

    def __init__(
        self,
        answer: SearchAnswer,
        index: IndexService,
        names: NameResolver,
        monitor: IndexMonitor,
        checker: ConditionChecker,
    ) -> None:
        self._ranking = answer.ranking
        self._query = answer.ranking.query
        self._limit = answer.limit
        self._index = index
        self._names = names
        self._monitor = monitor
        self._checker = checker
        self._conditions = checker.conditions_of(self._ranking.question.narrow)
        self._matches = self._word_matches([hit.note for hit in self._ranking.hits])

    @cached_property
    def _all_notes(self) -> Sequence[Ranked]:
        """The whole ranking by signals, computed when it is first needed."""
        return self._ranking.all_notes()

    def explain_hits(self, hits: Sequence[Hit]) -> list[Hit]:
        """Return hits, which must be of this search, each with its rank and what it scored for."""
        explanations = {}
        for number, ranked in enumerate(self._ranking.hits, 1):
            words = _matched_and_missing(self._matches, ranked.note)
            explanations[name_of(ranked.path)] = {
                "rank": number,
                **self._numbers_of(ranked),
                **words,
                **self._reranker_numbers_of(ranked),
            }
        return [replace(hit, why=explanations[hit.name]) for hit in hits]

    def explain_search(self) -> dict[str, Any]:
        """Return what explains the search as a whole."""
        ranking = self._ranking
        query = self._query
        notes_with = {word: matches.note_count for word, matches in self._matches.items()}
        all_count, filters = self._count_by_filters()
        after_filters = filters[-1]["left"] if filters else all_count
        explanation = {
            "words": list(query.words),
            "notes_with": notes_with,
            "matched_nowhere": [word for word, count in notes_with.items() if not count],
            "phrases": list(query.phrases),
            "without": list(query.excluded),
            "mode": ranking.mode,
            "embedder": getattr(ranking.question.vector, "embedder", "none"),
            "weights": {signal.name: round(signal.weight, 4) for signal in ranking.signals},
            "formula": self._formula(),
            "ranked": len(self._all_notes),
            "filters": filters,
            "notes": all_count,
            "notes_after_filter": after_filters,
            "not_searched": self._not_searched(),
            "degraded": ranking.degraded,
        }
        if query.corrections:
            explanation["corrected"] = dict(query.corrections)
        if ranking.reranking is not None:
            explanation["reranker"] = {
                "name": ranking.reranking.name,
                "remote": ranking.reranking.is_remote,
                "candidates": ranking.reranking.max_candidates,
            }
        return explanation

    def explain_note(self, name: str, hits: Sequence[Hit]) -> dict[str, Any]:
        """Return the rank of the note that a name means, or why it is no hit.

        Raises NotFound, with similar names, and Ambiguous.
        """
        path = self._names.path_of(name)
        filter = IndexFilter(only=(path,), hidden=True)
        row = next(iter(self._index.page(filter, "modified", 1).rows), None)
        if row is None:
            verdict = self._not_indexed_verdict(path)
        elif row.hidden is not None:
            verdict = _hidden_verdict(row.hidden)
        else:
            verdict = self._verdict(row, hits)
        return {
            "name": name_of(path),
            "verdict": verdict.verdict,
            "because": verdict.because,
            "hint": verdict.hint,
            **verdict.numbers,
        }

    def _count_by_filters(self) -> tuple[int, list[dict[str, Any]]]:
        """Return the number of all notes, and a step for each condition of the filter.

        A step says how many of the notes that passed the conditions before it are removed.
        """
        filter = IndexFilter()
        all_count = self._checker.count(filter)
        left = all_count
        steps = []
        for condition in self._conditions:
            filter = condition.added_to(filter)
            count = self._checker.count(filter)
            steps.append(
                {
                    "filter": condition.label,
                    "value": condition.value,
                    "removed": left - count,
                    "left": count,
                }
            )
            left = count
        return all_count, steps

    def _formula(self) -> str:
        """Return a sentence on how the rank score is computed."""
        if not self._query.words:
            return "The query contains no words to rank by: the newest notes come first."
        summands = [
            f"{round(signal.weight, 4):g} × {signal.name}"
            for signal in self._ranking.signals
            if signal.weight
        ]
        return f"rank_score = {' + '.join(summands)}, each signal divided by its best value."

    def _not_searched(self) -> dict[str, Any]:
        """Return what the search could not find, by reason, without reasons that do not apply."""
        state = self._monitor.state(self._ranking.status)
        has_vector = self._ranking.question.vector is not None
        files = self._monitor.not_indexed()[:_MAX_FILES]
        not_searched = {
            "hidden": self._index.counts()["hidden"],
            "files": [{"path": path, "why": reason} for path, reason in files],
            "without_vectors": state.pending if has_vector else 0,
            "indexing": state.state == "indexing",
        }
        return {key: value for key, value in not_searched.items() if value}

    def _not_indexed_verdict(self, path: str) -> _Verdict:
        """Return the verdict on a note that is not in the index."""
        for file, reason in self._monitor.not_indexed():
            # `file` may be a folder that contains the note.
            if reason and f"{path}/".startswith(f"{file}/"):
                because = f"It is not in the index: {reason.rstrip('.')}."
                return _Verdict("not_indexed", because)
        return _Verdict("not_indexed", "It is not indexed yet.", "Try again in a moment.")

    def _verdict(self, row: NoteRow, hits: Sequence[Hit]) -> _Verdict:
        """Return the verdict on a note that a search can find."""
        name = name_of(row.path)
        hit_numbers = {hit.name: number for number, hit in enumerate(hits, 1)}
        hit_number = hit_numbers.get(name, 0)
        all_notes = self._all_notes
        # From 1; 0 if neither words nor meaning lead to the note.
        rank = next((n for n, ranked in enumerate(all_notes, 1) if ranked.note == row.id), 0)

        numbers: dict[str, Any] = {"limit": self._limit}
        if rank:
            numbers["rank"] = hit_number or rank
            numbers["of"] = len(all_notes)
            numbers |= self._numbers_of(all_notes[rank - 1])
        numbers |= _matched_and_missing(self._word_matches([row.id]), row.id)

        verdict = self._no_hit_verdict(row, rank, numbers)
        if hit_number:
            # If the note no longer passes the filter, the numbers name the conditions.
            because = f"It is hit {hit_number} of {len(hits)}."
            return _Verdict("hit", because, numbers=verdict.numbers)
        return verdict

    def _no_hit_verdict(self, row: NoteRow, rank: int, numbers: dict[str, Any]) -> _Verdict:
        """Return why a note is no hit. `rank` is its rank by signals from 1, 0 if it has none.

        `numbers` go into the verdict; "matched" must be among them.
        """
        failed = self._failed_conditions(row.path)
        if failed and not rank:
            return _filtered_verdict(failed, numbers)

        # A note within the limit is no hit only if a reranker has moved it down.
        if rank and rank <= self._limit:
            because = f"It is number {rank} by words and meaning; the reranker ranked other notes "
            because += "higher."
            return _Verdict("below", because, numbers=numbers)
        note_count = len(self._all_notes)
        if rank:
            hint = ""
            if rank <= MAX_LIMIT:
                hint = f"Set the limit to {rank} or more to include it."
            because = f"It is number {rank} of {note_count} ranked notes."
            return _Verdict("below", because, hint, numbers)
        is_newest_first = not self._query.words and not self._query.has_nothing_searchable()
        if numbers["matched"] or is_newest_first:
            because = f"{note_count} or more notes rank above it."
            return _Verdict("below", because, numbers=numbers)
        return _Verdict("no_match", self._reason_for_no_match(row.id), numbers=numbers)

    def _failed_conditions(self, path: str) -> list[Condition]:
        """Return the conditions of the filter that a note does not meet."""
        only_this = IndexFilter(only=(path,))
        return [
            condition
            for condition in self._conditions
            if not self._checker.count(condition.added_to(only_this))
        ]

    def _reason_for_no_match(self, note: NoteId) -> str:
        """Return why neither words nor meaning lead to a note, as a sentence."""
        reasons = []
        if self._ranking.mode != "semantic":
            reasons.append("it contains none of the query's words")
        if self._ranking.question.vector is not None:
            has_vectors = bool(self._index.vectors_of(note))
            reasons.append("its meaning is not similar" if has_vectors else "it has no vectors")
        return f"{', and '.join(reasons).capitalize()}."

    def _word_matches(self, notes: Sequence[NoteId]) -> dict[str, _WordMatches]:
        """Return for each word of the query how many notes contain it, and which of `notes` do."""
        words = self._query.words
        forms = [self._query.forms_of(word) for word in words]
        matches = self._index.find_matching(forms, notes)
        return {
            word: _WordMatches(*matches_of_word)
            for word, matches_of_word in zip(words, matches, strict=True)
        }

    def _numbers_of(self, ranked: Ranked) -> dict[str, Any]:
        """Return a note's score, and its share of the best value of each signal.

        Words, phrases and meaning are always there, other signals only if the note has them.
        """
        numbers = {
            "rank_score": round(ranked.score, 4),
            "words": 0.0,
            "phrases": 0.0,
            "meaning": 0.0,
        }
        for signal in self._ranking.signals:
            share = signal.values.get(ranked.note, 0.0) / signal.best
            if share:
                numbers[signal.name] = round(share, 4)
        return numbers

    def _reranker_numbers_of(self, ranked: Ranked) -> dict[str, Any]:
        """Return the reranker's score of a note and its rank before; nothing if there is none."""
        reranking = self._ranking.reranking
        if reranking is None or ranked.note not in reranking.notes:
            return {}
        note = reranking.notes[ranked.note]
        return {"reranker": note.score, "rank_before": note.rank_before}


def _hidden_verdict(reason: str) -> _Verdict:
    """Return the verdict on a note that is excluded from search for a reason."""
    hint = "To include it in search, move or rename it, or change the Obsidian setting that "
    hint += "excludes it."
    if is_copy_reason(reason):
        hint = "`simplemem conflicts merge` merges it into its note; --dry-run shows the "
        hint += "differences."
    return _Verdict("hidden", f"It is not searched: {reason}.", hint)


def _filtered_verdict(failed: Sequence[Condition], numbers: dict[str, Any]) -> _Verdict:
    """Return the verdict on a note that does not pass the filter.

    The reason names the conditions that the caller has set, and past sessions only if they are the
    only reason.
    """
    filters = [{"filter": condition.label, "value": condition.value} for condition in failed]
    all_numbers = {**numbers, "filters": filters}
    set_by_caller = [condition for condition in failed if condition.label != PAST_SESSIONS_LABEL]
    if not set_by_caller:
        return _Verdict(
            "filtered",
            "It is a past session, which this search leaves out.",
            "Put `archive:` before the query to search past sessions too.",
            all_numbers,
        )
    conditions = " and ".join(f"{condition.label} {condition.value}" for condition in set_by_caller)
    return _Verdict(
        "filtered",
        f"It does not match the filter {conditions}.",
        "Search without this filter, or change the note.",
        all_numbers,
    )


def _matched_and_missing(matches: dict[str, _WordMatches], note: NoteId) -> dict[str, list[str]]:
    """Return the words of the query that a note contains, and those that it lacks."""
    matched = [word for word, word_matches in matches.items() if note in word_matches.notes]
    missing = [word for word in matches if word not in matched]
    return {"matched": matched, "missing": missing}
