"""Chaos: real collectors, Kafka, workers and PostgreSQL, killed by a seeded schedule while drives age and die.

In: a seed and a length. Out: what was injected, what was accepted, and what of it was lost or doubled (nothing).
`python -m tests.chaos --seed N --minutes M` (`make chaos`).
"""
