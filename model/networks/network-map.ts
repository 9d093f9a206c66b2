import * as z from 'zod';
import { CpuSet } from '../cpu-set.ts';
import { cut, firstIssue, PlumblineError } from '../errors.ts';
import type { NodeNetworks } from './reach.ts';

/**
 * An administrator's map of networks to NUMA nodes, which overrides discovery (unknown NUMA nodes, DPUs, corrections):
 * `- nodeSelector: { rack: a } # absent: every node`, `physnets: { physnet0: { numaNodes: [0] } }`, `tunnel: …`
 */
export type NetworkMap = readonly z.infer<typeof entry>[];

const MAX_CHARACTERS = 200;

export class NetworkMapError extends PlumblineError {
  constructor(message: string, options?: ErrorOptions) {
    super('network-map', message, options);
  }
}

const located = z.strictObject({
  /** NUMA node ids; an empty list means that the network has no affinity. */
  numaNodes: z.array(z.number().int().nonnegative('a NUMA node is 0 or more (-1 means unknown: leave it out)')),
});
/** A record drops this key: an entry without its selector would apply to every node. */
const named = z.custom<object>(
  (value) => !Object.hasOwn(Object(value), '__proto__'),
  'the name __proto__ is not usable',
);
const entry = z.strictObject({
  nodeSelector: named.pipe(z.record(z.string(), z.string())).optional(),
  physnets: named.pipe(z.record(z.string().min(1), located)).optional(),
  tunnel: located.optional(),
});

/** A list of entries, or one entry for all nodes. @throws NetworkMapError naming the path */
export function parseNetworkMap(data: unknown): NetworkMap {
  const parsed = z.array(entry).safeParse(Array.isArray(data) ? data : data == null ? [] : [data]);
  if (parsed.success) return parsed.data;
  throw new NetworkMapError(`network map: ${firstIssue(parsed.error)}`, { cause: parsed.error });
}

/**
 * Undefined if no entry selects the node. @param numaNodes of the host
 * @throws NetworkMapError if an entry names a NUMA node that the host lacks, or two are about the same network
 */
export function networkMapFor(
  map: NetworkMap,
  labels: Readonly<Record<string, string>>,
  numaNodes: CpuSet,
): NodeNetworks | undefined {
  const chosen = map.filter(({ nodeSelector = {} }) =>
    Object.entries(nodeSelector).every(([key, value]) => labels[key] === value),
  );
  if (chosen.length === 0) return undefined;
  const physnets = new Map<string, CpuSet>();
  let tunnel: CpuSet | undefined;
  for (const entry of chosen) {
    for (const [name, { numaNodes: ids }] of Object.entries(entry.physnets ?? {})) {
      if (physnets.has(name))
        throw new NetworkMapError(`network map: two entries for this node name physnet ${cut(name, MAX_CHARACTERS)}`);
      physnets.set(name, cellsOf(`physnet ${name}`, ids, numaNodes));
    }
    if (entry.tunnel === undefined) continue;
    if (tunnel !== undefined) throw new NetworkMapError('network map: two entries for this node name the tunnel');
    tunnel = cellsOf('the tunnel', entry.tunnel.numaNodes, numaNodes);
  }
  return { physnets, tunnel };
}

/** A network whose NUMA nodes in the map differ from those that the node discovered. */
export interface Drift {
  /** Name of a physnet, or undefined for the tunnel. */
  readonly physnet: string | undefined;
  readonly mapped: CpuSet;
  /** Undefined: the node did not discover the network. */
  readonly discovered: CpuSet | undefined;
}

/** The map takes precedence for each network. */
export function overlayNetworkMap(
  discovered: NodeNetworks,
  map: NodeNetworks | undefined,
): { readonly networks: NodeNetworks; readonly drift: readonly Drift[] } {
  if (map === undefined) return { networks: discovered, drift: [] };
  const drift: Drift[] = [];
  const compare = (physnet: string | undefined, mapped: CpuSet, cells: CpuSet | undefined) => {
    if (!cells?.equals(mapped)) drift.push({ physnet, mapped, discovered: cells });
  };
  for (const [name, cells] of map.physnets) compare(name, cells, discovered.physnets.get(name));
  if (map.tunnel !== undefined) compare(undefined, map.tunnel, discovered.tunnel);
  return {
    networks: { physnets: new Map([...discovered.physnets, ...map.physnets]), tunnel: map.tunnel ?? discovered.tunnel },
    drift,
  };
}

function cellsOf(what: string, ids: readonly number[], host: CpuSet): CpuSet {
  const foreign = [...new Set(ids)].filter((id) => !host.has(id));
  if (foreign.length === 0) return CpuSet.of(ids);
  const [nodes, verb] = foreign.length === 1 ? ['node', 'is'] : ['nodes', 'are'];
  const missing = `NUMA ${nodes} ${cut(foreign.join(', '), MAX_CHARACTERS)} of ${cut(what, MAX_CHARACTERS)}`;
  throw new NetworkMapError(`network map: ${missing} ${verb} not on this host, which has ${host}`);
}
