"""The folder of notes: the only code that opens, writes or moves note files."""
