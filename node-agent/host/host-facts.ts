import { readFile } from 'node:fs/promises';
import { createHost, type Host, type HostDescription } from '../../model/host.ts';
import type { Logger } from '../../runtime/log.ts';
import { type Networks, NO_NETWORKS, parseNetworkMap } from '../networks/network-map.ts';
import { readHost } from './sysfs.ts';

/** What does not change while the agent runs: the kubelet, too, reads the topology once. */
export interface HostFacts {
  readonly description: HostDescription;
  readonly host: Host;
  readonly networks: Networks;
  /** Why the network map cannot be used; then there are no networks, and pods that need one go elsewhere. */
  readonly networkProblems: readonly string[];
}

export interface HostFactsOptions {
  readonly sysfsRoot: string;
  readonly networkMap: string | undefined;
  readonly log: Logger;
}

/**
 * Reads the host, and the network map against it.
 * @throws SysfsError, HostError or ParseError if the host cannot be described
 */
export async function readHostFacts({ sysfsRoot, networkMap, log }: HostFactsOptions): Promise<HostFacts> {
  const description = await readHost(sysfsRoot);
  const host = createHost(description);
  const { cells, online, threadsPerCore } = host;
  log.info({ cpus: online, cells: cells.map(({ id }) => id), threadsPerCore }, 'host read');
  if (networkMap === undefined) return { description, host, networks: NO_NETWORKS, networkProblems: [] };
  try {
    const ids = cells.map(({ id }) => id);
    const networks = parseNetworkMap(networkMap, await readFile(networkMap, 'utf8'), ids);
    return { description, host, networks, networkProblems: [] };
  } catch (err) {
    log.error({ err, networkMap }, 'the network map cannot be used: no physnet and no tunnel is advertised');
    return { description, host, networks: NO_NETWORKS, networkProblems: [(err as Error).message] };
  }
}
