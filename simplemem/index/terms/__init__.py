"""The term index: which words occur where in the notes, ranked by BM25.

The same code serves every engine.
"""
