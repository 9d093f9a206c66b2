import { parse } from 'yaml';
import * as z from 'zod';
import { PlumblineError } from '../../model/errors.ts';
import { physnetResource } from '../../model/names.ts';

/** NUMA nodes of a network's uplinks; an empty list says that they are unknown. */
const numaNodes = z.object({ numaNodes: z.array(z.number().int().nonnegative()).transform(ascending) }).strict();

const networkMap = z
  .object({
    physnets: z.record(z.string(), numaNodes).nullish(),
    tunnel: numaNodes.nullish(),
  })
  .strict();

export interface PhysnetCells {
  readonly name: string;
  readonly cells: readonly number[];
}

/** Where this node's networks are: which NUMA nodes each physnet and the tunnel hang on. Ascending by name. */
export interface Networks {
  readonly physnets: readonly PhysnetCells[];
  readonly tunnel: { readonly cells: readonly number[] } | undefined;
}

export const NO_NETWORKS: Networks = { physnets: [], tunnel: undefined };

export class NetworkMapError extends PlumblineError {
  constructor(file: string, why: string, options?: ErrorOptions) {
    super('network-map', `${file}: ${why}`, options);
  }
}

/**
 * Reads a network map: `physnets: {physnet0: {numaNodes: [0]}}` and `tunnel: {numaNodes: [1]}`.
 * @param cells the NUMA nodes that the host has
 * @throws NetworkMapError if it is malformed, or names a NUMA node that the host lacks
 */
export function parseNetworkMap(file: string, text: string, cells: readonly number[]): Networks {
  const result = networkMap.safeParse(parseYaml(file, text) ?? {});
  if (!result.success) {
    const issue = result.error.issues[0];
    throw new NetworkMapError(file, `${issue?.path.join('.') || 'the top level'}: ${issue?.message}`);
  }
  const physnets = Object.entries(result.data.physnets ?? {})
    .map(([name, { numaNodes }]) => ({ name, cells: numaNodes }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  for (const physnet of physnets) {
    checkCells(file, `physnet ${physnet.name}`, physnet.cells, cells);
    checkName(file, physnet.name);
  }
  const tunnel = result.data.tunnel ?? undefined;
  if (tunnel !== undefined) checkCells(file, 'tunnel', tunnel.numaNodes, cells);
  return { physnets, tunnel: tunnel && { cells: tunnel.numaNodes } };
}

function parseYaml(file: string, text: string): unknown {
  try {
    return parse(text);
  } catch (error) {
    throw new NetworkMapError(file, `not YAML: ${(error as Error).message.split('\n')[0]}`, { cause: error });
  }
}

function checkCells(file: string, what: string, named: readonly number[], cells: readonly number[]): void {
  for (const cell of named) {
    if (cells.includes(cell)) continue;
    throw new NetworkMapError(file, `${what}: this host has no NUMA node ${cell} with CPUs, only ${cells.join(', ')}`);
  }
}

function checkName(file: string, physnet: string): void {
  try {
    physnetResource(physnet);
  } catch (error) {
    throw new NetworkMapError(file, (error as Error).message, { cause: error });
  }
}

function ascending(numbers: number[]): number[] {
  return [...new Set(numbers)].sort((a, b) => a - b);
}
