"""Which crashes in the log of ceph-mgr count against the module."""

from __future__ import annotations

from tests.system.ceph.mgr_driver import find_crashes

STARTED = "2026-11-24T05:18:12.000+0000 7f05c37396c0  0 ceph version 18.2.7 reef (stable), process ceph-mgr, pid 7\n"
CRASH = """2026-11-24T05:18:13.868+0000 7f05c37396c0 -1 *** Caught signal (Aborted) **
 in thread 7f05c37396c0 thread_name:{thread}

 ceph version 18.2.7 (6b0e988052ec84cf2d4a54ff9bbbc5e720b621ad) reef (stable)
 1: /lib/x86_64-linux-gnu/libc.so.6(+0x3fd70) [0x7f05c524bd70]
 2: (ceph::__ceph_assert_fail(char const*, char const*, int, char const*)+0x17a) [0x7f05c5a5e935]
 3: ({frame}+0x22c8) [0x7f05c5b1f208]
"""


def test_a_log_without_a_crash_has_none() -> None:
    assert find_crashes(STARTED) == []


def test_a_crash_of_the_messenger_while_the_mgr_starts_is_not_counted() -> None:
    frame = "cephx_verify_authorizer(ceph::common::CephContext*, KeyStore const&)"
    assert find_crashes(STARTED + CRASH.format(thread="msgr-worker-0", frame=frame)) == []


def test_a_crash_elsewhere_is_counted_also_after_one_of_the_messenger() -> None:
    first = CRASH.format(thread="msgr-worker-0", frame="cephx_verify_authorizer(KeyStore const&)")
    second = CRASH.format(thread="predrain", frame="PyModuleRunner::serve()")
    (found,) = find_crashes(STARTED + first + second)
    assert "PyModuleRunner::serve" in found
