import { CpuSet } from '../../model/cpu-set.ts';
import { cut, few, quote } from '../../model/errors.ts';
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
const MAX_BRIDGES = 1024;
/** Maximum ports of a bridge that may be uplinks: each needs a read of sysfs. */
const MAX_PORTS = 256;
/** Maximum characters of a mask with the highest possible CPU. */
const MAX_MASK_CHARACTERS = 20_000;
/** Maximum characters of a name (DPDK ports have longer names than the kernel's) and of a device's arguments. */
const MAX_NAME_CHARACTERS = 63;
const MAX_DEVARGS_CHARACTERS = 1024;
/** The highest id of a NUMA node that DPDK can report. */
const HIGHEST_CELL = 1023;

export interface SwitchConfig extends Readonly<ReturnType<typeof readOvnOptions>> {
  readonly bridges: ReadonlyMap<string, SwitchBridge>;
  /** CPUs of `pmd-cpu-mask` where poll mode drivers run; empty where it is not set and the switch chooses. */
  readonly pmdCpus: CpuSet;
  readonly problems: readonly string[];
}

export function switchConfig(tables: Tables): SwitchConfig {
  const root: Row = [...rowsOf(tables, 'Open_vSwitch').values()][0] ?? {};
  const externalIds = mapOf(root['external_ids']);
  const otherConfig = mapOf(root['other_config']);
  const problems: string[] = [];
  const visitedRows = new Set<string>();
  const rows = [...rowsOf(tables, 'Bridge').values()];
  const bridges = new Map(
    rows.slice(0, MAX_BRIDGES).map((row) => [textOf(row['name']), bridgeOf(tables, row, visitedRows, problems)]),
  );
  if (rows.length > MAX_BRIDGES) problems.push(`the switch has more than ${MAX_BRIDGES} bridges; the rest is ignored`);
  const userspace = rows.some((row) => textOf(row['datapath_type']) === 'netdev');
  const polls = userspace || !['', 'false'].includes(otherConfig.get('dpdk-init') ?? '');
  return {
    bridges,
    ...readOvnOptions(externalIds, problems),
    pmdCpus: polls ? parsePmdMask(otherConfig.get('pmd-cpu-mask') ?? '', problems) : CpuSet.EMPTY,
    problems,
  };
}

const UPLINK_KINDS: ReadonlyMap<string, SwitchInterface['kind']> = new Map([
  ...['', 'system', 'afxdp-nonpmd'].map((type) => [type, 'system'] as const),
  ['afxdp', 'afxdp'],
  ['dpdk', 'dpdk'],
]);

/** @param visitedRows rows already read: the number of rows bounds the work, whatever the lists contain */
function bridgeOf(tables: Tables, bridge: Row, visitedRows: Set<string>, problems: string[]): SwitchBridge {
  const internal = new Set<string>();
  const patches = new Map<string, string>();
  const interfaces: SwitchInterface[] = [];
  for (const row of interfaceRows(tables, bridge, visitedRows)) {
    const type = textOf(row['type']);
    const name = textOf(row['name']);
    if (name.length > MAX_NAME_CHARACTERS) continue;
    if (type === 'internal') internal.add(name);
    else if (type === 'patch') patches.set(name, mapOf(row['options']).get('peer') ?? '');
    const kind = UPLINK_KINDS.get(type);
    if (kind !== undefined) interfaces.push(interfaceOf(name, row, kind));
  }
  if (interfaces.length <= MAX_PORTS) return { internal, patches, interfaces };
  const bridgeName = cut(textOf(bridge['name']), MAX_NAME_CHARACTERS);
  problems.push(`bridge ${bridgeName} has ${interfaces.length} ports; only ${MAX_PORTS} are checked for uplinks`);
  return { internal, patches, interfaces: interfaces.slice(0, MAX_PORTS) };
}

function* interfaceRows(tables: Tables, bridge: Row, visitedRows: Set<string>): Generator<Row> {
  const rowOf = (table: string, id: unknown): Row | undefined => {
    const row = visitedRows.has(String(id)) ? undefined : rowsOf(tables, table).get(String(id));
    if (row !== undefined) visitedRows.add(String(id));
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

function interfaceOf(name: string, row: Row, kind: SwitchInterface['kind']): SwitchInterface {
  const numaId = Number.parseInt(mapOf(row['status']).get('numa_id') ?? '', 10);
  const link = textOf(row['link_state']);
  const devargs = mapOf(row['options']).get('dpdk-devargs');
  return {
    name,
    kind,
    devargs: devargs !== undefined && devargs.length <= MAX_DEVARGS_CHARACTERS ? devargs : undefined,
    numaId: numaId >= 0 && numaId <= HIGHEST_CELL ? numaId : undefined,
    linkUp: link === '' ? undefined : link === 'up',
  };
}

/** Hexadecimal digits of any length. As in Open vSwitch, an empty mask counts as not set. */
export function parsePmdMask(text: string, problems: string[]): CpuSet {
  try {
    if (text.length > MAX_MASK_CHARACTERS) throw new Error(`it has ${text.length} characters`);
    return CpuSet.fromMask(text);
  } catch (error) {
    problems.push(`other_config:pmd-cpu-mask: ${(error as Error).message}`);
    return CpuSet.EMPTY;
  }
}

/** Limits of the options that are read. The rest is skipped, and a problem reports that. */
const MAX_CHASSIS = 16;
const MAX_PHYSNETS = 256;
const MAX_ADDRESSES = 16;
/** Maximum characters of `ovn-bridge-mappings` and `ovn-encap-ip`. */
const MAX_LIST_CHARACTERS = 32 * 1024;
const MAX_NAMED_PAIRS = 4;

type ExternalIds = ReadonlyMap<string, string>;

/** The options of all OVN instances on the switch, in the external_ids of the table Open_vSwitch. */
function readOvnOptions(externalIds: ExternalIds, problems: string[]) {
  const chassis = chassisOf(externalIds, problems);
  const addressesIn = (text: string) =>
    text
      .slice(0, MAX_LIST_CHARACTERS)
      .split(',')
      .flatMap((part) => part.trim() || []);
  const endpoints = valuesOf('ovn-encap-ip', externalIds, chassis)
    .map(addressesIn)
    .filter(({ length }) => length > 0);
  const bridgeKeys = [...externalIds.keys()].filter((key) => /^ovn-bridge(?!-mappings)/.test(key));
  return {
    /** Bridges that ovn-controllers connect to the bridge of every physnet. */
    integration: new Set(['br-int', ...bridgeKeys.map((key) => externalIds.get(key) ?? '')]),
    /** Bridges by physnet, in the order written: several if OVN instances differ. */
    mappings: mergeMappings(valuesOf('ovn-bridge-mappings', externalIds, chassis), problems),
    encapIps: [...new Set(endpoints.flat())].slice(0, MAX_ADDRESSES),
    /** Whether OVN instances differ in these addresses. */
    hasSeveralEndpoints: endpoints.length > 1,
  };
}

/** Any key of an option that is read for one chassis. `ovn-encap-ip-default` is an option of its own. */
const CHASSIS_KEY = /^ovn-(?:bridge-mappings|encap-type|encap-ip(?!-default(?:-|$)))-(.+)$/s;

/**
 * The names of the OVN instances: the system-id, and every suffix `-<chassis>` of an option, because a name may also
 * come from a command line or the file system-id-override.
 * Source: OVN, controller/chassis.c, get_ovs_chassis_id; ovn-controller(8).
 */
function chassisOf(externalIds: ExternalIds, problems: string[]): readonly string[] {
  const systemId = externalIds.get('system-id');
  const suffixes = [...externalIds.keys()].flatMap((key) => CHASSIS_KEY.exec(key)?.[1] ?? []);
  const chassis = [...new Set(systemId === undefined ? suffixes : [systemId, ...suffixes])];
  // Two instances share a switch only with an integration bridge for each.
  const unlikely = chassis.filter((name) => name !== systemId && !externalIds.has(`ovn-bridge-${name}`));
  if (systemId !== undefined && unlikely.length > 0) {
    const names = few(unlikely, MAX_NAMED_PAIRS, MAX_NAME_CHARACTERS).join(', ');
    const why = 'which is neither the system-id nor has an ovn-bridge-<chassis>; its networks count';
    problems.push(`external_ids configure chassis ${names}, ${why}`);
  }
  if (chassis.length > MAX_CHASSIS) {
    problems.push(`external_ids configure ${chassis.length} chassis; only ${MAX_CHASSIS} are read`);
  }
  return chassis.length === 0 ? [''] : chassis.slice(0, MAX_CHASSIS);
}

/**
 * The different values of an option. An instance prefers the option with its own suffix, even an empty one.
 * Source: OVN, lib/ovn-util.c, get_chassis_external_id_value.
 */
function valuesOf(option: string, externalIds: ExternalIds, chassis: readonly string[]): readonly string[] {
  const plain = externalIds.get(option) ?? '';
  return [...new Set(chassis.map((name) => externalIds.get(`${option}-${name}`) ?? plain))];
}

/** The physnets of all instances. If they map one to different bridges, all of these count, with a problem. */
function mergeMappings(texts: readonly string[], problems: string[]): ReadonlyMap<string, readonly string[]> {
  const mappings = new Map<string, string[]>();
  for (const [physnet, bridge] of texts.flatMap((text) => [...parseMappings(text, problems)])) {
    const bridges = mappings.get(physnet) ?? [];
    if (!bridges.includes(bridge)) mappings.set(physnet, [...bridges, bridge]);
  }
  for (const [physnet, bridges] of mappings) {
    if (bridges.length === 1) continue;
    const [name, ...names] = few([physnet, ...bridges], MAX_NAMED_PAIRS, MAX_NAME_CHARACTERS);
    problems.push(`OVN instances map physnet ${name} to different bridges, which all count: ${names.join(', ')}`);
  }
  if (mappings.size > MAX_PHYSNETS) {
    problems.push(`ovn-bridge-mappings has ${mappings.size} physnets; only ${MAX_PHYSNETS} are read`);
  }
  return new Map([...mappings].slice(0, MAX_PHYSNETS));
}

/** `physnet:bridge,…` */
function parseMappings(text: string, problems: string[]): ReadonlyMap<string, string> {
  const faults: string[] = [];
  const whole =
    text.length <= MAX_LIST_CHARACTERS ? text : text.slice(0, Math.max(0, text.lastIndexOf(',', MAX_LIST_CHARACTERS)));
  if (whole.length < text.length) {
    problems.push(`ovn-bridge-mappings has ${text.length} characters; only ${whole.length} are read`);
  }
  const mappings = parseBridgeMappings(whole, (pair, why) => faults.push(`ovn-bridge-mappings: ${quote(pair)} ${why}`));
  problems.push(...few(faults, MAX_NAMED_PAIRS, MAX_NAME_CHARACTERS * 4));
  return new Map(mappings.map(({ physnet, bridge }) => [physnet, bridge]));
}
