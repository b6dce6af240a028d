"""EnhancedStore: a vault and its index kept in step. Every interface goes through it, and only through it.

`store` is the door; behind it `core` keeps index and vault together (`keeping` does so in the background), `reading`
and `recall` answer, `changes` and `editing` write, `past` undoes, `doctor` examines.
"""

from simplemem.store.store import EnhancedStore, open_store

__all__ = ["EnhancedStore", "open_store"]
