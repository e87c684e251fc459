"""collector: on the OSD host, reads every disk and ships what it said; no forecast, no web framework.

In: smartctl's output (decoded by data.smart). Out: wire envelopes (data.wire). Import it without the ML packages.
"""
