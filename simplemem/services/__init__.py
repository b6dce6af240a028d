"""Asking services: embedders and rerankers over the network, and the word vectors that come with a wheel. Nothing here
knows a note, and no message carries a key or a note's text, whatever a service says."""
