"""Commands beside a service that speaks TLS, without the settings of that service."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
import trustme

from predrain.service.access.tokens import load_admin_tokens
from predrain.service.cli import main
from predrain.service.config.state_directory import StateDir
from tests.service.notifications.test_channels import Hook, receiver


def test_a_command_without_the_services_settings_is_told_that_its_certificate_is_not_trusted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(tls)
    with receiver(Hook(), tls) as port, StateDir(tmp_path) as state:
        load_admin_tokens(state.token)
        state.say_url(f"https://127.0.0.1:{port}")
        assert main(["causes", "--state", str(tmp_path)]) == 1
    told = capsys.readouterr().err
    assert "is not trusted" in told
    assert "give --config the service's settings" in told
    assert "see whether it hangs" not in told
