"""Requests that collectors test disks or switch the lights of their slots: guards, storage, exchange and schedule."""
