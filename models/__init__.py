"""models: from features to outlooks. In: `DriveState`s or histories. Out: `Outlook`s, scores, bundles. No clock.

The face for the service (frozen):

    bundle = Bundle.load(None)                        # or a folder; raises CorruptBundle (a Refusal)
    state = observe(state, reading)                   # features; state None at first
    outlooks(bundle, states, now, before={}) -> list[Outlook]    # models.outlooks; in the order of the states

`before`: the devices' last outlooks (`store.latest_outlooks()`); from them `readings` and `span_hours` are counted
on: how long a status has been borne out. `as_of` is the newest reading's time, so a silent drive's outlook ages.
A drive that the model was not trained for (SSD, NVMe, unreadable, FAILED verdict) gets a rule's outlook.
Importing this package is cheap; LightGBM and numpy come in with `models.bundle`.
"""
