import * as z from 'zod';
import { issuesText, quote } from '../errors.ts';
import { goJsonParser, isObject, resultOrNone } from '../json.ts';

/** They modify an interface which another plugin of the list has created. */
const CHAINED = new Set(['dpu-gate', 'plumbline-gate', 'tuning', 'sbr', 'portmap', 'bandwidth', 'firewall', 'vrf']);

/** Multus and the API server accept more. */
const MAX_CHARACTERS = 256 * 1024;
/** Real lists have up to five. */
const MAX_PLUGINS = 64;
const MAX_FIELD_CHARACTERS = 253;

const field = z.string().max(MAX_FIELD_CHARACTERS).optional().catch(undefined);
const plugin = z.object({
  type: field,
  name: field,
  topology: field,
  transport: field,
  physicalNetworkName: field,
  role: field,
  uplink: field,
  bridge: field,
  master: field,
  linkInContainer: z.boolean().optional().catch(undefined),
  provider: field,
});
/** A gate that wraps another plugin contains that plugin's configuration. */
const wrapping = plugin.extend({ delegate: z.unknown().optional() });
const config = wrapping.extend({ plugins: z.array(wrapping).optional().catch(undefined) });

/** Fields with an unexpected type or length count as absent. */
export type Plugin = z.infer<typeof plugin>;

/** As in Go, null is the absence of a value. */
const text = z
  .string()
  .nullish()
  .transform((value) => value ?? '');
const integer = z
  .int()
  .nullish()
  .transform((value) => value ?? 0);
const multusConfig = z.object({ name: text, type: text, cniVersion: text, ipam: z.object({ type: text }).nullish() });
const ovnConfig = multusConfig
  .extend({
    topology: text,
    netAttachDefName: text,
    role: text,
    physicalNetworkName: text,
    mtu: integer,
    vlanID: integer,
  })
  .extend({ subnets: text, excludeSubnets: text, reservedSubnets: text, infrastructureSubnets: text, joinSubnet: text })
  .extend({ transitSubnet: text, defaultGatewayIPs: text, transport: text, outboundSNAT: text, uplink: text })
  .extend({ allowPersistentIPs: z.boolean().nullish() });
type OvnConfig = z.infer<typeof ovnConfig>;
const parseFields = goJsonParser([...Object.keys(config.shape), ...Object.keys(ovnConfig.shape)]);

/** An object in JSON; undefined if the text is none, or longer than what is parsed. */
function parseCniJson(json: string): { readonly plugins?: unknown; readonly name?: unknown } | undefined {
  const data = json.length > MAX_CHARACTERS ? undefined : resultOrNone(() => parseFields(json));
  if (!isObject(data)) return undefined;
  const { plugins } = data;
  return Array.isArray(plugins) && plugins.length > MAX_PLUGINS ? undefined : data;
}

/** The plugin that creates the interface, with the network's name; or why there is none. */
export function mainPlugin(json: string): Plugin | 'invalid-json' | 'no-config' {
  if (json.length <= MAX_CHARACTERS && json.trim() === '') return 'no-config';
  const parsed = config.safeParse(parseCniJson(json));
  if (!parsed.success) return 'invalid-json';
  const { plugins, ...single } = parsed.data;
  if (plugins === undefined) return unwrapped(single);
  const main = plugins.map(unwrapped).find(({ type }) => type !== undefined && !CHAINED.has(type));
  if (main === undefined) return 'no-config';
  return { ...main, name: single.name ?? main.name };
}

function unwrapped({ delegate, ...conf }: z.infer<typeof wrapping>): Plugin {
  if (conf.type === undefined || !CHAINED.has(conf.type)) return conf;
  const inner = plugin.safeParse(delegate);
  return inner.success && inner.data.type !== undefined ? { ...inner.data, name: inner.data.name ?? conf.name } : conf;
}

/** Who refuses a definition, and why: pods on it stay in ContainerCreating. */
export interface NadRefusal {
  readonly by: 'multus' | 'OVN-Kubernetes';
  readonly why: string;
}

const OVN_TYPE = 'ovn-k8s-cni-overlay';
const RESERVED_NAME = /^(?:default|ovn-kubernetes)$/;
/** The highest VLAN id in OVN's database. */
const MAX_VLAN_ID = 4095;

/**
 * Undefined if multus and OVN-Kubernetes accept it, and for no JSON object. Without rules that depend on
 * OVN-Kubernetes' own configuration. @param nadName `namespace/name`
 * Source: multus-cni, pkg/types/conf.go; OVN-Kubernetes, pkg/config/cni.go and pkg/util/multi_network.go (August 2026).
 */
export function refusalOf(config: string, nadName: string | undefined): NadRefusal | undefined {
  const data = parseCniJson(config);
  if (data === undefined) return undefined;
  const list = Array.isArray(data.plugins) ? (data.plugins as unknown[]) : undefined;
  const single = multusConfig.safeParse(data);
  const plugins = (list ?? [data]).map((item) => multusConfig.safeParse(item));
  const error = single.error ?? plugins.find((item) => item.error)?.error;
  if (error) return { by: 'multus', why: issuesText(error) };
  const { type, name } = single.data!;
  const hasTypes = list !== undefined && list.length > 0 && plugins.every((item) => (item.data?.type ?? '') !== '');
  if (type === '' && !hasTypes) return { by: 'multus', why: 'it has neither a type nor a list of plugins with types' };
  if (!plugins.some((plugin) => plugin.data?.type === OVN_TYPE)) return undefined;
  const why = ovnListFault(list, name, type === '') ?? ovnFault(list?.[0] ?? data, data, nadName);
  return why === undefined ? undefined : { by: 'OVN-Kubernetes', why };
}

function ovnListFault(list: readonly unknown[] | undefined, name: string, isList: boolean): string | undefined {
  if (list === undefined) return undefined;
  if (list.length > 1) return `it has ${OVN_TYPE} in a list with other plugins; leave it alone in the definition`;
  if (!isList) return 'it has both a type and a list of plugins';
  return name === '' ? 'the list of plugins has no name' : undefined;
}

function ovnFault(plugin: unknown, whole: object, nadName: string | undefined): string | undefined {
  const { name } = whole as { readonly name?: unknown };
  const { data: conf, error } = ovnConfig.safeParse({ ...(plugin as object), name });
  if (conf === undefined) return issuesText(error);
  // Without a topology, the definition is for the default network, whatever its names are.
  return (conf.topology === '' ? undefined : nameFault(conf, nadName)) ?? fieldFault(conf);
}

function nameFault({ name, netAttachDefName, topology }: OvnConfig, nadName: string | undefined): string | undefined {
  if (name === '') return 'the name of the network is missing';
  if (RESERVED_NAME.test(name)) return `the network name ${quote(name)} is reserved`;
  const correct = nadName ?? netAttachDefName;
  if (netAttachDefName === '') return `netAttachDefName is missing; it must be ${quote(correct || 'namespace/name')}`;
  if (netAttachDefName !== correct)
    return `netAttachDefName is ${quote(netAttachDefName)} and must be ${quote(correct)}`;
  const isSupported = ['localnet', 'layer2', 'layer3'].includes(topology);
  return isSupported ? undefined : `the topology ${quote(topology)} is not supported`;
}

function fieldFault(conf: OvnConfig): string | undefined {
  const { topology, role, transport, outboundSNAT, vlanID } = conf;
  const [isLocalnet, isLayer2] = [topology === 'localnet', topology === 'layer2'];
  const faults: [boolean, string][] = [
    [topology === 'layer3' && conf.allowPersistentIPs === true, 'layer3 does not allow allowPersistentIPs'],
    [isLocalnet && !['', 'secondary'].includes(role), `localnet does not allow the role ${quote(role)}`],
    [!['', 'primary', 'secondary'].includes(role), `the role ${quote(role)} is neither primary nor secondary`],
    [Boolean(conf.ipam?.type), 'ipam is not supported; use subnets'],
    [!['', 'no-overlay', 'evpn'].includes(transport), `transport ${quote(transport)} is neither no-overlay nor evpn`],
    [outboundSNAT !== '' && transport !== 'no-overlay', 'outboundSNAT needs the transport no-overlay'],
    [!['', 'enabled', 'disabled'].includes(outboundSNAT), 'outboundSNAT is neither enabled nor disabled'],
    [isLocalnet && conf.joinSubnet !== '', 'localnet does not allow joinSubnet'],
    [isLayer2 && role === 'primary' && conf.subnets === '', 'a primary layer2 network needs subnets'],
    [isLocalnet && (vlanID < 0 || vlanID > MAX_VLAN_ID), `vlanID ${vlanID} is not between 1 and ${MAX_VLAN_ID}`],
  ];
  for (const field of ['infrastructureSubnets', 'reservedSubnets', 'defaultGatewayIPs'] as const)
    faults.push([!isLayer2 && conf[field] !== '', `${field} needs layer2`]);
  return faults.flatMap(([isFault, text]) => (isFault ? [text] : [])).join('; ') || undefined;
}
