"""Models: embedders, rerankers and chat models behind services, and the bundled word vectors.

No message of theirs contains a key or the text of a note.
"""
