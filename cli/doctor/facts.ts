import type { KubeClient } from '../../kube/client.ts';
import { KubeError } from '../../kube/errors.ts';
import { type NodeTopology, nodeTopology } from '../../kube/node-topology.ts';
import { lease, type NetworkAttachmentDefinition, networkAttachmentDefinition } from '../../kube/resources.ts';
import { NAMESPACE } from '../../model/names.ts';
import { EXTENDER_PROXY } from '../explain/ask-extender.ts';
import { type ExplainedNode, type ExplainedPod, explainedNode, explainedPod } from '../explain/objects.ts';
import { type AgentLeases, readAgentLeases } from '../support/agents.ts';
import { kubeLine } from '../support/errors.ts';
import { NODE_TOPOLOGIES_PATH, readAll, readOne } from '../support/lists.ts';
import {
  type EndpointSlice,
  type ExtenderState,
  endpointSlice,
  extenderState,
  type SchedulerPod,
  schedulerPod,
  type TlsSecret,
  tlsSecret,
  type WebhookConfiguration,
  webhookConfiguration,
} from './objects.ts';

/** Something that was read, or why it could not be. */
export type Read<T> =
  | { readonly value: T; readonly missing?: undefined }
  | { readonly value?: undefined; readonly missing: 'absent' | 'forbidden' };

/** All that the checks look at, read once. */
export interface Facts {
  /** Milliseconds since 1970. */
  readonly now: number;
  readonly nodes: readonly ExplainedNode[];
  readonly topologies: Read<readonly NodeTopology[]>;
  readonly agents: Read<AgentLeases>;
  readonly mutating: Read<readonly WebhookConfiguration[]>;
  readonly validating: Read<readonly WebhookConfiguration[]>;
  /** Of plumbline-system. */
  readonly endpoints: Read<readonly EndpointSlice[]>;
  readonly webhookSecret: Read<TlsSecret>;
  readonly extenderSecret: Read<TlsSecret>;
  /** The Lease by which the extender's replicas agree on one: seconds since its last renewal. */
  readonly extenderLeaseAge: Read<number>;
  /** What the extender says of itself. */
  readonly extender:
    | Read<ExtenderState>
    | { readonly value?: undefined; readonly missing: 'silent'; readonly why: string };
  readonly schedulers: Read<readonly SchedulerPod[]>;
  readonly nads: Read<readonly NetworkAttachmentDefinition[]>;
  readonly launchers: Read<readonly ExplainedPod[]>;
}

const SECRETS = `/api/v1/namespaces/${NAMESPACE}/secrets`;
const ADMISSION = '/apis/admissionregistration.k8s.io/v1';

/** Reads everything side by side. Only the nodes have to be readable. @throws KubeError */
export async function readFacts(client: KubeClient, now: number): Promise<Facts> {
  const list = <T>(path: string, schema: Parameters<typeof readAll<T>>[2], query = {}) =>
    tolerant(readAll(client, path, schema, query));
  const one = <T>(path: string, schema: Parameters<typeof readOne<T>>[2]) => tolerant(readOne(client, path, schema));
  const [nodes, topologies, agents, mutating, validating, endpoints, webhookSecret, extenderSecret, ...rest] =
    await Promise.all([
      readAll(client, '/api/v1/nodes', explainedNode),
      list(NODE_TOPOLOGIES_PATH, nodeTopology),
      tolerant(readAgentLeases(client, now)),
      list(`${ADMISSION}/mutatingwebhookconfigurations`, webhookConfiguration),
      list(`${ADMISSION}/validatingwebhookconfigurations`, webhookConfiguration),
      list(`/apis/discovery.k8s.io/v1/namespaces/${NAMESPACE}/endpointslices`, endpointSlice),
      one(`${SECRETS}/plumbline-webhook-tls`, tlsSecret),
      one(`${SECRETS}/plumbline-scheduler-plugin-tls`, tlsSecret),
      tolerant(leaseAge(client, now)),
      extenderSays(client),
      list('/api/v1/namespaces/kube-system/pods', schedulerPod, { labelSelector: 'component=kube-scheduler' }),
      list('/apis/k8s.cni.cncf.io/v1/network-attachment-definitions', networkAttachmentDefinition),
      list('/api/v1/pods', explainedPod, { labelSelector: 'kubevirt.io=virt-launcher' }),
    ]);
  const [extenderLeaseAge, extender, schedulers, nads, launchers] = rest;
  return {
    ...{ now, nodes, topologies, agents, mutating, validating, endpoints, webhookSecret, extenderSecret },
    ...{ extenderLeaseAge, extender, schedulers, nads, launchers },
  };
}

/** Who may not look, or where there is nothing to look at, is told so; what else goes wrong ends the command. */
async function tolerant<T>(reading: Promise<T | undefined>): Promise<Read<T>> {
  try {
    const value = await reading;
    return value === undefined ? { missing: 'absent' } : { value };
  } catch (error) {
    if (error instanceof KubeError && error.status === 403) return { missing: 'forbidden' };
    if (error instanceof KubeError && error.status === 404) return { missing: 'absent' };
    throw error;
  }
}

async function leaseAge(client: KubeClient, now: number): Promise<number | undefined> {
  const path = `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases/plumbline-scheduler-plugin`;
  const renewed = Date.parse((await readOne(client, path, lease))?.spec?.renewTime ?? '');
  return Number.isNaN(renewed) ? undefined : (now - renewed) / 1000;
}

/** Through the API server, as the scheduler's own way there cannot be tried from here. */
async function extenderSays(client: KubeClient): Promise<Facts['extender']> {
  try {
    const value = extenderState.safeParse(await client.get(`${EXTENDER_PROXY}/explain`, { timeout: 5 }));
    return value.success ? { value: value.data } : { missing: 'silent', why: 'it answers something else' };
  } catch (error) {
    if (!(error instanceof KubeError)) throw error;
    if (error.status === 403) return { missing: 'forbidden' };
    if (error.status === 404) return { missing: 'absent' };
    return { missing: 'silent', why: error.status === 0 ? kubeLine(error) : error.message };
  }
}
