"""The base of the services of features: one per store, made when it is first asked for."""

from __future__ import annotations

import weakref
from itertools import count
from typing import TYPE_CHECKING, Any, Self, cast

from simplemem.features.collection import ChangeSet
from simplemem.note.names import base_name, compare_key

if TYPE_CHECKING:
    from simplemem.providers.api import ChatModel
    from simplemem.store import EnhancedStore


class FeatureService:
    """The service of a feature for one store. Guards what the feature holds in memory.

    It references the store weakly, and may be used by several threads.
    """

    def __init__(self, store: EnhancedStore) -> None:
        """Make the service of a store. Callers use `of`, so that a store has only one."""
        self._store = weakref.ref(store)
        self.extension = store.extension
        self.settings = store.settings

    @classmethod
    def of(cls, store: EnhancedStore) -> Self:
        """Return the one service of this class that a store has, made on the first call."""
        services: dict[Any, Self] = store.extension.services
        return services.get(cls) or services.setdefault(cls, cls(store))

    @property
    def store(self) -> EnhancedStore:
        """The store. The caller must still hold it, because the service does not."""
        store = self._store()
        assert store is not None
        return store

    @property
    def chat(self) -> ChatModel | None:
        """The chat model that the settings name, shared by all services; None if they name none."""
        services = self.extension.services
        llm = self.settings.llm
        is_configured = llm.provider != "none" and llm.model.strip()
        if "chat" not in services and is_configured:
            from simplemem.providers.chat import ServiceChatModel

            model = ServiceChatModel(
                llm.provider,
                llm.model,
                llm.url,
                llm.api_key,
                llm.timeout_seconds,
                llm.max_calls_per_hour,
            )
            services.setdefault("chat", model)
        return cast("ChatModel | None", services.get("chat"))

    def free_path(
        self, change_set: ChangeSet, stem: str, *, between: str, ending: str = ".md"
    ) -> str:
        """Return a path that no file has: the stem, else with the first free number behind it.

        `between` separates the stem from the number. Files that `change_set` creates count too; the
        path is not entered into it.
        """
        path = f"{stem}{ending}"
        numbers = count(2)
        while change_set.has(path) or self._is_taken(path):
            path = f"{stem}{between}{next(numbers)}{ending}"
        return path

    def _is_taken(self, path: str) -> bool:
        """Return whether a file has this path, or one that differs only in case or Unicode form."""
        same_name = self.extension.files_called(path.rpartition("/")[2])
        if compare_key(path) in map(compare_key, same_name):
            return True
        return self.extension.exists(path)

    def link_text(self, path: str, block: str = "") -> str:
        """Return a link in brackets to a note or to one of its blocks, given by its block id.

        Its target is that of `link_target`.
        """
        return f"[[{self.link_target(path, block)}]]"

    def link_target(self, path: str, block: str = "") -> str:
        """Return the target of a link to a note or to one of its blocks, given by its block id.

        It is the bare name if no other note has that name, else the whole path without `.md`.
        """
        target = base_name(path)
        paths = self.extension.files_called(f"{target}.md")
        is_unique = all(same_name == path for same_name in paths)
        if not is_unique:
            target = path.removesuffix(".md")
        if block:
            target += f"#^{block}"
        return target
