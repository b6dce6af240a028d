"""Routes over HTTP of the servers that profiles replace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from simplemem.tools.tool import Data, Reply, Tool

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore


class FoundNote(Protocol):
    """The note that the path of a route names."""

    @property
    def sha256(self) -> str:
        """The hash of its text, for `If-Match`."""

    @property
    def scope(self) -> str:
        """The user whose note it is."""


@dataclass(frozen=True, kw_only=True)
class CompatibilityRoute:
    """A route of a replaced server: the tool that it calls, and the form of its answer.

    Attributes:
        tool: The tool that takes the fields of the request and whose data is the answer.
        status: The HTTP status of success.
        status_text: The field `status` of the answer; "" for none.
        text_field: The field that has the text of the tool; "" for none.
        fields: The fields of the tool's data that the answer has; None for all.
        needs_content: Whether a request without a field `content` is refused with 422.
        needs_knowledge_base: Whether it exists only if the server has a knowledge base.
        find_note: For a path with `{id}`: returns the note with this id of a user, or of any user
            if the user is "". Raises NotFound. The note's user becomes the tool's argument that
            names a user, which the request may then omit.
        id_argument: For a path with `{id}`: the argument of the tool that the id becomes.
        sends_etag: Whether the answer has the hash of the note as its `ETag`.
        is_idempotent: Whether a repeated `Idempotency-Key` gets the first answer again.
    """

    tool: Tool
    status: int
    status_text: str = ""
    text_field: str = ""
    fields: tuple[str, ...] | None = None
    needs_content: bool = False
    needs_knowledge_base: bool = False
    find_note: Callable[[EnhancedStore, str, str], FoundNote] | None = None
    id_argument: str = ""
    sends_etag: bool = False
    is_idempotent: bool = False

    @property
    def user_argument(self) -> str:
        """The argument of the tool that names a user.

        Raises ValueError unless it has exactly one, as each tool of a route with `{id}` must.
        """
        [name] = self.tool.user_arguments
        return name

    def answer(self, reply: Reply[Any]) -> Data:
        """Return the body of the answer for what the tool replied.

        It has the status and the text, if the route names fields for them, and the fields of the
        tool's data that the route shows.
        """
        body: Data = {}
        if self.status_text:
            body["status"] = self.status_text
        if self.text_field:
            body[self.text_field] = reply.text

        for key, value in (reply.data() or {}).items():
            if self.fields is None or key in self.fields:
                body[key] = value
        return body
