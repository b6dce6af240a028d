"""Makes the objects of a store that search: part of the composition root."""

from __future__ import annotations

from dataclasses import dataclass

from simplemem.index.changes import ChangeTable
from simplemem.index.service import IndexService
from simplemem.search.backlinks import BacklinkFinder
from simplemem.search.conditions import ConditionChecker
from simplemem.search.context import ContextBuilder
from simplemem.search.explain import ExplainedSearch
from simplemem.search.filters import FilterResolver
from simplemem.search.listing import NoteLister
from simplemem.search.needs import Embeddings, IndexKeeper, IndexMonitor, NameResolver, NoteReader
from simplemem.search.pipeline import NoteRanker, Search
from simplemem.search.quality import HitQuality
from simplemem.search.rerank import NoteReranker
from simplemem.settings.model import Settings


@dataclass
class SearchParts:
    """The objects of one store that search."""

    filters: FilterResolver
    quality: HitQuality
    reranker: NoteReranker | None
    ranker: NoteRanker
    search: Search
    explained_search: ExplainedSearch
    lister: NoteLister
    backlinks: BacklinkFinder
    context: ContextBuilder


def make_search_parts(
    settings: Settings,
    index: IndexService,
    *,
    keeper: IndexKeeper,
    monitor: IndexMonitor,
    names: NameResolver,
    notes: NoteReader,
    embeddings: Embeddings,
    changes: ChangeTable,
) -> SearchParts:
    """Make the objects that search a vault, on those that read and index its notes."""
    filters = FilterResolver(names, changes, settings.search.archive)
    conditions = ConditionChecker(index, monitor)
    quality = HitQuality(notes, embeddings)
    reranker = None
    if settings.rerank.provider != "none":
        reranker = NoteReranker(notes, settings)
    ranker = NoteRanker(
        index,
        keeper=keeper,
        notes=notes,
        embeddings=embeddings,
        filters=filters,
        conditions=conditions,
        reranker=reranker,
        lexical_weight=_lexical_weight(settings),
    )
    search = Search(
        ranker,
        quality=quality,
        keeper=keeper,
        monitor=monitor,
        notes=notes,
        authors=changes,
        default_limit=settings.search.limit,
        snippet_characters=settings.search.snippet_characters,
    )
    return SearchParts(
        filters=filters,
        quality=quality,
        reranker=reranker,
        ranker=ranker,
        search=search,
        explained_search=ExplainedSearch(
            search, index, names=names, monitor=monitor, conditions=conditions
        ),
        lister=NoteLister(
            index, keeper=keeper, monitor=monitor, filters=filters, conditions=conditions
        ),
        backlinks=BacklinkFinder(
            index, ranker, keeper=keeper, names=names, notes=notes, archive=filters.archive
        ),
        context=ContextBuilder(
            index,
            ranker,
            quality=quality,
            keeper=keeper,
            monitor=monitor,
            notes=notes,
            embeddings=embeddings,
        ),
    )


def _lexical_weight(settings: Settings) -> float:
    """Return the weight of words against meaning: that of the settings, or its square.

    The local model finds far more by meaning than the included word vectors, so words weigh less
    beside it (docs/internals/ranking.md). The square leaves 0 and 1 as they are.
    """
    weight = settings.search.lexical_weight
    if settings.embed.provider == "local":
        return weight**2
    return weight
