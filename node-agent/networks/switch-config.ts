import { CpuSet } from '../../model/cpu-set.ts';
import { type Row, rowsOf, type Tables } from '../ovsdb/replica.ts';
import { mapOf, setOf, textOf } from '../ovsdb/values.ts';

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
  let userspace = false;
  for (const bridge of rowsOf(tables, 'Bridge').values()) {
    userspace ||= textOf(bridge['datapath_type']) === 'netdev';
    bridges.set(textOf(bridge['name']), bridgeOf(tables, bridge));
  }
  const problems: string[] = [];
  const polls = userspace || !['', 'false'].includes(otherConfig.get('dpdk-init') ?? '');
  return {
    bridges,
    mappings: parseMappings(externalIds.get('ovn-bridge-mappings') ?? '', problems),
    encapIps: commaList(externalIds.get('ovn-encap-ip') ?? ''),
    polls,
    pmdCpus: polls ? parsePmdMask(otherConfig.get('pmd-cpu-mask') ?? '', problems) : CpuSet.EMPTY,
    problems,
  };
}

function bridgeOf(tables: Tables, bridge: Row): SwitchBridge {
  const internal = new Set<string>();
  const interfaces: SwitchInterface[] = [];
  for (const portId of setOf(bridge['ports'])) {
    const port = rowsOf(tables, 'Port').get(String(portId));
    for (const id of setOf(port?.['interfaces'])) {
      const row = rowsOf(tables, 'Interface').get(String(id));
      if (row === undefined) continue;
      const type = textOf(row['type']);
      if (type === 'internal') internal.add(textOf(row['name']));
      else if (type === '' || type === 'system' || type === 'dpdk') interfaces.push(interfaceOf(row, type));
    }
  }
  return { internal, interfaces };
}

function interfaceOf(row: Row, type: string): SwitchInterface {
  const numaId = Number.parseInt(mapOf(row['status']).get('numa_id') ?? '', 10);
  const link = textOf(row['link_state']);
  return {
    name: textOf(row['name']),
    kind: type === 'dpdk' ? 'dpdk' : 'system',
    devargs: mapOf(row['options']).get('dpdk-devargs'),
    numaId: numaId >= 0 ? numaId : undefined,
    linkUp: link === '' ? undefined : link === 'up',
  };
}

/** `physnet:bridge,…`; a name may hold no colon, as in OVN itself. */
function parseMappings(text: string, problems: string[]): ReadonlyMap<string, string> {
  const mappings = new Map<string, string>();
  for (const pair of commaList(text)) {
    const [physnet = '', bridge = ''] = pair.split(':');
    if (physnet === '' || bridge === '') problems.push(`ovn-bridge-mappings: ${JSON.stringify(pair)} maps nothing`);
    else mappings.set(physnet, bridge);
  }
  return mappings;
}

/** Hexadecimal digits of any length; a mask of nothing is as good as none, as in Open vSwitch. */
export function parsePmdMask(text: string, problems: string[]): CpuSet {
  try {
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
