/** What stands around every view: header, demo and halt banners, notices, the view itself, tabs on a phone. */
import { useEffect, useRef } from "preact/hooks";
import { Device } from "../device/device.tsx";
import { DrainView } from "../drains/drain.tsx";
import { Drains } from "../drains/drains.tsx";
import { Fleet } from "../fleet/fleet.tsx";
import { Loading } from "../pieces.tsx";
import { osdLink } from "../links.ts";
import { go, route } from "../route.ts";
import { notice, osdByNumber, osds, partsDown, status } from "../state.ts";
import { Alerts } from "../views/alerts.tsx";
import { Clusters } from "../views/clusters.tsx";
import { Events } from "../views/events.tsx";
import { Report } from "../views/report.tsx";
import { Forecast } from "../forecast/forecast.tsx";
import { DemoBanner } from "./demo.tsx";
import { Find } from "./find.tsx";
import { HaltAsked, Halted } from "./halt.tsx";
import { Header, Tabs } from "./header.tsx";
import { Help } from "./help.tsx";

export function Frame() {
  return (
    <>
      <a class="skip" href="#view">
        Skip to the view
      </a>
      <Header />
      <main id="view" tabIndex={-1}>
        <Said />
        <DemoBanner />
        <Halted />
        <PartsDown />
        <Standby />
        <CurrentView />
      </main>
      <Tabs />
      <HaltAsked />
      <Find />
      <Help />
    </>
  );
}

function CurrentView() {
  const { view } = route.value;
  const cluster = status.value?.cluster;
  useEffect(() => {
    document.title = ["predrain", cluster, view.name === "fleet" ? null : view.name].filter(Boolean).join(" - ");
  }, [cluster, view.name]);
  useFocusInView(JSON.stringify(view));
  switch (view.name) {
    case "fleet":
      return <Fleet />;
    case "device":
      return <Device id={view.id} key={view.id} />;
    case "osd":
      return <OsdRedirect osd={view.osd} />;
    case "drains":
      return <Drains />;
    case "drain":
      return <DrainView id={view.id} key={view.id} />;
    case "events":
      return <Events />;
    case "alerts":
      return <Alerts />;
    case "forecast":
      return <Forecast />;
    case "clusters":
      return <Clusters />;
    case "report":
      return <Report />;
    case "nowhere":
      return (
        <section class="view">
          <h1>Nothing is at {view.path}</h1>
          <p>
            All disks are on the <a href="/fleet">fleet</a>.
          </p>
        </section>
      );
  }
}

/** A link that was followed by key is gone with its view: the next Tab begins in the new one, not at the top of the page. */
function useFocusInView(view: string): void {
  const before = useRef(view);
  useEffect(() => {
    if (before.current === view) return;
    before.current = view;
    if (document.activeElement === document.body) document.getElementById("view")?.focus({ preventScroll: true });
  }, [view]);
}

/** `/osds/217` leads to the device that is under it now. */
function OsdRedirect({ osd }: { osd: number }) {
  const known = osdByNumber.value.get(osd);
  useEffect(() => {
    if (known?.device) go(osdLink(known), true);
  }, [known]);
  if (osds.value === null) return <Loading />;
  return (
    <section class="view">
      <h1>osd.{osd}</h1>
      <p>{known ? "No device id is reported for this OSD: its disk has no readable serial number." : osds.value.length ? "The cluster has no such OSD." : "No cluster is seen here, so none of its OSDs is known."}</p>
    </section>
  );
}

function PartsDown() {
  const down = Object.entries(partsDown.value);
  if (down.length === 0) return null;
  return (
    <div class="banner warn" role="status">
      {down.map(([part, sentence]) => (
        <span key={part}>
          <b>No {part} now:</b> {sentence} What else is shown still holds.
        </span>
      ))}
    </div>
  );
}

function Standby() {
  const service = status.value?.service;
  if (service?.role !== "standby") return null;
  const url = service.active?.url;
  return (
    <div class="banner" role="status">
      <span>
        {service.sentence} What is shown here is read from the same store. {url ? <a href={url}>Open the active one</a> : null}
      </span>
    </div>
  );
}

/** The answer to the last click. It is the first part of the view: a sticky part below a tall banner would begin below the window. */
function Said() {
  const said = notice.value;
  if (!said) return null;
  return (
    <div class={`banner ${said.kind}`} role="status">
      <span>{said.text}</span>
      <button type="button" class="button link" onClick={() => (notice.value = null)}>
        Close
      </button>
    </div>
  );
}
