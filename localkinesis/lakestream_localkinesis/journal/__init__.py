"""The journal of `--data`: an account in a folder, so that a server goes on where the one before it ended."""
