"""The signature is the same in the service and in ceph-mgr, release after release: kept values prove it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from predrain.actions.ceph_mgr.predrain import text_signing

VECTORS = Path(__file__).with_name("signing_vectors.json")


@pytest.mark.parametrize("case", json.loads(VECTORS.read_text()), ids=lambda case: case["name"])
def test_a_text_is_signed_to_the_byte_as_it_was_before(case: dict[str, str]) -> None:
    assert text_signing.get_key_id(case["key"]) == case["key_id"]
    assert text_signing.sign_text(case["key"], case["name"], case["text"]) == case["signed"]
    assert text_signing.verify_text(case["key"], case["name"], case["signed"]) == case["text"]


def test_the_file_alone_verifies_them_where_nothing_else_of_predrain_is() -> None:
    script = (
        "import importlib.util, json, sys\n"
        "spec = importlib.util.spec_from_file_location('signing', sys.argv[1])\n"
        "signing = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(signing)\n"
        "cases = json.load(open(sys.argv[2]))\n"
        "assert all(signing.verify_text(c['key'], c['name'], c['signed']) == c['text'] for c in cases)\n"
        "print(len(cases))\n"
    )
    command = [sys.executable, "-I", "-S", "-c", script, str(text_signing.__file__), str(VECTORS)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert int(done.stdout) > 5
