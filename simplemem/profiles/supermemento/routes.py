"""Supermemento's route over HTTP: the webhook that takes documents of other programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from simplemem.features.answers import IngestResult
from simplemem.features.services import DocumentService
from simplemem.profiles.route import CompatibilityRoute
from simplemem.profiles.supermemento.tools import Tag, Text, Title
from simplemem.tools.arguments import Object
from simplemem.tools.tool import Caller, Reply, tool


@tool("Store a document", writes=True)
def take_document(
    documents: DocumentService,
    caller: Caller,
    content: Text,
    container_tag: Tag = "default",
    title: Title = "",
    metadata: Object = {},  # noqa: B006
) -> Reply[IngestResult]:
    """Store a document that another program sends, and the facts in it as memories."""
    title = title or str(metadata.get("title", ""))
    return Reply("", documents.ingest_text(content, container_tag, title, metadata, **caller))


ROUTES: Final[Mapping[str, CompatibilityRoute]] = {
    "POST /ingest/webhook": CompatibilityRoute(
        tool=take_document,
        status=202,
        status_text="queued",
        fields=("id",),
        needs_content=True,
        is_idempotent=True,
    ),
}
