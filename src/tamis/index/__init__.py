"""How are a million expressions laid out? Columns, the shared DAG, the artefact on disk."""
