"""What other programs keep, brought into the vault: a reader for each of them, and one way in for all."""
