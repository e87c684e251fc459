"""collector: runs on the OSD host, reads every disk and ships the readings, without forecasts or a web framework.

Input: smartctl's output (decoded by data.smart). Output: wire envelopes (data.wire). The package can be imported
without the ML packages.
"""
