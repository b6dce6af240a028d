"""The search index: the only code with SQL. It can be rebuilt from the vault and the settings."""
