"""The parts of a plan: routes of single PGs, the way inside a host, figures, and the plan as a diff.

In: a view, a drain, policy, context. Out: `data.drain.Plan` values, made by `engine.plan`. This package moves
nothing.
"""
