"""Build the bundled word vectors for many languages from the weights of published packages."""
