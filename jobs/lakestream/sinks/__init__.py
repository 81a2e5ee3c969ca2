"""Where batches go, each exactly once: Hudi tables, JSON files, and the quarantine for what cannot be read."""
