"""Attacks on a running service, one module for each family. Each attack is a function of a `Target` and returns an
`AttackOutcome`; the tests call the same functions as a run of the whole list."""
