"""data: the words that every other room speaks, and where they are kept.

In: bytes (smartctl output, wire envelopes, rows of a store). Out: frozen values (`Reading`, `Outlook`, `Drain`,
`Outcome`) and two ports, `Log` (data.log) and `Store` (data.store), with their adapters beside them.
No forecast, no decision, no settings and no process lives here; this room imports nothing of ours.
"""
