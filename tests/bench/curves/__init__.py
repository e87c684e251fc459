"""The three curves on a real cluster: what clients feel while nothing happens, while a disk fails, and while one that
is about to fail is drained. `make bench-ceph RELEASE=pacific`."""
