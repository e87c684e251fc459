"""data.store: history, outlooks, drains, journal and outcomes, kept in a file or in PostgreSQL.

`port` is the contract of a store, and `opening` opens a store. `sql` fulfils the contract on any `database`
(`sqlite`, `postgres`) with the tables of `schema`. `upkeep` thins and drops old rows, and `migrations` convert
between formats. `faults` and `postgres_errors` describe what can be wrong.
"""
