"""The programs that can ask this server, and how each of them is told of it."""
