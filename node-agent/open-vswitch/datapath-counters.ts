/** Counters of one datapath since the daemon started. A number that the datapath does not report is absent. */
export interface DatapathCounters {
  /** `system@ovs-system` (the kernel's) or `netdev@ovs-netdev` (in user space). */
  readonly datapath: string;
  /** Packets that matched no flow and went to ovs-vswitchd. */
  readonly upcalls: number | undefined;
  /** Packets for ovs-vswitchd that were dropped because no handler received them in time. */
  readonly lost: number | undefined;
  /** The current number of flows. */
  readonly flows: number | undefined;
  /** Packets that the ports dropped, received and sent. */
  readonly dropped: { readonly rx: number; readonly tx: number };
}

interface Reading {
  datapath: string;
  upcalls: number | undefined;
  lost: number | undefined;
  flows: number | undefined;
  dropped: { rx: number; tx: number };
}

/** Maximum characters to parse; the rest is ignored. A node with a thousand ports has half a million. */
const MOST_CHARACTERS = 4 * 1024 * 1024;
/** Maximum datapaths, each a label of metrics (a host has one or two); characters of a name; digits of a number. */
const MOST_DATAPATHS = 8;
const LONGEST_NAME = 64;
const MOST_DIGITS = 15;

/**
 * Parses the output of `dpctl/show -s`, each character once; lines of another format are ignored. Source: show_dpif in
 * lib/dpctl.c of Open vSwitch.
 */
export function parseDatapaths(text: string): DatapathCounters[] {
  const found: Reading[] = [];
  for (const line of text.slice(0, MOST_CHARACTERS).split('\n')) {
    const name = datapathIn(line);
    if (name !== undefined) {
      if (found.length === MOST_DATAPATHS) break;
      const none = { upcalls: undefined, lost: undefined, flows: undefined };
      found.push({ datapath: name, ...none, dropped: { rx: 0, tx: 0 } });
    }
    const last = found.at(-1);
    if (last !== undefined) readLine(line.trim(), last);
  }
  return found;
}

/** `system@ovs-system:` */
function datapathIn(line: string): string | undefined {
  if (line.length > LONGEST_NAME || !line.endsWith(':') || line.includes(' ')) return undefined;
  const at = line.indexOf('@');
  return at > 0 && at < line.length - 2 ? line.slice(0, -1) : undefined;
}

function readLine(line: string, into: Reading): void {
  if (line.startsWith('lookups:')) {
    into.upcalls = numberIn(line, ' missed:');
    into.lost = numberIn(line, ' lost:');
  } else if (line.startsWith('flows:')) {
    into.flows = numberIn(line, 'flows:');
  } else if (line.startsWith('RX packets:')) {
    into.dropped.rx += numberIn(line, ' dropped:') ?? 0;
  } else if (line.startsWith('TX packets:')) {
    into.dropped.tx += numberIn(line, ' dropped:') ?? 0;
  }
}

/** The digits after a name; a question mark means that the datapath does not report the number. */
function numberIn(line: string, name: string): number | undefined {
  const at = line.indexOf(name);
  if (at < 0) return undefined;
  let end = at + name.length;
  if (line[end] === ' ') end++;
  const begin = end;
  while (end - begin < MOST_DIGITS && isDigit(line.charCodeAt(end))) end++;
  return end === begin ? undefined : Number(line.slice(begin, end));
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}
