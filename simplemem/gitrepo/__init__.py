"""Read the git repository of a vault, commit to it, and exchange commits with its remote."""
