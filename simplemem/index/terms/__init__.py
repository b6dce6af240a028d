"""The term index: which words occur where in the notes, ranked by BM25, the same for every engine."""
