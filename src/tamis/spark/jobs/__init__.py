"""What runs: jobs that read, write and publish. Transformations alone are in `transforms`."""
