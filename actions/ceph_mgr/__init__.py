"""What runs inside ceph-mgr. Standard library only, for Python 3.9 and later: nothing else of this house is there."""
