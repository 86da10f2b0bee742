"""What does an expression mean? The reference evaluator, normal forms and lint."""
