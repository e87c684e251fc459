"""disk_requests: asks the service for work on the disks of this host, and carries it out: self-tests and lights.

Input: signed requests. Output: a report of each. A request is carried out if its signature, host, end and permission
fit and its id was never seen; what was seen is kept over restarts.
"""
