"""The settings: one table for each section of the settings file, and the state directory."""
