/** Counters of one datapath since the daemon was started. A number that the datapath does not tell is absent. */
export interface DatapathCounters {
  /** `system@ovs-system` (the kernel's) or `netdev@ovs-netdev` (in user space). */
  readonly datapath: string;
  /** Packets that matched no flow and went up to ovs-vswitchd. */
  readonly upcalls: number | undefined;
  /** Packets that should have gone up and were dropped, as nobody took them in time. */
  readonly lost: number | undefined;
  /** Flows now. */
  readonly flows: number | undefined;
  /** Packets that its ports dropped, received and to be sent. */
  readonly dropped: { readonly rx: number; readonly tx: number };
}

interface Reading {
  datapath: string;
  upcalls: number | undefined;
  lost: number | undefined;
  flows: number | undefined;
  dropped: { rx: number; tx: number };
}

/**
 * Reads what `dpctl/show -s` says; lines that are not known are passed over.
 * Source: show_dpif in lib/dpctl.c of Open vSwitch.
 */
export function parseDatapaths(text: string): DatapathCounters[] {
  const found: Reading[] = [];
  for (const line of text.split('\n')) {
    const name = /^(\S+@\S+):$/.exec(line)?.[1];
    if (name !== undefined) {
      const none = { upcalls: undefined, lost: undefined, flows: undefined };
      found.push({ datapath: name, ...none, dropped: { rx: 0, tx: 0 } });
    }
    const last = found.at(-1);
    if (last !== undefined) readLine(line.trim(), last);
  }
  return found;
}

function readLine(line: string, into: Reading): void {
  if (line.startsWith('lookups:')) {
    into.upcalls = numberIn(line, 'missed');
    into.lost = numberIn(line, 'lost');
  } else if (line.startsWith('flows:')) {
    into.flows = numberIn(line, 'flows');
  } else if (line.startsWith('RX packets:')) {
    into.dropped.rx += numberIn(line, 'dropped') ?? 0;
  } else if (line.startsWith('TX packets:')) {
    into.dropped.tx += numberIn(line, 'dropped') ?? 0;
  }
}

/** What follows `name:`; a question mark stands for a number that the datapath does not know. */
function numberIn(line: string, name: string): number | undefined {
  const digits = new RegExp(`\\b${name}: ?(\\d+)`).exec(line)?.[1];
  return digits === undefined ? undefined : Number(digits);
}
