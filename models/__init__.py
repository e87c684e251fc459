"""models: from features to outlooks. In: `DriveState`s or histories. Out: `Outlook`s, scores, bundles. No
clock.

The interface for the service (frozen):

    bundle = Bundle.load(None)                # or a folder; raises CorruptBundle (a Refusal)
    state = observe_reading(state, reading)   # of features; state None at first
    build_outlooks(bundle, states, now, before={}) -> list[Outlook]    # in the order of the states

`before`: the devices' last outlooks (`store.latest_outlooks()`). `readings` and `span_hours`, which say how
long a status has been confirmed, are counted on from them. `as_of` is the time of the newest reading, so the
outlook of a silent drive ages. A drive that the model was not trained for (SSD, NVMe, unreadable, FAILED
verdict) gets a rule's outlook. Importing this package is cheap: only `models.forecast.bundle` imports LightGBM and
numpy.
"""
