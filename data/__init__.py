"""data: the values that all other packages share, and the places where they are stored.

Input: bytes (smartctl output, wire envelopes, rows of a store). Output: frozen values (`Reading`, `Outlook`, `Drain`,
`Outcome`) and two ports, `Log` (data.log) and `Store` (data.store), with their adapters.

The package holds no forecast, no decision, no settings and no process, and imports no other package of predrain.
"""
