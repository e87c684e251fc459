"""The HTTP server: sockets, connections and TLS around the REST application."""
