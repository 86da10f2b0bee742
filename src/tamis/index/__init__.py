"""How are a million expressions stored? Columns, the shared DAG, and the index on disk."""
