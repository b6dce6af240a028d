"""Notes in a folder of the disk: the only code that opens, writes or moves note files."""
