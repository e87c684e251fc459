"""Access to the service: the book of credentials, sessions, rate limits, TLS, sign-in, and the audit."""
