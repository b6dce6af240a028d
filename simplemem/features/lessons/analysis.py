"""What lessons show when they are counted and compared: contradictions, themes, habits.

Each finding names its lessons and says no more than a count does. No model is used: lessons are
compared by the vectors of the index.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date
from functools import cached_property
from typing import TYPE_CHECKING

from simplemem.features.lessons.contradictions import (
    Contradiction,
    Data,
    Disagreement,
    Pair,
    find_disagreements,
    find_duplicates,
    judge,
)
from simplemem.features.lessons.findings import by_priority, lesson_label, lesson_labels
from simplemem.features.lessons.habits import find_habits
from simplemem.features.lessons.lesson import Lesson, read_lesson
from simplemem.features.lessons.near_pairs import Weights
from simplemem.features.lessons.proposals import Proposal, propose_pairs
from simplemem.features.lessons.service import lesson_service
from simplemem.features.lessons.similarity import SimilarityMatrix
from simplemem.features.lessons.statistics import LOW_CONFIDENCE, count_lessons, find_patterns
from simplemem.features.lessons.themes import (
    Theme,
    group_by_theme,
    suggest_tags,
    theme_cluster,
    theme_finding,
)
from simplemem.features.lessons.verdicts import CONTRADICTS
from simplemem.models import Filter

if TYPE_CHECKING:
    from simplemem.features.lessons.description import RelationsByPath
    from simplemem.store import EnhancedStore

_MIN_NEARNESS_OF_THEMES = 0.2  # a fifth of the words by weight; chosen on 60 lessons of 12 subjects
_MIN_TAGGED_THEME = 3  # lessons of a theme whose words are suggested as tags


class Analysis:
    """Some lessons of a store, and findings about them, computed on request. Writes nothing.

    Guards what is read once for all findings: relations, vectors, read counts, and which lessons a
    person wrote. `description` names the lessons in an answer, `method` says by what they are
    compared, and `current` are those that are not superseded.

    Findings and other rows are dictionaries with the fields that clients know. A list of them is
    empty if nothing is found. Without vectors, no lessons are similar.
    """

    def __init__(
        self, store: EnhancedStore, lessons: Sequence[Lesson], description: str = "entries"
    ) -> None:
        """Prepare an analysis of these lessons of a store. Reads how often each was read."""
        self.store = store
        self._service = lesson_service(store)
        self.lessons = lessons
        self.description = description
        self.current = [lesson for lesson in lessons if not lesson.is_superseded]
        self.read_counts = self._service.read_counts()
        self.method = "nothing (there are no vectors)"
        embedder = store.extension.embedder
        if embedder:
            self.method = f"embedding ({embedder})"
        self._is_by_hand_by_path: dict[str, bool] = {}

    @cached_property
    def _similarities(self) -> SimilarityMatrix:
        """How similar the current lessons are."""
        return SimilarityMatrix(self.store, self.current)

    @cached_property
    def _relations(self) -> RelationsByPath:
        """The relations of the current lessons."""
        return self._service.relations_of(self.current)

    @cached_property
    def _proposals(self) -> list[Proposal]:
        """The pairs of current lessons about one thing, those with a reason first."""
        return propose_pairs(self._service.read_statements(self.current))

    # Contradictions

    def contradictions(
        self,
        min_similarity: float = 0.85,
        min_delta: float = 0.1,
        *,
        same_type_only: bool = False,
    ) -> list[Contradiction]:
        """Return each pair of current lessons that disagree, once, with a verdict or None.

        Pairs that were confirmed (by the relation `contradicts`) come first, then two values for a
        subject, then denials, then near duplicates. Other lessons with a relation to each other
        are left out: they were compared already. A lesson that lost to another one is
        in no further verdict. Near duplicates have at least `min_similarity` and
        confidences that differ by `min_delta` or more. With `same_type_only`, both lessons of a
        pair have one type.
        """
        confirmed = self._find_confirmed()
        confirmed_pairs = {self._paths_of(disagreement) for disagreement in confirmed}
        compared = self._linked_pairs - confirmed_pairs
        found = self._find_disagreements(min_similarity, min_delta)

        losers: set[str] = set()
        contradictions: list[Contradiction] = []
        for disagreement in [*confirmed, *found]:
            one, other = self._lessons_of(disagreement)
            paths = self._paths_of(disagreement)
            if paths in compared:
                continue
            if same_type_only and one.type != other.type:
                continue

            compared.add(paths)
            verdict = None
            if not losers & paths:
                verdict = judge(one, other, self._is_by_hand)
            data = self._contradiction_data(disagreement)
            if verdict is not None:
                losers.add(verdict.loser.path)
                data["winner"] = verdict.winner.id
                data["why"] = verdict.reason
            contradictions.append(Contradiction(data, verdict))
        return contradictions

    def offers(
        self, contradictions: Iterable[Contradiction], *, same_type_only: bool = False
    ) -> list[Data]:
        """Return the pairs of current lessons that may contradict each other, for a reader.

        Each has the `rule`, the `reason`, the labels of the lessons as `one` (the older) and
        `other`, each with the sentence that it `said`, and the `nearness` of the two. Pairs with a
        relation, and those of `contradictions`, are left out.
        """
        contradictory_pairs: set[frozenset[str]] = set()
        for contradiction in contradictions:
            one_id = contradiction.data["one"]["id"]
            other_id = contradiction.data["other"]["id"]
            contradictory_pairs.add(frozenset((one_id, other_id)))

        offers: list[Data] = []
        for proposal in self.unjudged():
            if not proposal.is_offered:
                continue
            if frozenset((proposal.one.id, proposal.other.id)) in contradictory_pairs:
                continue
            if same_type_only and proposal.one.type != proposal.other.type:
                continue
            offers.append(offer_data(proposal))
        return offers

    def unjudged(self) -> list[Proposal]:
        """Return the near pairs of current lessons that have no relation to each other.

        Those with a reason come first.
        """
        return [
            proposal for proposal in self._proposals if proposal.paths not in self._linked_pairs
        ]

    def _find_confirmed(self) -> list[Disagreement]:
        """Return the pairs of current lessons of which one has the relation `contradicts`."""
        positions = {lesson.path: position for position, lesson in enumerate(self.current)}
        confirmed: dict[frozenset[str], Disagreement] = {}
        for lesson in self.current:
            for relation in self._relations[lesson.path]:
                target = relation.target
                if relation.type != CONTRADICTS or target.path not in positions:
                    continue
                pair = (positions[lesson.path], positions[target.path])
                paths = frozenset((lesson.path, target.path))
                confirmed[paths] = Disagreement("confirmed", pair, lesson.headline, target.headline)
        return list(confirmed.values())

    def _paths_of(self, disagreement: Disagreement) -> frozenset[str]:
        """Return the paths of the two lessons of a disagreement."""
        one, other = self._lessons_of(disagreement)
        return frozenset((one.path, other.path))

    def _find_disagreements(self, min_similarity: float, min_delta: float) -> list[Disagreement]:
        """Return the disagreements of all current lessons, for `contradictions`.

        Two values for a subject come first, then denials, then near duplicates.
        """
        disagreements = list(find_disagreements(self.current))
        disagreements.sort(key=lambda disagreement: disagreement.rule == "polarity")
        similar_pairs = self._similarities.similar_pairs(min_similarity)
        disagreements += find_duplicates(self.current, similar_pairs, min_delta)
        return disagreements

    @cached_property
    def _linked_pairs(self) -> set[frozenset[str]]:
        """The pairs of paths of current lessons of which one has a relation to the other."""
        pairs: set[frozenset[str]] = set()
        for path, relations in self._relations.items():
            for relation in relations:
                pairs.add(frozenset((path, relation.target.path)))
        return pairs

    def _lessons_of(self, disagreement: Disagreement) -> tuple[Lesson, Lesson]:
        """Return the lesson of a disagreement's `one_sentence`, then that of `other_sentence`.

        The disagreement must be one of lessons of `current`.
        """
        one, other = disagreement.pair
        return self.current[one], self.current[other]

    def _contradiction_data(self, disagreement: Disagreement) -> Data:
        """Return the fields that `Contradiction` names, without those of a verdict."""
        one, other = self._lessons_of(disagreement)
        one_data = lesson_label(one)
        one_data["said"] = disagreement.one_sentence
        one_data["confidence"] = one.confidence

        other_data = lesson_label(other)
        other_data["said"] = disagreement.other_sentence
        other_data["confidence"] = other.confidence
        return {
            "rule": disagreement.rule,
            "one": one_data,
            "other": other_data,
            "about": disagreement.subject,
            "similarity": self._similarities.similarity(disagreement.pair),
        }

    def _is_by_hand(self, lesson: Lesson) -> bool:
        """Return whether a person wrote the text of a lesson. Reads the history once per lesson."""
        path = lesson.path
        if path not in self._is_by_hand_by_path:
            is_by_hand = self.store.extension.is_by_hand(path, lesson.sha256)
            self._is_by_hand_by_path[path] = is_by_hand
        return self._is_by_hand_by_path[path]

    def superseded(self) -> list[Data]:
        """Return the superseded lessons, the latest first, with what replaced them and why.

        Each has the fields of `lesson_label`, its `confidence`, when (`at`) and for what `reason`
        it was superseded, the name of the lesson that replaced it (`by`), and that lesson as
        `winner`, None if it is not among the lessons.
        """
        by_name: dict[str, Lesson] = {}
        for lesson in self.lessons:
            by_name[lesson.name.rpartition("/")[2]] = lesson
            by_name[lesson.name] = lesson

        superseded = [lesson for lesson in self.lessons if lesson.is_superseded]
        superseded.sort(key=lambda lesson: lesson.superseded_at)
        superseded.reverse()
        return [_superseded_data(lesson, by_name) for lesson in superseded]

    # Themes

    def themes(self, min_similarity: float | None = None, min_size: int = 2) -> list[Theme]:
        """Return groups of similar current lessons, the largest first. No lesson is in two.

        A group has at least `min_size` lessons, each at least as similar to the central one as
        `min_similarity`. None means clearly more similar than lessons of this vault usually are,
        and with words in common: each with the central one, and the group as a whole.
        """
        if min_similarity is not None:
            pairs = self._similarities.similar_pairs(min_similarity)
            return group_by_theme(self.current, pairs, self.read_counts, min_size=min_size)

        pairs = self._similar_pairs_with_shared_words()
        themes = group_by_theme(self.current, pairs, self.read_counts, min_size=min_size)
        return [theme for theme in themes if theme.words]

    def _similar_pairs_with_shared_words(self) -> list[Pair]:
        """Return the positions of current lessons that are similar and share words, in pairs."""
        readings = self._service.read_statements(self.current)
        weights = Weights(readings)
        threshold = self._similarities.usual_threshold()
        pairs: list[Pair] = []
        for one, other in self._similarities.similar_pairs(threshold):
            nearness = weights.nearness(readings[one].stems, readings[other].stems)
            if nearness >= _MIN_NEARNESS_OF_THEMES:
                pairs.append((one, other))
        return pairs

    def clusters(self, min_similarity: float | None = None, min_size: int = 2) -> list[Data]:
        """Return the `themes` for these arguments, each with the fields of `theme_cluster`."""
        return [theme_cluster(theme) for theme in self.themes(min_similarity, min_size)]

    def suggested_tags(self, min_similarity: float | None = None) -> list[Data]:
        """Return words of themes with three or more members, as tags for the members without them.

        `min_similarity` is as in `themes`. Each word has the fields of `suggest_tags`. A tag that
        the vault has is spelled as it is there.
        """
        themes = self.themes(min_similarity, _MIN_TAGGED_THEME)
        spellings = {tag.casefold(): tag for tag in self.store.tags()}
        return suggest_tags(themes, spellings)

    # Counts and habits

    def low_confidence(self) -> list[Data]:
        """Return the labels of the current lessons with a confidence below 0.5."""
        low = [
            lesson
            for lesson in self.current
            if lesson.confidence is not None and lesson.confidence < LOW_CONFIDENCE
        ]
        return lesson_labels(low)

    def unverified(self) -> list[Data]:
        """Return the labels of current lessons that nobody has verified (see `lesson_label`).

        Ordinary notes, which cannot be verified, are left out.
        """
        unverified = [lesson for lesson in self.current if lesson.is_own and not lesson.verified]
        return lesson_labels(unverified)

    def never_read(self) -> list[Data]:
        """Return the labels of the current lessons that were never read, without ordinary notes."""
        unread = [
            lesson for lesson in self.current if lesson.is_own and lesson.id not in self.read_counts
        ]
        return lesson_labels(unread)

    def stats(self) -> Data:
        """Return totals of all lessons, with the fields of `count_lessons`."""
        return count_lessons(self.lessons, self.read_counts)

    def patterns(self, today: date) -> Data:
        """Return what recurs in all lessons until a day, with the fields of `find_patterns`."""
        return find_patterns(self.lessons, today)

    def insights(self, min_similarity: float | None = None, min_size: int = 2) -> list[Data]:
        """Return habits and themes of the current lessons as findings, the most urgent first.

        The themes are those that `themes` returns for these arguments.
        """
        habits = find_habits(self.current, self.read_counts, self._relations)
        findings = [habit for habit in habits if habit["kind"] not in ("untagged", "duplicates")]
        findings += [theme_finding(theme) for theme in self.themes(min_similarity, min_size)]
        return by_priority(findings)

    def antipatterns(self) -> list[Data]:
        """Return the habits that make lessons less useful as findings, the most urgent first.

        That a lesson was never read is none of them.
        """
        habits = find_habits(self.current, self.read_counts, self._relations)
        return by_priority(habit for habit in habits if habit["kind"] != "never read")


def analysis_of(store: EnhancedStore, notes: str = "") -> Analysis:
    """Return an analysis of the lessons of a store, or of notes if `notes` selects some.

    `projects/` selects a folder, `type:decision` a type, and `*` all notes of the vault; "" selects
    the lessons. If nothing matches, the analysis has no lessons.
    """
    selection = notes.strip()
    if not selection:
        return Analysis(store, lesson_service(store).lessons())

    note_type = ""
    if selection.casefold().startswith("type:"):
        note_type = selection[len("type:") :].strip()
    if note_type:
        return _analysis_of_notes(store, Filter(type=note_type), f"notes of type {note_type}")
    if selection in ("*", "/"):
        return _analysis_of_notes(store, Filter(), "notes of the vault")
    folder = selection.rstrip("/*") + "/"
    return _analysis_of_notes(store, Filter(prefix=folder), f"notes in {folder}")


def _analysis_of_notes(store: EnhancedStore, filter_: Filter, description: str) -> Analysis:
    """Return an analysis of the notes that pass a filter. Their times are those of the index.

    `description` names them in an answer.
    """
    listed = {note.path: note for note in store.extension.list_all(filter_)}
    lessons: list[Lesson] = []
    for read in store.extension.read(sorted(listed)):
        note = listed[read.path]
        lesson = read_lesson(read.path, read.text, read.sha256)
        dated = replace(lesson, created=note.created or "", modified=note.modified)
        lessons.append(dated)
    return Analysis(store, lessons, description)


def offer_data(proposal: Proposal) -> Data:
    """Return the fields of a pair that is offered, as `Analysis.offers` names them."""
    one = lesson_label(proposal.one)
    one["said"] = proposal.reason.one_sentence
    other = lesson_label(proposal.other)
    other["said"] = proposal.reason.other_sentence
    return {
        "rule": proposal.reason.rule,
        "reason": proposal.reason.text,
        "one": one,
        "other": other,
        "nearness": proposal.nearness,
    }


def _superseded_data(lesson: Lesson, by_name: dict[str, Lesson]) -> Data:
    """Return the fields of a superseded lesson, as `Analysis.superseded` names them.

    `by_name` has all lessons by their names, with and without the folder.
    """
    data = lesson_label(lesson)
    data["confidence"] = lesson.confidence
    data["at"] = lesson.superseded_at
    data["reason"] = lesson.superseded_reason

    winner = by_name.get(lesson.superseded_by)
    data["winner"] = None if winner is None else lesson_label(winner)
    data["by"] = lesson.superseded_by
    return data
