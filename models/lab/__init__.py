"""The laboratory: backtests, peers, challengers, reports and Dask; a service does not need it."""
