"""The sidecar: the only code with SQL. A function of the vault and the settings, and disposable."""
