"""Embedders and rerankers: services, and the word vectors of a wheel. No message carries a key or a note's text."""
