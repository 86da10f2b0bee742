"""Tests of live indexes."""
