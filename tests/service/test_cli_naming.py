"""Which drain `osd.N` names at the command line."""

from __future__ import annotations

import pytest

from predrain.actions.core.messages import describe_state
from predrain.data.drain import DrainState, Intent
from predrain.service.access.requester import PERSON_HEADER
from predrain.service.cli import main
from predrain.service.cli.drain_names import NoOpenDrain, SeveralDrains, choose_drain
from predrain.service.terminal.person import name_typist
from predrain.service.terminal.service_connection import CliClient, RestReply
from tests.service.conftest import Place
from tests.service.test_drains import Site, World, ask_drain, proposed, site, world  # noqa: F401


def drains(*states: str) -> list[dict[str, str]]:
    """Newest first."""
    return [{"id": f"d{number}", "state": state} for number, state in enumerate(states)]


@pytest.mark.parametrize("ended", [False, True])
@pytest.mark.parametrize("state", sorted(set(DrainState) - {DrainState.CANCELLED, DrainState.HANDED_OVER}))
def test_the_drain_that_has_not_ended_is_meant_before_newer_ones(state: DrainState, ended: bool) -> None:
    assert choose_drain("osd.3", drains("cancelled", state, "handed_over"), ended=ended) == "d1"


def test_a_drain_that_is_put_back_yields_to_the_one_that_goes_on() -> None:
    assert choose_drain("osd.3", drains("cancelling", "draining"), ended=False) == "d1"
    assert choose_drain("osd.3", drains("draining", "cancelling"), ended=False) == "d0"


def test_of_ended_drains_the_newest_is_explained_and_none_is_acted_on() -> None:
    assert choose_drain("osd.3", drains("handed_over", "cancelled"), ended=True) == "d0"
    with pytest.raises(NoOpenDrain, match=r"d0 \(handed_over\).*predrain drain explain osd\.3"):
        choose_drain("osd.3", drains("handed_over", "cancelled"), ended=False)


def test_an_osd_without_any_drain_is_told_how_to_get_one() -> None:
    for ended in (False, True):
        with pytest.raises(NoOpenDrain, match=r"predrain drain apply osd\.3"):
            choose_drain("osd.3", [], ended=ended)


def test_two_drains_that_go_on_are_not_guessed_between() -> None:
    with pytest.raises(SeveralDrains, match=r"d0 \(draining\), d1 \(paused\)"):
        choose_drain("osd.3", drains("draining", "paused"), ended=True)


def test_commands_take_the_osd_and_the_journal_names_the_person_who_typed(
    world: World,  # noqa: F811
    site: Site,  # noqa: F811
    place: Place,
    capsys: pytest.CaptureFixture[str],
) -> None:
    drain = proposed(site)["id"]
    place.state.url.write_text(str(site.client.base_url))
    here = ["osd.0", "--state", str(place.state.path)]
    assert main(["drain", "pause", *here]) == 0
    assert capsys.readouterr().out == f"{drain}: paused\n"
    assert main(["drain", "reject", *here]) == 1
    assert f"{drain} is paused, no longer proposed" in capsys.readouterr().err
    assert main(["drain", "resume", *here]) == 0
    assert main(["drain", "reject", *here]) == 0
    kept = world.application.store.drain(drain)
    assert kept is not None
    who = f"{name_typist()} (command line)"
    assert (kept.state, kept.cancelled_by, kept.ended_why) == (DrainState.CANCELLED, who, f"reject by {who}")


def test_a_drain_that_is_approved_while_another_person_rejects_it_goes_on_and_that_person_is_told(
    site: Site,  # noqa: F811
    place: Place,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drain, reject = proposed(site), CliClient.post
    place.state.url.write_text(str(site.client.base_url))

    def approve_first(client: CliClient, path: str, body: object = None) -> RestReply:
        assert ask_drain(site, drain, "approve", **{"If-Match": drain["etag"]}).status_code == 200
        return reject(client, path, body)

    monkeypatch.setattr(CliClient, "post", approve_first)
    assert main(["drain", "reject", "osd.0", "--state", str(place.state.path)]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert f"{drain['id']} is approved, no longer proposed, and was not rejected" in told.err
    assert f"predrain drain cancel {drain['id']}" in told.err
    shown = site.client.get(f"/api/v1/drains/{drain['id']}").json()
    assert shown["state"] == "approved"
    lines = site.client.get(f"/api/v1/drains/{drain['id']}/journal").json()["items"]
    assert [line["decision"] for line in lines] == ["propose", "approve"]


def test_only_the_token_of_the_services_own_file_names_a_person(site: Site) -> None:  # noqa: F811
    said = {PERSON_HEADER: "ada%20on%20stor%2D1"}
    halting = {"url": "/api/v1/halt", "json": {"reason": "maintenance"}}
    assert site.client.post(**halting, headers={**site.ingesting, **said}).status_code == 403
    assert site.client.post(**halting, headers={**site.acting, **said}).status_code == 200
    lines = site.client.get("/api/v1/audit", headers=site.acting).json()["items"]
    assert [line["caller"] for line in lines] == ["collectors", "ada on stor-1 (command line)"]


@pytest.mark.parametrize("said", ["", "%20", "%00%1b", "%ff"])
def test_a_name_of_nothing_that_can_be_read_leaves_the_name_of_the_token_or_is_made_readable(
    site: Site,  # noqa: F811
    said: str,
) -> None:
    site.client.post("/api/v1/halt", json={"reason": "x"}, headers={**site.acting, PERSON_HEADER: said})
    (line,) = site.client.get("/api/v1/audit", headers=site.acting).json()["items"]
    assert line["caller"].isprintable()
    assert line["caller"].strip()


def test_every_state_of_every_intent_has_a_text_and_no_fill_or_quarantine_is_told_as_a_drain() -> None:
    for intent in Intent:
        for state in DrainState:
            assert "_" not in describe_state(state, intent)
    for intent in (Intent.FILL, Intent.QUARANTINE):
        assert not any("drain" in describe_state(state, intent) for state in DrainState)
