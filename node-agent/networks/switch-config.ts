import { cut, few } from '../../model/brief.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { quote } from '../../model/errors.ts';
import { parseBridgeMappings } from '../../model/networks/context.ts';
import { mapOf, type Row, rowsOf, setOf, type Tables, textOf } from '../open-vswitch/ovsdb/replica.ts';

/** An interface of a bridge that may be hardware: the kernel's (`system`, or polled by `afxdp`) or a port of DPDK. */
export interface SwitchInterface {
  readonly name: string;
  readonly kind: 'system' | 'afxdp' | 'dpdk';
  /** `options:dpdk-devargs`. */
  readonly devargs: string | undefined;
  /** `status:numa_id`, as DPDK found it; -1 and absence mean unknown. */
  readonly numaId: number | undefined;
  /** Undefined while the switch has not determined it. */
  readonly linkUp: boolean | undefined;
}

/** A bridge: its own and other internal interfaces by name, its patch ports, and those that may be uplinks. */
export interface SwitchBridge {
  readonly internal: ReadonlySet<string>;
  /** The peer of each patch port: the name of a patch port of another bridge. */
  readonly patches: ReadonlyMap<string, string>;
  readonly interfaces: readonly SwitchInterface[];
}

/** Limits of the configuration that is read. The rest is skipped, and a problem reports that. */
const MOST_BRIDGES = 1024;
/** Maximum ports of a bridge that may be uplinks: each needs a read of sysfs. */
const MOST_PORTS = 256;
const MOST_PHYSNETS = 256;
const MAX_CHASSIS = 16;
const MOST_ADDRESSES = 16;
/** Maximum characters of `ovn-bridge-mappings` and `ovn-encap-ip`, and of a mask with the highest possible CPU. */
const LONGEST_LIST = 32 * 1024;
const LONGEST_MASK = 20_000;
/** Maximum characters of a name (DPDK ports have longer names than the kernel's) and of a device's arguments. */
const LONGEST_NAME = 63;
const LONGEST_DEVARGS = 1024;
/** The highest id of a NUMA node that DPDK can report. */
const HIGHEST_CELL = 1023;
/** Maximum number of faulty pairs in a problem. */
const NAMED = 4;

/** The networks and polling threads in Open vSwitch's configuration. */
export interface SwitchConfig {
  readonly bridges: ReadonlyMap<string, SwitchBridge>;
  /** Bridges of which ovn-controllers connect every network of OVN to the other bridges. */
  readonly integration: ReadonlySet<string>;
  /** Bridges by physnet, in the order written: several if OVN instances differ. */
  readonly mappings: ReadonlyMap<string, readonly string[]>;
  /** Addresses of the tunnel's endpoints, of all OVN instances. */
  readonly encapIps: readonly string[];
  /** Whether OVN instances differ in these addresses. */
  readonly hasSeveralEndpoints: boolean;
  /** CPUs of `pmd-cpu-mask` where poll mode drivers run; empty where it is not set and the switch chooses. */
  readonly pmdCpus: CpuSet;
  /** Whether poll mode drivers may run at all. */
  readonly polls: boolean;
  /** The unreadable parts of the configuration. */
  readonly problems: readonly string[];
}

/** Reads the configuration from the database's tables. */
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
      problems.push(`the switch has more than ${MOST_BRIDGES} bridges; the rest is ignored`);
      break;
    }
    bridges.set(textOf(bridge['name']), bridgeOf(tables, bridge, seen, problems));
  }
  const chassis = chassisOf(externalIds, problems);
  const endpoints = valuesOf('ovn-encap-ip', externalIds, chassis)
    .map((text) => commaList(text.slice(0, LONGEST_LIST)))
    .filter((addresses) => addresses.length > 0);
  const polls = userspace || !['', 'false'].includes(otherConfig.get('dpdk-init') ?? '');
  return {
    bridges,
    integration: integrationBridges(externalIds),
    mappings: mergeMappings(valuesOf('ovn-bridge-mappings', externalIds, chassis), problems),
    encapIps: [...new Set(endpoints.flat())].slice(0, MOST_ADDRESSES),
    hasSeveralEndpoints: endpoints.length > 1,
    polls,
    pmdCpus: polls ? parsePmdMask(otherConfig.get('pmd-cpu-mask') ?? '', problems) : CpuSet.EMPTY,
    problems,
  };
}

/**
 * @param seen rows already read: a port is in one bridge and an interface in one port, so the number of rows bounds the
 * work, whatever the lists contain
 */
function bridgeOf(tables: Tables, bridge: Row, seen: Set<string>, problems: string[]): SwitchBridge {
  const internal = new Set<string>();
  const patches = new Map<string, string>();
  const interfaces: SwitchInterface[] = [];
  for (const row of interfaceRows(tables, bridge, seen)) {
    const type = textOf(row['type']);
    const name = textOf(row['name']);
    if (name.length > LONGEST_NAME) continue;
    if (type === 'internal') internal.add(name);
    else if (type === 'patch') patches.set(name, mapOf(row['options']).get('peer') ?? '');
    else if (isUplinkType(type)) interfaces.push(interfaceOf(name, row, type));
  }
  if (interfaces.length <= MOST_PORTS) return { internal, patches, interfaces };
  const name = cut(textOf(bridge['name']), LONGEST_NAME);
  problems.push(`bridge ${name} has ${interfaces.length} ports; only ${MOST_PORTS} are checked for uplinks`);
  return { internal, patches, interfaces: interfaces.slice(0, MOST_PORTS) };
}

type UplinkType = '' | SwitchInterface['kind'] | 'afxdp-nonpmd';

function isUplinkType(type: string): type is UplinkType {
  return ['', 'system', 'dpdk', 'afxdp', 'afxdp-nonpmd'].includes(type);
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

function interfaceOf(name: string, row: Row, type: UplinkType): SwitchInterface {
  const numaId = Number.parseInt(mapOf(row['status']).get('numa_id') ?? '', 10);
  const link = textOf(row['link_state']);
  const devargs = mapOf(row['options']).get('dpdk-devargs');
  return {
    name,
    kind: type === 'dpdk' || type === 'afxdp' ? type : 'system',
    devargs: devargs !== undefined && devargs.length <= LONGEST_DEVARGS ? devargs : undefined,
    numaId: numaId >= 0 && numaId <= HIGHEST_CELL ? numaId : undefined,
    linkUp: link === '' ? undefined : link === 'up',
  };
}

/** Any key of an option that is read for one chassis. `ovn-encap-ip-default` is an option of its own. */
const CHASSIS_KEY = /^ovn-(?:bridge-mappings|encap-type|encap-ip(?!-default(?:-|$)))-(.+)$/s;

/**
 * The names of the OVN instances: the system-id, and every suffix `-<chassis>` of an option, because a name may also come
 * from a command line or the file system-id-override. Undefined: an instance without a name.
 *
 * Source: OVN, controller/chassis.c, get_ovs_chassis_id; ovn-controller(8).
 */
function chassisOf(externalIds: ReadonlyMap<string, string>, problems: string[]): readonly (string | undefined)[] {
  const systemId = externalIds.get('system-id');
  const others = new Set([...externalIds.keys()].flatMap((key) => CHASSIS_KEY.exec(key)?.[1] ?? []));
  others.delete(systemId ?? '');
  const chassis = systemId === undefined && others.size > 0 ? [...others] : [systemId, ...others];
  // Two instances share a switch only with an integration bridge for each.
  const unlikely = [...others].filter((name) => systemId !== undefined && !externalIds.has(`ovn-bridge-${name}`));
  if (unlikely.length > 0) {
    const names = few(unlikely, NAMED, LONGEST_NAME).join(', ');
    problems.push(
      `external_ids configure chassis ${names}, which is neither the system-id nor has an ovn-bridge-<chassis>; its networks count`,
    );
  }
  if (chassis.length > MAX_CHASSIS) {
    problems.push(`external_ids configure ${chassis.length} chassis; only ${MAX_CHASSIS} are read`);
  }
  return chassis.slice(0, MAX_CHASSIS);
}

/**
 * The different values of an option. An instance prefers the option with its own suffix, even an empty one.
 *
 * Source: OVN, lib/ovn-util.c, get_chassis_external_id_value.
 */
function valuesOf(
  option: string,
  externalIds: ReadonlyMap<string, string>,
  chassis: readonly (string | undefined)[],
): readonly string[] {
  const own = (name: string | undefined) => (name === undefined ? undefined : externalIds.get(`${option}-${name}`));
  return [...new Set(chassis.map((name) => own(name) ?? externalIds.get(option) ?? ''))];
}

/** The values of `ovn-bridge` for any chassis, and the default. */
function integrationBridges(externalIds: ReadonlyMap<string, string>): ReadonlySet<string> {
  const keys = [...externalIds.keys()].filter((key) => /^ovn-bridge(?!-mappings)/.test(key));
  return new Set(['br-int', ...keys.map((key) => externalIds.get(key) ?? '')]);
}

/** The physnets of all instances. If they map one to different bridges, all of these count, with a problem. */
function mergeMappings(texts: readonly string[], problems: string[]): ReadonlyMap<string, readonly string[]> {
  const mappings = new Map<string, string[]>();
  for (const text of texts) {
    for (const [physnet, bridge] of parseMappings(text, problems)) {
      const bridges = mappings.get(physnet) ?? [];
      if (!bridges.includes(bridge)) mappings.set(physnet, [...bridges, bridge]);
    }
  }
  const different = [...mappings]
    .filter(([, bridges]) => bridges.length > 1)
    .map(([physnet, bridges]) => {
      const names = few(bridges, NAMED, LONGEST_NAME).join(' and ');
      return `OVN instances map physnet ${cut(physnet, LONGEST_NAME)} to different bridges: ${names}; all of them count`;
    });
  problems.push(...few(different, NAMED, LONGEST_NAME * 8));
  if (mappings.size > MOST_PHYSNETS) {
    problems.push(`ovn-bridge-mappings has ${mappings.size} physnets; only ${MOST_PHYSNETS} are read`);
  }
  return new Map([...mappings].slice(0, MOST_PHYSNETS));
}

/** `physnet:bridge,…`, up to the number of physnets that a node can have. */
function parseMappings(text: string, problems: string[]): ReadonlyMap<string, string> {
  const faults: string[] = [];
  const whole = text.length <= LONGEST_LIST ? text : text.slice(0, Math.max(0, text.lastIndexOf(',', LONGEST_LIST)));
  if (whole.length < text.length) {
    problems.push(`ovn-bridge-mappings has ${text.length} characters; only ${whole.length} are read`);
  }
  const mappings = parseBridgeMappings(whole, (pair, why) => faults.push(`ovn-bridge-mappings: ${quote(pair)} ${why}`));
  problems.push(...few(faults, NAMED, LONGEST_NAME * 4));
  return new Map(mappings.map(({ physnet, bridge }) => [physnet, bridge]));
}

/** Hexadecimal digits of any length. As in Open vSwitch, an empty mask counts as not set. */
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
