"""The service's side of drains: the controller in the application, people's requests, plan tags and curves."""
