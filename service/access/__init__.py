"""service.access: who may enter and what they did: the book of credentials, sessions, limits, TLS, sign-in, audit."""
