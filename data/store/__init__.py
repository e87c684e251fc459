"""data.store: history, outlooks, drains, journal, outcomes; kept in a file or in PostgreSQL.

`port` says what a store promises, `opening` opens the one that is named. `sql` keeps the promises over any `database`
(`sqlite`, `postgres`) with the tables of `schema`; `upkeep` thins and drops what ages; `migrations` bring older formats
up and back. What can be wrong is told by `faults` and `complaints`.
"""
