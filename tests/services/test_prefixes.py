"""What models want to be told before a text."""

from __future__ import annotations

import pytest

from simplemem.services.embed import prefixes_of


@pytest.mark.parametrize(
    ("model", "query", "document"),
    [
        ("nomic-embed-text:v1.5", "search_query: ", "search_document: "),
        ("text-embedding-nomic-embed-text-v1.5", "search_query: ", "search_document: "),
        ("embeddinggemma", "task: search result | query: ", "title: none | text: "),
        ("text-embedding-embeddinggemma-300m", "task: search result | query: ", "title: none | text: "),
        ("intfloat/multilingual-e5-large", "query: ", "passage: "),
        ("e5-base-v2", "query: ", "passage: "),
        ("BAAI/bge-small-en-v1.5", "Represent this sentence for searching relevant passages: ", ""),
        ("mxbai-embed-large", "Represent this sentence for searching relevant passages: ", ""),
        ("snowflake-arctic-embed:335m", "Represent this sentence for searching relevant passages: ", ""),
        ("Snowflake/snowflake-arctic-embed-l-v2.0", "query: ", ""),
        ("snowflake-arctic-embed2", "query: ", ""),
        ("BAAI/bge-m3", "", ""),
        ("nomic-embed-code", "", ""),
        ("all-minilm", "", ""),
        ("text-embedding-3-small", "", ""),
        ("voyage-3.5", "", ""),
    ],
)
def test_known_models_are_told_what_their_makers_say_and_others_nothing(model: str, query: str, document: str) -> None:
    assert prefixes_of(model) == {"query": query, "document": document}


def test_instructed_models_are_instructed_for_questions_alone() -> None:
    for model in ("Qwen/Qwen3-Embedding-0.6B", "qwen3-embedding:4b", "intfloat/multilingual-e5-large-instruct"):
        found = prefixes_of(model)
        assert found["query"].startswith("Instruct: ")
        assert found["query"].endswith("Query: ")
        assert found["document"] == ""


def test_the_settings_win_and_may_say_nothing() -> None:
    assert prefixes_of("nomic-embed-text", "", "") == {"query": "", "document": ""}
    assert prefixes_of("nomic-embed-text", None, "doc: ") == {"query": "search_query: ", "document": "doc: "}
    assert prefixes_of("all-minilm", "ask: ") == {"query": "ask: ", "document": ""}
