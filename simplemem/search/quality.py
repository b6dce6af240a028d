"""Measure how good hits are, and how certain it is that the best one answers the question.

`judgement.py` decides; this module reads and compares what the decision is based on.
"""

from __future__ import annotations

from dataclasses import replace

from simplemem.index.door import Shown
from simplemem.note.names import name_of
from simplemem.search import judgement, rank
from simplemem.search.coverage import (
    Coverage,
    Passages,
    share_contained,
    spans_to_compare,
    with_words,
)
from simplemem.search.judgement import Evidence
from simplemem.search.needs import Embeddings, NoteReader
from simplemem.search.rank import Ranked
from simplemem.search.ranking import Ranking

# Characters of the best note in which the words of a question are looked for.
_MAX_SEARCHED_CHARACTERS = 200_000


def passages_of(notes: NoteReader, details: Shown, text: str | None = None) -> Passages:
    """Return the passages of a note to compare with a question, read when they are needed.

    `text` is the text of the note if it was read already.
    """
    row = details.row

    def read() -> str:
        if text is not None:
            return text
        return notes.text_of(row.path) or ""

    return Passages((row.path, row.sha256), spans_to_compare(details), read)


class HitQuality:
    """Measures the hits of a ranking. Guards no state.

    The methods take the text of a note if the caller has it; else they read it when they need it.
    """

    def __init__(self, notes: NoteReader, embeddings: Embeddings) -> None:
        self._notes = notes
        self._embeddings = embeddings

    def score(self, ranking: Ranking, hit: Ranked, text: str | None = None) -> float:
        """Return how good a hit is by itself, from 0 to 1.

        This is the share of the question that it covers, or the score of the reranker. It does not
        depend on the other hits.
        """
        query = ranking.query
        if ranking.reranking or not query.words or hit.note in ranking.matches.titled:
            return hit.score

        details = ranking.details[hit.note]
        label = _label_of(details)
        passages = passages_of(self._notes, details, text)
        weights = _rarity_of_words(ranking)
        coverage = None if ranking.mode == "text" else self._embeddings.coverage()

        share = 0.0
        if coverage is None or _ranks_by_words(ranking):
            share = rank.share_held(weights, label, passages.texts())
        if coverage is None:
            _, _, meaning = ranking.signals[:3]
            return max(share, meaning.values.get(hit.note, 0.0))
        return share or coverage.share(weights, label, passages)

    def is_only_nearest(
        self, ranking: Ranking, share: float | None = None, text: str | None = None
    ) -> bool:
        """Return whether the best hit does not answer, so that nothing was found.

        `share` is the score of the best hit if it was measured already.
        """
        query = ranking.query
        if not ranking.hits or not query.words:
            return False

        # No minimum is known for the scores of these rankings.
        is_substituted = bool(query.instead) or ranking.reranking is not None
        if is_substituted or ranking.hits[0].note in ranking.matches.titled:
            return False
        return self.confidence(ranking, share, text) < 0

    def confidence(
        self, ranking: Ranking, share: float | None = None, text: str | None = None
    ) -> float:
        """Return the confidence that the best hit answers; below 0 it does not."""
        best = ranking.hits[0]
        word_count = len(_informative_words(ranking))
        lead = rank.lead_of(ranking.ranked)
        has_similarity = ranking.mode != "text" and best.note in (ranking.matches.near or {})
        if not has_similarity:
            if share is None:
                share = self.score(ranking, best, text)
            return judgement.confidence_by_words(word_count, share, lead)

        similarity, others = _similarities(ranking)
        by_meaning = judgement.confidence_by_meaning(judgement.z_score(similarity, others))
        coverage = self._embeddings.coverage()
        if coverage is None:
            # It is not known how well another embedder compares words, so either words or meaning
            # suffice.
            share = self._share_of_words(ranking, best, text)
            by_words = judgement.confidence_by_words(word_count, share, lead)
            return max(by_meaning, by_words) if share else by_meaning

        is_by_meaning = ranking.mode == "semantic"
        if not best.has_word and not is_by_meaning:
            return by_meaning

        by_vectors = self._confidence_by_vectors(ranking, coverage, similarity, text)
        # A search by meaning alone may be answered by meaning alone.
        return max(by_meaning, by_vectors) if is_by_meaning else by_vectors

    def _confidence_by_vectors(
        self, ranking: Ranking, coverage: Coverage, similarity: float, text: str | None
    ) -> float:
        """Return the confidence in the best hit by the bundled word vectors.

        Comparing each word of the question with each of the note is the costly part. The words that
        the note contains are covered for certain, so a hit that answers by them alone is not
        compared further.
        """
        details = ranking.details[ranking.hits[0].note]
        label = _label_of(details)
        passages = passages_of(self._notes, details, text)
        weights = _informative_weights(ranking, coverage)
        informative = _informative_words(ranking)
        matched = self._matched_words(ranking, text)
        missing = [word for word in informative if word not in matched]
        contains_only_names = (
            bool(missing) and bool(matched) and matched <= rank.names_in(ranking.query.text)
        )

        evidence = Evidence(
            word_count=len(informative),
            similarity=similarity,
            coverage=share_contained(weights, label, passages.texts()),
            lead=rank.lead_of(ranking.ranked),
            missing_similarity=None,
        )
        certain = judgement.confidence(evidence)
        if certain >= 0 and not contains_only_names:
            return certain

        similarities, passage_number = coverage.by_word(weights, label, passages)
        missing_similarity: float | None = None
        if contains_only_names:
            passage = _passage_at(passages, passage_number)
            vectors = coverage.vectors.unit([" ".join(missing), f"{label} {passage}"])
            by_word = dict(zip(weights, similarities, strict=True))
            best_of_missing = max(by_word[word] for word in missing)
            missing_similarity = float(vectors[0] @ vectors[1]) + best_of_missing

        share = judgement.coverage_of(weights, similarities)
        return judgement.confidence(
            replace(evidence, coverage=share, missing_similarity=missing_similarity)
        )

    def _share_of_words(self, ranking: Ranking, hit: Ranked, text: str | None) -> float:
        """Return the share of the question's words that a hit contains, by their rarity."""
        details = ranking.details[hit.note]
        texts = passages_of(self._notes, details, text).texts()
        return rank.share_held(_rarity_of_words(ranking), _label_of(details), texts)

    def _matched_words(self, ranking: Ranking, text: str | None) -> set[str]:
        """Return the informative words of the question that the best hit contains in any form.

        They are looked for in the text, which a hit needs anyway. Asking the index would cost one
        query more per search.
        """
        details = ranking.details[ranking.hits[0].note]
        if text is None:
            text = self._notes.text_of(details.row.path) or ""
        searched = f"{_label_of(details)} {text[:_MAX_SEARCHED_CHARACTERS]}"
        return {word for word in _informative_words(ranking) if rank.words_begun(searched, [word])}


def _label_of(details: Shown) -> str:
    """Return all that a note is called: its name, title, description and tags."""
    row = details.row
    return " ".join((name_of(row.path), row.title, row.description, *details.tags))


def _ranks_by_words(ranking: Ranking) -> bool:
    """Return whether the query names what whole notes are about, rather than asks a question."""
    if ranking.mode == "text":
        return True
    return ranking.mode == "hybrid" and not rank.is_question(ranking.query.text)


def _rarity_of_words(ranking: Ranking) -> dict[str, float]:
    """Return the weight of each word of the query by its rarity in the vault."""
    query = ranking.query
    return rank.weights_of(query.words, query.note_counts, ranking.status.notes)


def _informative_weights(ranking: Ranking, coverage: Coverage) -> dict[str, float]:
    """Return the weight of each word of the query in its coverage."""
    rarity = _rarity_of_words(ranking)
    lengths = coverage.vectors.lengths([word.lower() for word in rarity])
    return judgement.informative_weights(rarity, lengths.tolist())


def _informative_words(ranking: Ranking) -> list[str]:
    return [word for word in ranking.query.words if judgement.is_informative(word)]


def _passage_at(passages: Passages, number: int) -> str:
    """Return a passage by its number in `Coverage`; "" if there is none.

    The note may have changed since `Coverage` read its words: then it may have fewer passages.
    """
    texts = with_words(passages.texts())
    return texts[number] if 0 <= number < len(texts) else ""


def _similarities(ranking: Ranking) -> tuple[float, list[float]]:
    """Return the similarity to the query of the best hit, and of the other notes, by cosine."""
    _, _, meaning = ranking.signals[:3]
    similarities = dict(meaning.values)
    best = similarities.pop(ranking.hits[0].note, 0.0)
    return best, list(similarities.values())
