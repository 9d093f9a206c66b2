import * as z from 'zod';
import { type explainedNode, occurrence } from '../../diagnosis/objects.ts';
import type { KubeClient } from '../../kube/client.ts';
import { NODE_TOPOLOGIES_PATH } from '../../kube/cluster-view/node-topologies.ts';
import { nodeTopology } from '../../kube/node-topology.ts';
import { objectMeta } from '../../kube/resources.ts';
import { NAMESPACE } from '../../model/names.ts';
import { readFindings } from '../doctor/run.ts';
import type { ClusterAccess } from '../support/cluster.ts';
import { INSTANCES, MACHINES, NETWORKS, NODES } from '../support/kinds.ts';
import { named, readIfAllowed } from '../support/lists.ts';
import { readVersions } from '../version/run.ts';
import { isSystem, Redaction, redactedArguments } from './redact.ts';

/** Pods whose logs are read: the first of each Deployment and DaemonSet in the order of their names. */
const MAX_LOGS = 30;
const MAX_LOG_BYTES = 1024 * 1024;
const LOG_SECONDS = 30;
/** A tar archive has 100 for the whole path. */
const MAX_NAME_CHARACTERS = 70;

const systemPod = z.object({
  metadata: objectMeta,
  spec: z.object({
    nodeName: z.string().nullish(),
    containers: z.array(
      z.object({
        name: z.string(),
        image: z.string().nullish(),
        args: z.array(z.string()).nullish().transform(redactedArguments),
      }),
    ),
  }),
  status: z.object({ phase: z.string().nullish(), containerStatuses: z.unknown().optional() }).nullish(),
});

export interface ArchiveFile {
  readonly name: string;
  readonly content: string;
}

interface Collected {
  readonly files: readonly ArchiveFile[];
  readonly missing: readonly string[];
}

const isOurs = (component: string | null | undefined, namespace: string | undefined) =>
  namespace === NAMESPACE || component?.startsWith('plumbline') === true;

/** Without the parts that the user may not read. @param now milliseconds since 1970 @throws KubeError */
export async function collect(cluster: ClusterAccess, now: number): Promise<Collected> {
  const { client } = cluster;
  const files: { readonly name: string; readonly data: unknown }[] = [];
  const missing: string[] = [];
  const add = (name: string, data: unknown) => {
    if (data === undefined) missing.push(`${name}: not allowed, or not there`);
    else files.push({ name, data });
  };
  const versions = await readVersions(client);
  const [nodes, topologies, events, pods] = await Promise.all([
    readIfAllowed(client, ...NODES),
    readIfAllowed(client, NODE_TOPOLOGIES_PATH, nodeTopology),
    readIfAllowed(client, '/api/v1/events', occurrence),
    readIfAllowed(client, `/api/v1/namespaces/${NAMESPACE}/pods`, systemPod),
  ]);
  add('versions.json', versions);
  add('doctor.json', nodes && (await readFindings(cluster, now)));
  add('reports.json', topologies);
  add('nodes.json', nodes?.map(nodeFacts));
  const ourEvents = events?.filter(({ source, metadata }) => isOurs(source?.component, metadata.namespace));
  add('events.json', ourEvents);
  add('pods.json', pods);
  const logs = (pods ?? []).flatMap(({ metadata, spec }) =>
    spec.containers.map(({ name }) => ({ pod: metadata.name ?? '', container: name })),
  );
  for (const { pod, container } of logs.slice(0, MAX_LOGS)) {
    const name = `logs/${`${pod}.${container}`.replaceAll(/[^\w.-]/g, '_').slice(0, MAX_NAME_CHARACTERS)}.log`;
    add(name, await readLog(cluster, pod, container).catch(() => undefined));
  }
  if (logs.length > MAX_LOGS) missing.push(`logs of ${logs.length - MAX_LOGS} more containers`);
  const redaction = await redactionOf(client, new Set((nodes ?? []).map(({ metadata }) => metadata.name ?? '')));
  for (const { data } of files) redaction.learn(typeof data === 'string' ? data : JSON.stringify(data));
  const contentOf = (data: unknown) =>
    typeof data === 'string' ? redaction.text(data) : `${JSON.stringify(redaction.data(data), null, 2)}\n`;
  return { files: files.map(({ name, data }) => ({ name, content: contentOf(data) })), missing };
}

/** Other labels of nodes are the site's own. */
const KNOWN_LABELS = /(?:^|\.)(?:kubernetes\.io|kubevirt\.io|ovn\.org|plumbline\.dev)\//;

/** Without annotations and addresses, which may be anything. */
function nodeFacts({ metadata, spec, status }: z.infer<typeof explainedNode>) {
  const labels = Object.fromEntries(Object.entries(metadata.labels ?? {}).filter(([key]) => KNOWN_LABELS.test(key)));
  return { name: metadata.name, labels, spec, status };
}

async function readLog(
  { client, requestTimeout = LOG_SECONDS }: ClusterAccess,
  pod: string,
  container: string,
): Promise<string> {
  const path = `/api/v1/namespaces/${NAMESPACE}/pods/${encodeURIComponent(pod)}/log`;
  const query = { container, limitBytes: MAX_LOG_BYTES, tailLines: 5000, timestamps: true };
  const text: string[] = [];
  // The only request of the client whose answer may be other than JSON.
  const signal = AbortSignal.timeout(requestTimeout * 1000);
  for await (const chunk of await client.watch(path, { query, signal })) text.push(Buffer.from(chunk).toString());
  return text.join('');
}

async function redactionOf(client: KubeClient, nodes: ReadonlySet<string>): Promise<Redaction> {
  const [namespaces, pods, vms, instances, nads] = await Promise.all([
    readIfAllowed(client, '/api/v1/namespaces', named),
    readIfAllowed(client, '/api/v1/pods', named),
    readIfAllowed(client, MACHINES[0], named),
    readIfAllowed(client, INSTANCES[0], named),
    readIfAllowed(client, NETWORKS[0], named),
  ]);
  const systemPods = (pods ?? []).filter(({ metadata }) => isSystem(metadata.namespace));
  const redaction = new Redaction(new Set([...nodes, ...systemPods.map(({ metadata }) => metadata.name ?? '')]));
  for (const { metadata } of namespaces ?? []) redaction.hide('namespace', metadata.name);
  for (const [kind, list] of Object.entries({ vm: [...(vms ?? []), ...(instances ?? [])], pod: pods, network: nads })) {
    for (const { metadata } of list ?? []) if (!isSystem(metadata.namespace)) redaction.hide(kind, metadata.name);
  }
  return redaction;
}
