"""The history: every change that the service knows of, as one list of typed events."""
