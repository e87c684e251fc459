"""The three curves of the clients' latency on a real cluster: while nothing happens, while a disk fails, and while a
disk that is about to fail is drained. `make bench-ceph RELEASE=pacific` measures them."""
