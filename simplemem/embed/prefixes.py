"""What some models want to be told before a text: whether it is a question or a passage.

Their makers publish these words on the models' pages; without them a model finds markedly less. The services that run
such models do not add them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Prefixes:
    query: str = ""
    document: str = ""


_REPRESENT = "Represent this sentence for searching relevant passages: "
_INSTRUCT = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: "

_KNOWN = (
    (r"nomic-embed-text", Prefixes("search_query: ", "search_document: ")),
    (r"embedding-?gemma", Prefixes("task: search result | query: ", "title: none | text: ")),
    (r"qwen3-embedding", Prefixes(_INSTRUCT)),
    (r"e5.*instruct", Prefixes(_INSTRUCT)),
    (r"(^|[-_/])(multilingual-)?e5-", Prefixes("query: ", "passage: ")),
    (r"mxbai-embed-large|arctic-embed(?!2|.*v2)", Prefixes(_REPRESENT)),
    (r"arctic-embed", Prefixes("query: ")),
    (r"bge-(small|base|large)-en", Prefixes(_REPRESENT)),
)


def prefixes_of(model: str, query: str | None = None, document: str | None = None) -> Prefixes:
    """What goes before texts for this model; the settings `query` and `document` win when they are given."""
    known = next((words for shape, words in _KNOWN if re.search(shape, model.lower())), Prefixes())
    return Prefixes(known.query if query is None else query, known.document if document is None else document)
