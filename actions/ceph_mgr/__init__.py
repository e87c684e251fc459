"""The module that runs inside ceph-mgr. It needs only the standard library of Python 3.9: no other part of
predrain is there.
"""
