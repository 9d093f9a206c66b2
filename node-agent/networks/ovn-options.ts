import { few, quote } from '../../model/errors.ts';
import { parseBridgeMappings } from '../../model/networks/context.ts';

/** Limits of the options that are read. The rest is skipped, and a problem reports that. */
const MAX_CHASSIS = 16;
const MAX_PHYSNETS = 256;
const MAX_ADDRESSES = 16;
/** Maximum characters of `ovn-bridge-mappings` and `ovn-encap-ip`, and of a name in a problem. */
const MAX_LIST_CHARACTERS = 32 * 1024;
const MAX_NAME_CHARACTERS = 63;
const MAX_NAMED_PAIRS = 4;

type ExternalIds = ReadonlyMap<string, string>;

/** The options of all OVN instances on the switch, in the external_ids of the table Open_vSwitch. */
export function readOvnOptions(externalIds: ExternalIds, problems: string[]) {
  const chassis = chassisOf(externalIds, problems);
  const endpoints = valuesOf('ovn-encap-ip', externalIds, chassis)
    .map((text) =>
      text
        .slice(0, MAX_LIST_CHARACTERS)
        .split(',')
        .flatMap((part) => part.trim() || []),
    )
    .filter((addresses) => addresses.length > 0);
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
