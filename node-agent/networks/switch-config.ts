import { cut, few } from '../../model/brief.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { quote } from '../../model/errors.ts';
import { parseBridgeMappings } from '../../model/networks/context.ts';
import { type Row, rowsOf, type Tables } from '../open-vswitch/ovsdb/replica.ts';
import { mapOf, setOf, textOf } from '../open-vswitch/ovsdb/values.ts';

/** An interface of a bridge that may be hardware: the kernel's (`system`) or a port of DPDK. */
export interface SwitchInterface {
  readonly name: string;
  readonly kind: 'system' | 'dpdk';
  /** `options:dpdk-devargs`. */
  readonly devargs: string | undefined;
  /** `status:numa_id`: what DPDK itself found; -1 and absence mean that it found nothing. */
  readonly numaId: number | undefined;
  /** Undefined while the switch has not looked. */
  readonly linkUp: boolean | undefined;
}

/** A bridge: its own and other internal interfaces by name, and those that may be uplinks. */
export interface SwitchBridge {
  readonly internal: ReadonlySet<string>;
  readonly interfaces: readonly SwitchInterface[];
}

/** What of a configuration is looked at. What is beyond is left out, and a problem says so. */
const MOST_BRIDGES = 1024;
/** Ports of a bridge that may be uplinks: each is asked for in sysfs. */
const MOST_PORTS = 256;
const MOST_PHYSNETS = 256;
const MOST_ADDRESSES = 16;
/** Characters of `ovn-bridge-mappings` and of `ovn-encap-ip`; a mask of the most CPUs there can be. */
const LONGEST_LIST = 32 * 1024;
const LONGEST_MASK = 20_000;
/** Characters of a name (dpdk ports have longer ones than the kernel's) and of a device's arguments. */
const LONGEST_NAME = 63;
const LONGEST_DEVARGS = 1024;
/** The highest id of a NUMA node that DPDK can have found. */
const HIGHEST_CELL = 1023;
/** Faulty pairs that are named. */
const NAMED = 4;

/** What Open vSwitch's configuration says about networks and polling threads. */
export interface SwitchConfig {
  readonly bridges: ReadonlyMap<string, SwitchBridge>;
  /** Bridge by physnet, in the order written. */
  readonly mappings: ReadonlyMap<string, string>;
  /** Addresses of the tunnel's endpoint. */
  readonly encapIps: readonly string[];
  /** CPUs of `pmd-cpu-mask` where poll mode drivers run; empty where none is set: the switch chooses then. */
  readonly pmdCpus: CpuSet;
  /** Whether poll mode drivers may run at all. */
  readonly polls: boolean;
  /** What of the configuration cannot be read. */
  readonly problems: readonly string[];
}

/** Reads the configuration out of the database's tables. */
export function switchConfig(tables: Tables): SwitchConfig {
  const root: Row = [...rowsOf(tables, 'Open_vSwitch').values()][0] ?? {};
  const externalIds = mapOf(root['external_ids']);
  const otherConfig = mapOf(root['other_config']);
  const bridges = new Map<string, SwitchBridge>();
  const problems: string[] = [];
  const seen = new Set<string>();
  let userspace = false;
  for (const bridge of rowsOf(tables, 'Bridge').values()) {
    userspace ||= textOf(bridge['datapath_type']) === 'netdev';
    if (bridges.size === MOST_BRIDGES) {
      problems.push(`the switch has more than ${MOST_BRIDGES} bridges, the rest is not looked at`);
      break;
    }
    bridges.set(textOf(bridge['name']), bridgeOf(tables, bridge, seen, problems));
  }
  const polls = userspace || !['', 'false'].includes(otherConfig.get('dpdk-init') ?? '');
  return {
    bridges,
    mappings: parseMappings(externalIds.get('ovn-bridge-mappings') ?? '', problems),
    encapIps: commaList((externalIds.get('ovn-encap-ip') ?? '').slice(0, LONGEST_LIST)).slice(0, MOST_ADDRESSES),
    polls,
    pmdCpus: polls ? parsePmdMask(otherConfig.get('pmd-cpu-mask') ?? '', problems) : CpuSet.EMPTY,
    problems,
  };
}

/**
 * @param seen rows that were looked at: a port is in one bridge and an interface in one port, so that the work is bounded
 *   by the number of rows whatever the lists say
 */
function bridgeOf(tables: Tables, bridge: Row, seen: Set<string>, problems: string[]): SwitchBridge {
  const internal = new Set<string>();
  const interfaces: SwitchInterface[] = [];
  for (const row of interfaceRows(tables, bridge, seen)) {
    const type = textOf(row['type']);
    const name = textOf(row['name']);
    if (name.length > LONGEST_NAME) continue;
    if (type === 'internal') internal.add(name);
    else if (type === '' || type === 'system' || type === 'dpdk') interfaces.push(interfaceOf(name, row, type));
  }
  if (interfaces.length <= MOST_PORTS) return { internal, interfaces };
  const name = cut(textOf(bridge['name']), LONGEST_NAME);
  problems.push(`bridge ${name} has ${interfaces.length} ports, of which ${MOST_PORTS} are looked at for uplinks`);
  return { internal, interfaces: interfaces.slice(0, MOST_PORTS) };
}

function* interfaceRows(tables: Tables, bridge: Row, seen: Set<string>): Generator<Row> {
  const rowOf = (table: string, id: unknown): Row | undefined => {
    const row = seen.has(String(id)) ? undefined : rowsOf(tables, table).get(String(id));
    if (row !== undefined) seen.add(String(id));
    return row;
  };
  for (const portId of setOf(bridge['ports'])) {
    const port = rowOf('Port', portId);
    for (const id of setOf(port?.['interfaces'])) {
      const row = rowOf('Interface', id);
      if (row !== undefined) yield row;
    }
  }
}

function interfaceOf(name: string, row: Row, type: string): SwitchInterface {
  const numaId = Number.parseInt(mapOf(row['status']).get('numa_id') ?? '', 10);
  const link = textOf(row['link_state']);
  const devargs = mapOf(row['options']).get('dpdk-devargs');
  return {
    name,
    kind: type === 'dpdk' ? 'dpdk' : 'system',
    devargs: devargs !== undefined && devargs.length <= LONGEST_DEVARGS ? devargs : undefined,
    numaId: numaId >= 0 && numaId <= HIGHEST_CELL ? numaId : undefined,
    linkUp: link === '' ? undefined : link === 'up',
  };
}

/** `physnet:bridge,…`, as far as a node can have physnets. */
function parseMappings(text: string, problems: string[]): ReadonlyMap<string, string> {
  const faults: string[] = [];
  const whole = text.length <= LONGEST_LIST ? text : text.slice(0, Math.max(0, text.lastIndexOf(',', LONGEST_LIST)));
  if (whole.length < text.length) {
    problems.push(`ovn-bridge-mappings: it has ${text.length} characters, of which ${whole.length} are read`);
  }
  const mappings = parseBridgeMappings(whole, (pair, why) => faults.push(`ovn-bridge-mappings: ${quote(pair)} ${why}`));
  problems.push(...few(faults, NAMED, LONGEST_NAME * 4));
  if (mappings.length > MOST_PHYSNETS) {
    problems.push(`ovn-bridge-mappings: it has ${mappings.length} physnets, of which ${MOST_PHYSNETS} are read`);
  }
  return new Map(mappings.slice(0, MOST_PHYSNETS).map(({ physnet, bridge }) => [physnet, bridge]));
}

/** Hexadecimal digits of any length; a mask of nothing is as good as none, as in Open vSwitch. */
export function parsePmdMask(text: string, problems: string[]): CpuSet {
  try {
    if (text.length > LONGEST_MASK) throw new Error(`it has ${text.length} characters`);
    return CpuSet.fromMask(text);
  } catch (error) {
    problems.push(`other_config:pmd-cpu-mask: ${(error as Error).message}`);
    return CpuSet.EMPTY;
  }
}

function commaList(text: string): string[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}
