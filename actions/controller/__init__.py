"""The process that reads the cluster, decides, records and acts: leadership, journal, requests and replication."""
