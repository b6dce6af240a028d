"""One note as a value: pure functions from text to facts and back. Nothing here opens a file."""
