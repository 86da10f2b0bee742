"""The four papers: their algorithms, workloads and experiments."""
