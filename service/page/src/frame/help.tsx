/** The keys, listed; and the switch that takes the letters away from those who dictate. */
import { KEYS, helpOpen, lettersOn, setLetters } from "../keys.ts";
import { Modal } from "../pieces.tsx";
import { CONDITIONS } from "../condition.ts";
import { WORDS } from "../forms.ts";
import { Shape } from "../shape.tsx";

export function Help() {
  if (!helpOpen.value) return null;
  return (
    <Modal title="Keys and shapes" onClose={() => (helpOpen.value = false)}>
      <dl class="keys">
        {KEYS.map((key) => (
          <div key={key.keys}>
            <dt>
              <kbd>{key.keys}</kbd>
            </dt>
            <dd>{key.does}</dd>
          </div>
        ))}
      </dl>
      <ul class="shapes">
        {CONDITIONS.map((condition) => (
          <li key={condition}>
            <Shape of={condition} /> {WORDS[condition]}
          </li>
        ))}
      </ul>
      <label class="check">
        <input type="checkbox" checked={lettersOn.value} onChange={(event) => setLetters(event.currentTarget.checked)} />
        Letters work as keys
      </label>
      <p class="muted">No key acts on the cluster.</p>
    </Modal>
  );
}
