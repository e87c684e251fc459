"""Asks on a socket of its own whether a broker would serve this client: an answer in seconds, with the reason.

kafka-python tries for the whole of its timeout and then reports only a timeout; the cause goes to its log.
"""

from __future__ import annotations

import socket
import ssl
import struct
from typing import Any

from kafka.net.sasl.scram import ScramClient
from kafka.protocol.metadata import MetadataRequest, MetadataResponse
from kafka.protocol.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

from predrain.data.log.kafka.broker import SCRAM, Broker, BrokerAway, BrokerRefuses

SECONDS = 3.0
"""Seconds. A broker that takes longer for one answer counts as away."""
LONGEST_ANSWER = 4 << 20
NO_ERROR, UNKNOWN_TOPIC, AUTHENTICATION_FAILED = 0, 3, 58


class _Closed(Exception):
    """The broker closed the connection, or sent something that is no answer."""


def check_broker_topics(broker: Broker, *topics: str) -> frozenset[str]:
    """Return those of `topics` that exist for this client.

    Raises BrokerRefuses, and BrokerAway if none of the addresses answers.
    """
    context, away = broker.build_ssl_context(), []
    for host, port in broker.parse_addresses():
        try:
            return _check_broker_address(broker, context, host, port, topics)
        except BrokerAway as error:
            away.append(str(error))
    raise BrokerAway("; ".join(away))


def _check_broker_address(
    broker: Broker, context: ssl.SSLContext | None, host: str, port: int, topics: tuple[str, ...]
) -> frozenset[str]:
    where = f"{host}:{port}"
    try:
        with socket.create_connection((host, port), SECONDS) as plain:
            if context is None:
                return _request_existing_topics(broker, plain, topics)
            with context.wrap_socket(plain, server_hostname=host) as secured:
                return _request_existing_topics(broker, secured, topics)
    except socket.gaierror as error:
        raise BrokerAway(
            f"no address is known for the broker {host}: correct bootstrap_servers, or the name server"
        ) from error
    except TimeoutError as error:
        raise BrokerAway(
            f"the broker {where} does not answer within {SECONDS:.0f} s: see that it runs and no firewall is between"
        ) from error
    except ConnectionRefusedError as error:
        raise BrokerAway(f"no broker listens at {where}: start it, or correct bootstrap_servers") from error
    except ssl.SSLCertVerificationError as error:
        raise BrokerRefuses(
            f"the certificate of the broker {where} is not trusted ({error.verify_message.rstrip('.')}): set ca to the"
            " PEM file of who signed it, and name the broker in bootstrap_servers as its certificate does"
        ) from error
    except ssl.SSLError as error:
        raise BrokerRefuses(_said_in_tls(broker, where, error)) from error
    except (_Closed, ConnectionError) as error:
        raise BrokerRefuses(_hung_up(broker, where)) from error
    except OSError as error:
        raise BrokerAway(f"the broker {where} cannot be reached: {error.strerror or error}") from error


def _request_existing_topics(broker: Broker, wire: socket.socket, topics: tuple[str, ...]) -> frozenset[str]:
    if broker.security == "scram":
        _authenticate_with_scram(broker, wire)
    names = [MetadataRequest.MetadataRequestTopic(name=name) for name in topics]
    request = MetadataRequest(topics=names, allow_auto_topic_creation=False)
    answer = _send_request(wire, request, MetadataResponse, 4)
    return frozenset(topic.name for topic in answer.topics if topic.error_code == NO_ERROR)


def _authenticate_with_scram(broker: Broker, wire: socket.socket) -> None:
    offer = _send_request(wire, SaslHandshakeRequest(mechanism=SCRAM), SaslHandshakeResponse, 1)
    if offer.error_code != NO_ERROR:
        offered = ", ".join(offer.mechanisms) or "none"
        raise BrokerRefuses(
            f"the broker does not take {SCRAM} at this port (it takes: {offered}): correct the port or security"
        )
    scram = ScramClient(broker.user, broker.password, SCRAM)
    try:
        scram.process_server_first_message(_send_scram_message(broker, wire, scram.first_message()))
        scram.process_server_final_message(_send_scram_message(broker, wire, scram.final_message()))
    except (ValueError, KeyError) as error:
        raise BrokerRefuses(
            f"the broker does not know the password either ({error}): it is not the one that we mean"
        ) from error


def _send_scram_message(broker: Broker, wire: socket.socket, said: bytes) -> bytes:
    answer = _send_request(wire, SaslAuthenticateRequest(auth_bytes=said), SaslAuthenticateResponse, 0)
    if answer.error_code == AUTHENTICATION_FAILED:
        raise BrokerRefuses(
            f"the broker does not accept user {broker.user!r} with this password: correct user and password, or add"
            f" the user with {SCRAM} on the broker"
        )
    if answer.error_code != NO_ERROR:
        raise BrokerRefuses(f"the broker refuses user {broker.user!r}: {answer.error_message}; see its log")
    return bytes(answer.auth_bytes)


def _send_request(wire: socket.socket, request: Any, kind: Any, version: int) -> Any:
    """Send one request and return its answer. Raises _Closed if there is none."""
    request.API_VERSION = version
    request.with_header(correlation_id=1, client_id="predrain")
    wire.sendall(request.encode(version=version, header=True, framed=True))
    (length,) = struct.unpack(">i", _receive_exactly(wire, 4))
    if not 4 <= length <= LONGEST_ANSWER:
        raise _Closed
    return kind.decode(_receive_exactly(wire, length), version=version, header=True)


def _receive_exactly(wire: socket.socket, count: int) -> bytes:
    parts = bytearray()
    while len(parts) < count:
        part = wire.recv(count - len(parts))
        if not part:
            raise _Closed
        parts += part
    return bytes(parts)


def _said_in_tls(broker: Broker, where: str, error: ssl.SSLError) -> str:
    reason = error.reason or str(error)
    if "CERTIFICATE" in reason:
        cure = "set certificate and key to those of a client that the brokers trust"
        if broker.certificate is None:
            return f"the broker {where} demands a client's certificate: {cure}"
        return f"the broker {where} does not accept the certificate {broker.certificate} ({reason}): {cure}"
    return (
        f"{where} does not speak TLS as we do ({reason}): give the broker's port for TLS in bootstrap_servers, or set"
        " security to plaintext"
    )


def _hung_up(broker: Broker, where: str) -> str:
    wants = {
        "plaintext": "it may want TLS, or a user: set security to tls or scram, or give its plaintext port",
        "tls": "it may want a client's certificate, or a user: set certificate and key, or security to scram",
        "scram": "it may be a port without users: give the port for SASL over TLS, or set security to tls",
    }
    return f"{where} ends the conversation as we speak {broker.security}: {wants[broker.security]}"
