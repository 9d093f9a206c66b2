import { setTimeout as delay } from 'node:timers/promises';
import * as z from 'zod';
import { word } from '../../../kube/bounds.ts';
import type { KubeClient } from '../../../kube/client.ts';
import { isDpuHost, NODES_PATH } from '../../../kube/cluster-view/nodes.ts';
import { isFinalPhase, PODS_PATH } from '../../../kube/cluster-view/pods.ts';
import * as kubeObjects from '../../../kube/resources.ts';
import { countText } from '../../../model/amounts.ts';
import { dpuConnections } from '../../../model/cni/connection-status.ts';
import { type DpuDiagnosis, type DpuSighting, type LeaseLook, lastRestart } from '../../../model/lease/diagnose.ts';
import { isNetworkLost, networkMadeAt } from '../../../model/lease/dpu-run.ts';
import { groupBy } from '../../../model/lists.ts';
import { DPU_LEASE_PREFIX } from '../../../model/names.ts';
import { named, readAll } from '../../support/lists.ts';
import { type AreaReport, createAreaRecorder } from './finding.ts';

/** @param diagnoses undefined if the user may not read them */
export function checkDpus(diagnoses: readonly DpuDiagnosis[] | undefined, seconds: number): AreaReport {
  const recorder = createAreaRecorder('dpu');
  recorder.value(diagnoses ? { value: diagnoses } : { missing: 'forbidden' }, 'leases of DPUs');
  if (diagnoses?.length === 0) recorder.checked('no node has a DPU');
  for (const { node, renewals, writers, problems, notes: remarks } of diagnoses ?? []) {
    const by = writers.length === 0 ? '' : ` by ${writers.join(' and ')}`;
    const times = renewals === 1 ? 'once' : countText(renewals, 'time');
    const remark = remarks.length === 0 ? '' : ` (${remarks.join('; ')})`;
    for (const problem of problems) {
      const [what = '', ...rest] = problem.split('; ');
      const why = `its lease was renewed ${times} in ${seconds} s${by}${remark}`;
      recorder.error(`${node}: ${what}`, why, rest.join('; ') || 'see docs/reference/dpu.md', {
        objects: [`node/${node}`],
        cause: 'dpu-dead',
      });
    }
    if (problems.length === 0)
      recorder.checked(`${node}: its DPU’s lease was renewed ${times} in ${seconds} s${by}${remark}`);
  }
  return recorder.report;
}

const managedLease = kubeObjects.lease.extend({
  metadata: kubeObjects.objectMeta.extend({ managedFields: kubeObjects.managedFields }),
});
const pod = z.object({
  metadata: kubeObjects.observedMeta.extend({
    creationTimestamp: word.optional(),
    managedFields: kubeObjects.connectionWrites,
  }),
  spec: z.object({ nodeName: z.string().nullish(), hostNetwork: z.boolean().optional() }),
  status: kubeObjects.podStatus.pick({ phase: true, conditions: true }).nullish(),
});
type PodOfNode = z.infer<typeof pod>;
/** Between two reads: short enough to see every writer that renews every few seconds. */
const READ_INTERVAL_MILLISECONDS = 1000;

/** Reads nodes and pods once. @param progress gets seconds since the start @throws KubeError */
export async function watchDpus(
  client: KubeClient,
  namespace: string,
  seconds: number,
  progress: (seconds: number) => void,
): Promise<DpuSighting[]> {
  const path = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;
  const looks = new Map<string, LeaseLook[]>();
  const begun = Date.now();
  const readLeases = async () => {
    const at = Date.now();
    for (const lease of await readAll(client, path, managedLease)) {
      const { metadata, spec } = lease;
      if (!metadata.name?.startsWith(DPU_LEASE_PREFIX)) continue;
      const name = metadata.name.slice(DPU_LEASE_PREFIX.length);
      const sighting = { at, lease, renewTime: spec?.renewTime, managedFields: metadata.managedFields };
      looks.set(name, [...(looks.get(name) ?? []), sighting]);
    }
  };
  await readLeases();
  while (Date.now() - begun < seconds * 1000) {
    progress((Date.now() - begun) / 1000);
    await delay(READ_INTERVAL_MILLISECONDS);
    await readLeases();
  }
  const nodes = new Map(
    (await readAll(client, NODES_PATH, named)).map(({ metadata }) => [metadata.name ?? '', metadata]),
  );
  const hosts = [...nodes].flatMap(([name, metadata]) => (isDpuHost({ metadata }) ? [name] : []));
  const pods = hosts.length === 0 ? new Map<string, PodOfNode[]>() : await readPods(client);
  return [...new Set([...hosts, ...looks.keys()])].sort().map((name) => ({
    node: name,
    uid: nodes.get(name)?.uid,
    dpuHost: hosts.includes(name),
    looks: looks.get(name) ?? [],
    podsWithoutNetwork: podsWithoutNetwork(pods.get(name) ?? [], looks.get(name)?.at(-1)),
    waiting: (pods.get(name) ?? []).flatMap(waitingNetworks),
  }));
}

async function readPods(client: KubeClient): Promise<ReadonlyMap<string, PodOfNode[]>> {
  const pods = await readAll(client, PODS_PATH, pod);
  const current = pods.filter(({ status }) => !isFinalPhase(status?.phase));
  return groupBy(current, ({ spec }) => spec.nodeName ?? '');
}

const nameOf = ({ metadata }: PodOfNode) => `${metadata.namespace}/${metadata.name}`;

function podsWithoutNetwork(pods: readonly PodOfNode[], last: LeaseLook | undefined): string[] {
  const restart = lastRestart(last?.lease);
  if (restart === undefined) return [];
  return pods.filter((ofNode) => isNetworkLost(networkMadeAt(ofNode), restart)).map(nameOf);
}

function waitingNetworks(ofNode: PodOfNode): DpuSighting['waiting'] {
  const unconnected = dpuConnections(ofNode.metadata.annotations ?? {}).filter(({ state }) => state !== 'Ready');
  return unconnected.map((connection) => ({ ...connection, pod: nameOf(ofNode) }));
}
