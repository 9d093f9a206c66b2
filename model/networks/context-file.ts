import * as z from 'zod';
import { cut, PlumblineError } from '../errors.ts';
import { type NetworkContext, parseBridgeMappings, physnetsByBridge } from './context.ts';

/** The part of the context that is in no object of the cluster. */
export type ConfiguredContext = Pick<NetworkContext, 'bridgePhysnets' | 'interfacePhysnets'>;

export class NetworkContextError extends PlumblineError {
  constructor(message: string, options?: ErrorOptions) {
    super('network-context', message, options);
  }
}

/** Characters of a path, and of the error there. */
const LONGEST = 200;

const schema = z.strictObject({
  /** In the format of `ovs-vsctl get Open_vSwitch . external_ids:ovn-bridge-mappings`. */
  bridgeMappings: z.string().optional(),
  /** Host interface to physnet, for macvlan, ipvlan and vlan networks. */
  interfacePhysnets: z.record(z.string(), z.string().min(1)).optional(),
});

/**
 * Checks an administrator's configuration of the physnets of bridges and host interfaces:
 *
 * ```yaml
 * bridgeMappings: physnet:br-ex,tenant-a:br-data
 * interfacePhysnets: { bond0: tenant-a }
 * ```
 * @throws NetworkContextError naming the field
 */
export function parseConfiguredContext(data: unknown): ConfiguredContext {
  const parsed = schema.safeParse(data ?? {});
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    const where = issue?.path.map(String).join('.') || 'the whole';
    throw new NetworkContextError(
      `network context: ${cut(where, LONGEST)}: ${cut(issue?.message ?? 'malformed', LONGEST)}`,
    );
  }
  const { bridgeMappings = '', interfacePhysnets = {} } = parsed.data;
  return {
    bridgePhysnets: physnetsByBridge(parseBridgeMappings(bridgeMappings)),
    interfacePhysnets: new Map(Object.entries(interfacePhysnets)),
  };
}
