"""Benchmarks: each figure beside a baseline of the same run (`python -m tests.bench`, `.forecast`)."""
