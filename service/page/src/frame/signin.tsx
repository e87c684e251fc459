/** Who is signed in here: with a token, or at the provider that the service trusts. Where reading needs a name, it asks. */
import { useState } from "preact/hooks";
import { enter, leave } from "../act.ts";
import { moment } from "../format.ts";
import { Modal } from "../pieces.tsx";
import { mayAct, session } from "../state.ts";

export function SignedIn() {
  const [open, setOpen] = useState(false);
  const who = session.value;
  const must = who?.can_read === false;
  const close = (): void => setOpen(false);
  return (
    <>
      <button type="button" class="button link scope" onClick={() => setOpen(true)}>
        {mayAct.value ? <kbd>act</kbd> : <kbd>read only</kbd>}
      </button>
      {(open || must) && (who?.name ? <Leave onDone={close} /> : <Enter onDone={close} must={must} />)}
    </>
  );
}

function Leave({ onDone }: { onDone: () => void }) {
  const who = session.value;
  return (
    <Modal title={`Signed in as ${who?.name ?? "nobody"}`} onClose={onDone}>
      <p>
        May: {who?.scopes.join(", ")}.{who?.ends_at ? ` Until ${moment(who.ends_at, Date.now())} UTC.` : ""}
      </p>
      <div class="buttons">
        <button type="button" class="button plain" onClick={() => void leave().then(onDone)}>
          Sign out
        </button>
      </div>
    </Modal>
  );
}

function Enter({ onDone, must }: { onDone: () => void; must: boolean }) {
  const [text, setText] = useState("");
  const [refused, setRefused] = useState<string | null>(null);
  const elsewhere = session.value?.sign_in_url ?? null;
  const submit = async (): Promise<void> => {
    if (!text.trim()) return;
    const sentence = await enter(text.trim());
    setRefused(sentence);
    if (sentence === null) onDone();
  };
  return (
    <Modal title={must ? "Sign in" : "Reading needs no token, acting does"} onClose={onDone}>
      {elsewhere && (
        <p>
          <a class="button primary" href={`${elsewhere}?back=${encodeURIComponent(location.pathname + location.search)}`}>
            Sign in with your account
          </a>
        </p>
      )}
      <p>
        A token is made by <code>predrain token create</code>; the service's own is in the file <code>token</code> of its state folder. It is
        exchanged for a cookie that no script can read.
      </p>
      <form
        class="buttons"
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <input
          type="password"
          aria-label="Token"
          placeholder="token"
          value={text}
          autocomplete="off"
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <button type="submit" class="button primary">
          Sign in
        </button>
      </form>
      {refused && <p role="alert">{refused}</p>}
    </Modal>
  );
}
