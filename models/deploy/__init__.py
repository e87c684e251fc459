"""The deployment of bundles: store, registry, trial and comparison."""
