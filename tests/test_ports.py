"""The ports of tests: a server can listen there again and again, and nobody else is there meanwhile."""

from __future__ import annotations

import socket

import pytest

from tests.ports import hold_port


def test_a_server_listens_on_a_held_port_again_and_again_and_connections_are_refused_between() -> None:
    address = ("127.0.0.1", hold_port())
    for _ in range(3):
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address)
        with socket.create_server(address), socket.create_connection(address):
            pass


def test_a_held_port_is_in_use_for_a_program_that_does_not_know_of_it() -> None:
    with socket.socket() as stranger, pytest.raises(OSError, match="in use"):
        stranger.bind(("127.0.0.1", hold_port()))
