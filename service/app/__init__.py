"""The application: log, store, fleet, forecasts and drains combined, and its schedule."""
