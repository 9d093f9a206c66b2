import { signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { go } from '../state/route.ts';
import { applyZone, zone } from '../state/time-zone.ts';

const KEY = 'plumbline-shortcuts';

/** Users of speech input turn them off: a spoken letter would trigger one. */
const enabled = signal(remembered());
const open = signal(false);

const focusOn = (selector: string) => document.querySelector<HTMLElement>(selector)?.focus();

const SHORTCUTS: readonly (readonly [key: string, what: string, act: () => void])[] = [
  ['/', 'Search the list', () => focusOn('.controls input')],
  ['1', 'Nodes', () => go({ list: 'nodes' })],
  ['2', 'VMs', () => go({ list: 'vms' })],
  ['3', 'Waiting', () => go({ list: 'waiting' })],
  ['l', 'Focus the list: arrows move, Enter opens', () => focusOn('[role="grid"]')],
  ['u', 'Switch times between UTC and local time', () => applyZone(zone.value === 'utc' ? 'local' : 'utc')],
  [
    '?',
    'This list',
    () => {
      open.value = !open.value;
    },
  ],
];

function remembered(): boolean {
  try {
    return localStorage.getItem(KEY) !== 'off';
  } catch {
    return true;
  }
}

function enable(on: boolean): void {
  enabled.value = on;
  try {
    localStorage.setItem(KEY, on ? 'on' : 'off');
  } catch {
    // Without storage, the next page has them on.
  }
}

const isTyping = (target: EventTarget | null) =>
  target instanceof HTMLElement && target.closest('input, select, textarea, [contenteditable]') !== null;

/** Single keys for the most common actions, and the list of them. */
export function Shortcuts() {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isTyping(event.target)) return;
      const found = SHORTCUTS.find(([key]) => key === event.key);
      if (found === undefined || (!enabled.value && event.key !== '?')) return;
      event.preventDefault();
      found[2]();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  const shown = open.value;
  useEffect(() => {
    if (shown) dialog.current?.showModal();
    else dialog.current?.close();
  }, [shown]);
  return (
    <dialog
      ref={dialog}
      class="shortcuts"
      aria-labelledby="shortcuts"
      onClose={() => {
        open.value = false;
      }}
    >
      <h2 id="shortcuts">Keyboard</h2>
      <dl>
        {SHORTCUTS.map(([key, what]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
        <div>
          <dt>
            <kbd>Esc</kbd>
          </dt>
          <dd>Back to the list</dd>
        </div>
      </dl>
      <label>
        <input
          type="checkbox"
          checked={enabled.value}
          onChange={({ currentTarget }) => enable(currentTarget.checked)}
        />{' '}
        Enable single-key shortcuts
      </label>
      <form method="dialog">
        <button type="submit">Close</button>
      </form>
    </dialog>
  );
}

export function ShortcutsButton() {
  return (
    <button
      type="button"
      class="help"
      aria-haspopup="dialog"
      onClick={() => {
        open.value = true;
      }}
    >
      <span class="unseen">Keyboard shortcuts</span>
      <span aria-hidden="true">?</span>
    </button>
  );
}
