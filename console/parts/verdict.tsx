import type { Verdict } from '../data/wire.ts';

const LOOK: Readonly<Record<Verdict, string>> = {
  ok: 'badge is-good',
  stopped: 'badge is-stopped',
  waiting: 'badge is-waiting',
  degraded: 'badge is-waiting',
  broken: 'badge is-bad',
};

/** The state of a VM, in the same word as every output of Plumbline. */
export function VerdictBadge({ verdict, reason }: { readonly verdict: Verdict; readonly reason: string }) {
  return (
    <span class={LOOK[verdict]} title={reason}>
      {verdict === 'ok' ? 'ok' : `${verdict}: ${reason}`}
    </span>
  );
}
