import { setTimeout as sleep } from 'node:timers/promises';
import * as z from 'zod';
import { createKubeClient, type KubeClient } from '../../kube/client.ts';
import { NODE_TOPOLOGY_API, nodeTopologyStatus } from '../../kube/node-topology.ts';
import { objectMeta } from '../../kube/resources.ts';
import { unreadableObjects } from '../../runtime/metrics.ts';

/** The caches of a daemon, and the schema of each kind that it watches, by path. */
export interface Victim {
  readonly schemas: Readonly<Record<string, z.ZodType>>;
  /** @returns whether the object of an innocent tenant is served; called when every list has been read */
  start(
    client: KubeClient,
    signal: AbortSignal,
  ): { readonly synced: () => boolean; readonly served: () => Promise<boolean> };
}

export const TOPOLOGIES = `/apis/${NODE_TOPOLOGY_API.apiVersion}/${NODE_TOPOLOGY_API.plural}`;
export const VMIS = '/apis/kubevirt.io/v1/virtualmachineinstances';
export const PODS = '/api/v1/pods';
export const topology = z.object({ metadata: objectMeta, status: nodeTopologyStatus });

/** The namespace of the innocent tenant. */
export const NAMESPACE = 'telco-east';

/** Runs the caches in a process of their own, until they have read all lists of the server. Prints a JSON line. */
export async function runVictim(victim: Victim, server: string): Promise<never> {
  const { user, system } = process.cpuUsage();
  const client = createKubeClient({ server, requestOptions: () => ({}) }, 'victim');
  const { synced, served } = victim.start(client, new AbortController().signal);
  while (!synced()) await sleep(20);
  const used = process.cpuUsage({ user, system });
  const isServed = await served();
  const { values } = await unreadableObjects.get();
  const unreadable = values.reduce((sum, { value }) => sum + value, 0);
  const residentBytes = process.resourceUsage().maxRSS * 1024;
  console.log(JSON.stringify({ cpuSeconds: (used.user + used.system) / 1e6, isServed, unreadable, residentBytes }));
  process.exit(0);
}
