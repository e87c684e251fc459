"""Values between the log and the store: latencies, announcements, dead letters, imported history."""
