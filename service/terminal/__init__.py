"""A command's side of the service: the connection, the person, and the waiting."""
