"""A reranker for simplemem: recipes that use most of what is at home come first."""

from __future__ import annotations

from collections.abc import Sequence

from simplemem.providers.api import RerankerConfig, RerankerProvider


class IngredientReranker:
    """Scores a passage by the share of the query's words that it contains."""

    name = "shared-words"
    remote = False

    def scores(self, query: str, texts: Sequence[str], deadline: float) -> list[float]:
        """Return a score from 0 to 1 per text."""
        ingredients = set(query.lower().replace(",", " ").split())
        scores = []
        for text in texts:
            words = {word.strip(".,;:") for word in text.lower().split()}
            scores.append(len(ingredients & words) / max(1, len(ingredients)))
        return scores

    def close(self) -> None:
        """Do nothing: there is no connection."""


def create(config: RerankerConfig) -> IngredientReranker:
    """Return the reranker. It needs no settings."""
    return IngredientReranker()


PROVIDER = RerankerProvider("recipe-ingredients", create)
