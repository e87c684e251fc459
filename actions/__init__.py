"""actions: from a view of the cluster and the outlooks of its disks to small, safe, written-down steps.

In: `ClusterView`, outlooks, drains, policy, the time. Out: journal lines, commands to the `Cluster` port,
proposals. Decisions are pure (`actions.engine.decision`); only `actions.controller.controller` talks to the
store and the cluster. Knows nothing of models, files or settings.

Other rooms use `actions.controller.controller.Controller` (and its `requests`), `actions.core.drain_policy.Policy` and
`actions.cluster`.
"""
