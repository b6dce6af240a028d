"""Kinds of note above the store: the graph, what an agent has learned, and a picture of both."""
