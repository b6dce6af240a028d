"""simplemem: the memory that AI agents and their people share, as Markdown notes in a folder.

    from simplemem import open_store

    with open_store("notes") as store:
        store.sync()
        for hit in store.search("what did we decide about the harbour?").hits:
            print(hit.name, hit.line, hit.snippet)

Importing this package costs nothing; what is named here is loaded on first use.
"""

from __future__ import annotations

TYPE_CHECKING = (
    False  # importing `typing` would be a fifth of what a command costs that a server answers
)
if TYPE_CHECKING:
    from typing import Any

    from simplemem.errors import (
        AlreadyExists,
        Ambiguous,
        Conflict,
        Invalid,
        NotFound,
        ReadOnly,
        SimplememError,
        TooLong,
        Unavailable,
        Unreadable,
    )
    from simplemem.models import Filter, Found, Hit, Memory, Saved
    from simplemem.settings.loading import load_settings
    from simplemem.settings.model import Settings
    from simplemem.store import EnhancedStore, open_store

__version__ = "0.1.0"

__all__ = [
    "AlreadyExists",
    "Ambiguous",
    "Conflict",
    "EnhancedStore",
    "Filter",
    "Found",
    "Hit",
    "Invalid",
    "Memory",
    "NotFound",
    "ReadOnly",
    "Saved",
    "Settings",
    "SimplememError",
    "TooLong",
    "Unavailable",
    "Unreadable",
    "__version__",
    "load_settings",
    "open_store",
]


_HOME = {
    "Settings": "settings.model",
    "load_settings": "settings.loading",
    "EnhancedStore": "store",
    "open_store": "store",
}
_HOME |= dict.fromkeys(("Filter", "Found", "Hit", "Memory", "Saved"), "models")


def __getattr__(name: str) -> Any:
    import importlib

    if name not in __all__:
        raise AttributeError(f"module 'simplemem' has no attribute {name!r}")
    return getattr(importlib.import_module(f"simplemem.{_HOME.get(name, 'errors')}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
