"""Where notes are stored: in a folder, or in a branch of a git repository.

`source` declares `NoteSource`, the interface that the rest of simplemem uses. `folder` and `branch`
implement it. Comments name faults such as F36 by their numbers in docs/internals/writing.md#faults.
"""
