"""One vault, for every interface: what stands above knows this, and nothing behind it."""

from simplemem.index.door import Mark as Mark
from simplemem.index.door import Progress as Progress
from simplemem.index.door import SyncReport as SyncReport
from simplemem.store.bench import Bench as Bench
from simplemem.store.bench import Carried as Carried
from simplemem.store.bench import Draft as Draft
from simplemem.store.bench import Likeness as Likeness
from simplemem.store.bench import Read as Read
from simplemem.store.bench import as_words as as_words
from simplemem.store.packs import Piece as Piece
from simplemem.store.store import EnhancedStore as EnhancedStore
from simplemem.store.store import open_store as open_store
from simplemem.store.write import now as now
from simplemem.vault.disk import Intruded as Intruded
from simplemem.vault.disk import change_file as change_file
from simplemem.vault.disk import write_file as write_file
