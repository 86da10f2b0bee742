"""Jobs that read, write and publish. `transforms` has the pure transformations."""
