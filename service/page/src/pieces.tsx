/** Small pieces that every view uses: times, links to disks, states of loading, a button that says why it is off. */
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { bothClocks, moment, sentence } from "./format.ts";
import { deviceLink, osdLink } from "./links.ts";
import { actingOff, notice, now, osds } from "./state.ts";

/** An instant in UTC; hover or focus adds the reader's own clock. */
export function At({ time, wide = false }: { time: string | number | null; wide?: boolean }) {
  if (time === null) return <span class="muted">not reported</span>;
  return (
    <time dateTime={new Date(time).toISOString()} title={bothClocks(time)}>
      {moment(time, wide ? null : now.value)}
    </time>
  );
}

/** "osd.217" where an OSD is known, else the device's id. */
export function DiskLink({ osd, device }: { osd: number | null; device: string | null }) {
  if (osd !== null) return <a href={osdLink({ osd, device })}>osd.{osd}</a>;
  if (device === null) return <span class="muted">a disk without id</span>;
  const known = osds.value?.find((one) => one.device === device);
  return <a href={deviceLink(device)}>{known ? `osd.${known.osd}` : device}</a>;
}

/** Grey bars where facts will stand, only after 300 ms, so that a quick answer does not flicker. */
export function Loading({ lines = 3 }: { lines?: number }) {
  const [late, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), 300);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div class="loading" aria-busy="true">
      {late && Array.from({ length: lines }, (_, line) => <span class="bar" key={line} />)}
      <span class="unseen">Loading</span>
    </div>
  );
}

export function Refused({ sentence }: { sentence: string }) {
  return <p class="refused-line">{sentence}</p>;
}

/** A button that asks something of the cluster: visible always, off with its reason when it may not be pressed. */
export function Acting(props: {
  children: ComponentChildren;
  onPress: () => void;
  kind?: "primary" | "plain" | "link" | "halt";
  off?: string | null;
}) {
  const off = props.off ?? actingOff.value;
  return (
    <button
      type="button"
      class={`button ${props.kind ?? "plain"}`}
      aria-disabled={off ? "true" : undefined}
      title={off ?? undefined}
      onClick={() => {
        if (off === null) props.onPress();
        // A finger does not hover: without this the button would seem broken.
        else notice.value = { kind: "refused", text: `Nothing was done: ${sentence(off)}` };
      }}
    >
      {props.children}
    </button>
  );
}

/** The reason beside acting buttons that are off, for those who do not hover. */
export function WhyOff() {
  const off = actingOff.value;
  return off ? <span class="muted why-off">{off}</span> : null;
}

/** A question before what cannot be undone at once. Opened as a modal dialog; Esc answers no. */
export function Question(props: {
  title: string;
  children: ComponentChildren;
  yes: string;
  /** What must be typed first, where the step cannot be taken back. */
  typed?: string;
  /** False while something else that must be filled in is missing. */
  filled?: boolean;
  onYes: () => void;
  onClose: () => void;
}) {
  const [text, setText] = useState("");
  const ready = (!props.typed || text.trim() === props.typed) && props.filled !== false;
  return (
    <Modal title={props.title} onClose={props.onClose}>
      <div class="question">{props.children}</div>
      {props.typed && (
        <label class="typed">
          Type <b>{props.typed}</b> to go on
          <input value={text} onInput={(event) => setText(event.currentTarget.value)} autocomplete="off" spellcheck={false} />
        </label>
      )}
      <div class="buttons">
        <button
          type="button"
          class="button primary"
          disabled={!ready}
          onClick={() => {
            props.onClose();
            props.onYes();
          }}
        >
          {props.yes}
        </button>
        <button type="button" class="button plain" onClick={props.onClose}>
          Leave it as it is
        </button>
      </div>
    </Modal>
  );
}

export function Modal(props: { title: string; children: ComponentChildren; onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    if (dialog.current?.open === false) dialog.current.showModal(); // again, where Esc closed what must be answered
  });
  useLayoutEffect(() => {
    const element = dialog.current;
    return () => element?.close(); // gives the focus back to where it was
  }, []);
  return (
    <dialog
      class="modal"
      aria-label={props.title}
      ref={dialog}
      onClose={props.onClose}
      onClick={(event) => {
        if (event.target === event.currentTarget) props.onClose();
      }}
    >
      <div class="modal-inner">
        <h2>{props.title}</h2>
        {props.children}
      </div>
    </dialog>
  );
}
