"""The processes of predrain: service, worker, controller and collector, and how each starts."""
