"""Memory servers, searched through their own MCP tools.

A server of Markdown notes gets the documents as files. server-memory gets each as an entity whose
observations are the lines of the note. Each is searched with the question as it is asked, as an
agent does that knows nothing about the server. Where a server joins the words of a query with AND,
or looks for the query letter for letter, a second search is what a knowing agent could do: the
content words joined by OR, or one search per content word.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, Final

from bench.conversation import Conversation, failure_in
from bench.retrieval.data import Document, write_notes
from bench.retrieval.systems import Answer, Search
from simplemem.note.words import STOP_WORDS

AS_ASKED: Final = "as asked"
_SECONDS_TO_INDEX: Final = 1_800
_SECONDS_BETWEEN_LOOKS: Final = 0.5
_ENTITIES_PER_CALL: Final = 100


class NotIndexed(Exception):
    """A server did not index all documents in time."""


class McpServer(ABC):
    """A server that is started with a command, for each set of documents anew."""

    name: str
    default_command: str

    def __init__(self, command: str = "") -> None:
        """Use a command, or the default one, which fetches the server from its registry."""
        self.command = shlex.split(command or self.default_command)

    def is_installed(self) -> bool:
        """Return whether the program of the command exists."""
        return shutil.which(self.command[0]) is not None

    @contextmanager
    def open(self, documents: Sequence[Document], folder: Path) -> Iterator[Mapping[str, Search]]:
        """Give the server the documents, wait until it has indexed them, and yield its searches.

        Raises:
            NotIndexed: It did not index all documents within 30 minutes.
            Gone: It ended.
        """
        folder.mkdir(parents=True, exist_ok=True)
        if self.reads_notes:
            write_notes(documents, folder / "notes")
        environment = self.environment(folder)
        with Conversation(self.command, env=environment, quiet=True) as server:
            self.fill(server, documents)
            self._wait(server, len(documents))
            yield self.searches(server)

    reads_notes = True

    @abstractmethod
    def environment(self, folder: Path) -> dict[str, str]:
        """Return the variables that make it serve `folder`, with its notes in `folder/notes`."""

    def fill(self, server: Conversation, documents: Sequence[Document]) -> None:  # noqa: B027
        """Store the documents through its tools, if it does not read notes."""

    @abstractmethod
    def count_indexed(self, server: Conversation) -> int:
        """Return how many documents its search covers."""

    @abstractmethod
    def searches(self, server: Conversation) -> Mapping[str, Search]:
        """Return the ways to search it, by their names."""

    def _wait(self, server: Conversation, count: int) -> None:
        end = time.monotonic() + _SECONDS_TO_INDEX
        while (indexed := self.count_indexed(server)) < count:
            if time.monotonic() > end:
                raise NotIndexed(f"{self.name}: {indexed} of {count} documents")
            time.sleep(_SECONDS_BETWEEN_LOOKS)


class SimplememServer(McpServer):
    """simplemem with its default tools, as other servers are asked."""

    name = "simplemem"
    default_command = shlex.join([sys.executable, "-m", "simplemem", "serve"])

    def environment(self, folder: Path) -> dict[str, str]:
        return {"SIMPLEMEM_VAULT": str(folder / "notes")}

    def count_indexed(self, server: Conversation) -> int:
        return int(_data_of(server.use("list_memories", limit=1))["total"])

    def searches(self, server: Conversation) -> Mapping[str, Search]:
        def as_asked(question: str, limit: int) -> Answer:
            data = _data_of(server.use("search_memories", query=question, limit=limit))
            names = [hit["name"] for hit in data["hits"]]
            return Answer(tuple(names), bool(data.get("only_nearest")) or not names)

        return {AS_ASKED: as_asked}


class MarkdownVaultMcp(McpServer):
    """markdown-vault-mcp with search by keyword, as it is installed without extras."""

    name = "markdown-vault-mcp"
    default_command = "uvx markdown-vault-mcp serve"

    def environment(self, folder: Path) -> dict[str, str]:
        return {"MARKDOWN_VAULT_MCP_SOURCE_DIR": str(folder / "notes"), "HOME": str(folder)}

    def count_indexed(self, server: Conversation) -> int:
        return int(_data_of(server.use("stats"))["document_count"])

    def searches(self, server: Conversation) -> Mapping[str, Search]:
        def as_asked(question: str, limit: int) -> Answer:
            result = server.use("search", query=question, limit=limit)
            paths = [hit["path"] for hit in _data_of(result)["result"]]
            return _answer(map(_note_name, paths))

        def joined(question: str, limit: int) -> Answer:
            return as_asked(" OR ".join(content_words(question)), limit)

        return {AS_ASKED: as_asked, "words joined by OR": joined}


class BasicMemory(McpServer):
    """basic-memory with search by text, which needs no model. It writes into the notes."""

    name = "basic-memory"
    default_command = "uvx basic-memory mcp"

    def environment(self, folder: Path) -> dict[str, str]:
        return {
            "HOME": str(folder),
            "BASIC_MEMORY_HOME": str(folder / "notes"),
            "BASIC_MEMORY_SEMANTIC_SEARCH_ENABLED": "false",
        }

    def count_indexed(self, server: Conversation) -> int:
        arguments = {"query": "*", "search_type": "permalink", "page_size": 1}
        data = _data_of(server.use("search_notes", output_format="json", **arguments))["result"]
        if isinstance(data, str):  # "No results found"
            return 0
        return int(data["total"])

    def searches(self, server: Conversation) -> Mapping[str, Search]:
        def as_asked(question: str, limit: int) -> Answer:
            arguments = {"query": question, "page_size": limit, "output_format": "json"}
            data = _data_of(server.use("search_notes", **arguments))["result"]
            hits = [] if isinstance(data, str) else data["results"]
            return _answer(_note_name(hit["file_path"]) for hit in hits)

        return {AS_ASKED: as_asked}


class ServerMemory(McpServer):
    """@modelcontextprotocol/server-memory: finds entities that contain a text letter for letter."""

    name = "server-memory"
    default_command = "npx -y @modelcontextprotocol/server-memory"
    reads_notes = False

    def environment(self, folder: Path) -> dict[str, str]:
        return {"MEMORY_FILE_PATH": str(folder / "memory.jsonl")}

    def fill(self, server: Conversation, documents: Sequence[Document]) -> None:
        for start in range(0, len(documents), _ENTITIES_PER_CALL):
            entities = [
                {"name": document.name, "entityType": "note", "observations": document.lines}
                for document in documents[start : start + _ENTITIES_PER_CALL]
            ]
            failure = failure_in(server.use("create_entities", entities=entities))
            assert not failure, failure

    def count_indexed(self, server: Conversation) -> int:
        return len(_data_of(server.use("read_graph"))["entities"])

    def searches(self, server: Conversation) -> Mapping[str, Search]:
        def names_with(text: str) -> list[str]:
            data = _data_of(server.use("search_nodes", query=text))
            return [entity["name"] for entity in data["entities"]]

        def as_asked(question: str, limit: int) -> Answer:
            return _answer(names_with(question)[:limit])

        def per_word(question: str, limit: int) -> Answer:
            counts: Counter[str] = Counter()
            for word in content_words(question):
                counts.update(names_with(word))
            return _answer(name for name, _ in counts.most_common(limit))

        return {AS_ASKED: as_asked, "one search per word": per_word}


SERVERS: Final = {
    kind.name: kind for kind in (SimplememServer, MarkdownVaultMcp, BasicMemory, ServerMemory)
}


def content_words(question: str) -> list[str]:
    """Return the words of a question that are no stop words of English, each once."""
    words = dict.fromkeys(re.findall(r"\w+", question.lower()))
    content = [word for word in words if word not in STOP_WORDS]
    return content or list(words)


def _data_of(result: dict[str, Any]) -> dict[str, Any]:
    """Return the structured content of a result, or the JSON of its text.

    Raises:
        RuntimeError: The tool failed.
    """
    failure = failure_in(result)
    if failure:
        raise RuntimeError(failure)
    if "structuredContent" in result:
        return dict(result["structuredContent"])
    return dict(json.loads(result["content"][0]["text"]))


def _note_name(path: str) -> str:
    return PurePosixPath(path).stem


def _answer(names: Iterable[str]) -> Answer:
    unique = tuple(dict.fromkeys(names))
    return Answer(unique, is_refused=not unique)
