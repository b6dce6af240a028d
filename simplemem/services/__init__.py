"""Asking services that are not ours: embedders and rerankers over the network, and the word vectors that come with a
wheel.

One client has the retries, the deadline and the breaker; a table says how each protocol is spoken. Nothing here knows a
note, and no message carries a key or a note's text, whatever a service says."""
