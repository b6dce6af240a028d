"""One vault, for every interface: what stands above knows this, and nothing behind it."""

from simplemem.index.door import Mark
from simplemem.index.sync import Progress, SyncReport
from simplemem.store.bench import Bench, Carried, Draft, Read
from simplemem.store.store import EnhancedStore, open_store
from simplemem.store.write import now
from simplemem.vault.disk import write_file

__all__ = [
    "Bench",
    "Carried",
    "Draft",
    "EnhancedStore",
    "Mark",
    "Progress",
    "Read",
    "SyncReport",
    "now",
    "open_store",
    "write_file",
]
