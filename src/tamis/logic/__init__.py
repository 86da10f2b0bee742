"""What does it mean? The reference evaluator, normal forms and lint."""
