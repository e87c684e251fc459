"""Whether a broker would serve us, asked on a socket of our own: an answer in seconds, with the reason.

kafka-python tries for the whole of its timeout and then says only that it timed out; the cause goes to its log.
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
"""A broker that takes longer for one answer is called away."""
LONGEST_ANSWER = 4 << 20
NO_ERROR, UNKNOWN_TOPIC, AUTHENTICATION_FAILED = 0, 3, 58


class _Closed(Exception):
    """The other side ended the conversation, or says what is no answer."""


def greet(broker: Broker, *topics: str) -> frozenset[str]:
    """Which of `topics` are there for us. Raises BrokerRefuses, and BrokerAway when none of the addresses answers."""
    context, away = broker.context(), []
    for host, port in broker.addresses():
        try:
            return _greet(broker, context, host, port, topics)
        except BrokerAway as error:
            away.append(str(error))
    raise BrokerAway("; ".join(away))


def _greet(
    broker: Broker, context: ssl.SSLContext | None, host: str, port: int, topics: tuple[str, ...]
) -> frozenset[str]:
    where = f"{host}:{port}"
    try:
        with socket.create_connection((host, port), SECONDS) as plain:
            if context is None:
                return _converse(broker, plain, topics)
            with context.wrap_socket(plain, server_hostname=host) as secured:
                return _converse(broker, secured, topics)
    except socket.gaierror as error:
        raise BrokerAway(
            f"no address is known for the broker {host}: correct bootstrap, or the name server"
        ) from error
    except TimeoutError as error:
        raise BrokerAway(
            f"the broker {where} does not answer within {SECONDS:.0f} s: see that it runs and no firewall is between"
        ) from error
    except ConnectionRefusedError as error:
        raise BrokerAway(f"no broker listens at {where}: start it, or correct bootstrap") from error
    except ssl.SSLCertVerificationError as error:
        raise BrokerRefuses(
            f"the certificate of the broker {where} is not trusted ({error.verify_message.rstrip('.')}): set ca to the"
            " PEM file of who signed it, and name the broker in bootstrap as its certificate does"
        ) from error
    except ssl.SSLError as error:
        raise BrokerRefuses(_said_in_tls(broker, where, error)) from error
    except (_Closed, ConnectionError) as error:
        raise BrokerRefuses(_hung_up(broker, where)) from error
    except OSError as error:
        raise BrokerAway(f"the broker {where} cannot be reached: {error.strerror or error}") from error


def _converse(broker: Broker, wire: socket.socket, topics: tuple[str, ...]) -> frozenset[str]:
    if broker.security == "scram":
        _authenticate(broker, wire)
    names = [MetadataRequest.MetadataRequestTopic(name=name) for name in topics]
    request = MetadataRequest(topics=names, allow_auto_topic_creation=False)
    answer = _ask(wire, request, MetadataResponse, 4)
    return frozenset(topic.name for topic in answer.topics if topic.error_code == NO_ERROR)


def _authenticate(broker: Broker, wire: socket.socket) -> None:
    offer = _ask(wire, SaslHandshakeRequest(mechanism=SCRAM), SaslHandshakeResponse, 1)
    if offer.error_code != NO_ERROR:
        offered = ", ".join(offer.mechanisms) or "none"
        raise BrokerRefuses(
            f"the broker does not take {SCRAM} at this port (it takes: {offered}): correct the port or security"
        )
    scram = ScramClient(broker.user, broker.password, SCRAM)
    try:
        scram.process_server_first_message(_prove(broker, wire, scram.first_message()))
        scram.process_server_final_message(_prove(broker, wire, scram.final_message()))
    except (ValueError, KeyError) as error:
        raise BrokerRefuses(
            f"the broker does not know the password either ({error}): it is not the one that we mean"
        ) from error


def _prove(broker: Broker, wire: socket.socket, said: bytes) -> bytes:
    answer = _ask(wire, SaslAuthenticateRequest(auth_bytes=said), SaslAuthenticateResponse, 0)
    if answer.error_code == AUTHENTICATION_FAILED:
        raise BrokerRefuses(
            f"the broker does not accept user {broker.user!r} with this password: correct user and password, or add"
            f" the user with {SCRAM} on the broker"
        )
    if answer.error_code != NO_ERROR:
        raise BrokerRefuses(f"the broker refuses user {broker.user!r}: {answer.error_message}; see its log")
    return bytes(answer.auth_bytes)


def _ask(wire: socket.socket, request: Any, kind: Any, version: int) -> Any:
    """The answer to one request. Raises _Closed when there is none."""
    request.API_VERSION = version
    request.with_header(correlation_id=1, client_id="predrain")
    wire.sendall(request.encode(version=version, header=True, framed=True))
    (length,) = struct.unpack(">i", _take(wire, 4))
    if not 4 <= length <= LONGEST_ANSWER:
        raise _Closed
    return kind.decode(_take(wire, length), version=version, header=True)


def _take(wire: socket.socket, count: int) -> bytes:
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
        f"{where} does not speak TLS as we do ({reason}): give the broker's port for TLS in bootstrap, or set security"
        " to plaintext"
    )


def _hung_up(broker: Broker, where: str) -> str:
    wants = {
        "plaintext": "it may want TLS, or a user: set security to tls or scram, or give its plaintext port",
        "tls": "it may want a client's certificate, or a user: set certificate and key, or security to scram",
        "scram": "it may be a port without users: give the port for SASL over TLS, or set security to tls",
    }
    return f"{where} ends the conversation as we speak {broker.security}: {wants[broker.security]}"
