"""The process that looks, decides, writes down and acts, with its leadership, journal, requests and replication."""
