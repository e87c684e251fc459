"""A person's and the controller's side of drains: the controller's place in the house, wishes, seals, curves."""
