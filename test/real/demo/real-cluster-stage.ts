import { type ClusterOptions, type DemoCluster, sidecarConfiguration } from '../../../cli/demo/cluster.ts';
import { createKubeClient } from '../../../kube/api-transport.ts';
import type { KubeClient } from '../../../kube/client.ts';
import { kubeconfigAccess } from '../../../kube/kubeconfig.ts';
import { NAMESPACE } from '../../../model/names.ts';
import {
  BUILT_IN_TYPES,
  EVENTS,
  LEASES,
  NODE_TOPOLOGIES,
  NODES,
  PODS,
} from '../../../sandbox/api-server/built-in-types.ts';
import { createCertificateAuthority } from '../../../sandbox/certificates.ts';
import { createEmulatedNode, type EmulatedNode } from '../../../sandbox/cluster/cluster.ts';
import type { Identity } from '../../../sandbox/cluster/identities.ts';
import { silent } from '../../support/logger.ts';
import type { Program } from '../../support/processes.ts';
import { createRemoteClient, type RemoteClient } from '../../support/remote-client.ts';
import { until } from '../../support/until.ts';
import {
  type ControlPlane,
  type KubernetesObject,
  type SchedulerProgram,
  startControlPlane,
} from '../control-plane-stage.ts';
import { callOf, isWebhookConfiguration, objectsOf, render, untilCalled } from '../install/rendered-fixture.ts';
import { KUBEVIRT_STAND_IN, type KubeVirt } from './kubevirt-stand-in.ts';

const AGENT = 'plumbline-node-agent';
const SCHEDULER_ACCOUNT = 'plumbline-scheduler';
const DPUS = 'plumbline-dpu';
const FOREIGN = ['Certificate', 'Issuer'];
/** The kinds that the sandbox's parts and the demo's steps read. Custom ones are served after their definitions. */
const READ = BUILT_IN_TYPES.filter(
  ({ custom, plural }) => custom || [PODS, EVENTS, LEASES, NODES].some((type) => type.plural === plural),
);
const SCHEDULER = { profiles: [{ schedulerName: 'default-scheduler', percentageOfNodesToScore: 100 }] };

/** A cluster with a real control plane, with the sandbox's kubelets and, by default, KubeVirt controller. */
export interface RealCluster extends DemoCluster {
  readonly plane: ControlPlane;
  readonly scheduler: Program;
  /** Starts a kube-scheduler as shipped: in the election with this name, with the extender on a port of loopback. */
  startElectedScheduler(hostName: string, extender: number): Promise<SchedulerProgram>;
}

export interface RealClusterOptions {
  readonly kubeVirt?: KubeVirt;
  readonly apiServerArgs?: readonly string[];
  readonly electedSchedulers?: boolean;
}

interface Parts {
  readonly plane: ControlPlane;
  readonly kube: KubeClient;
  readonly client: RemoteClient;
  readonly nodes: readonly EmulatedNode[];
  readonly kubeVirt: { stop(): Promise<void> };
  readonly scheduler: Program;
}

/**
 * kube-apiserver with every admission plugin and RBAC, etcd, kube-scheduler and all of kube-controller-manager, with
 * the shipped manifests including Deployments and DaemonSets. The daemons run as processes next to it, each with the
 * token of its own service account: an agent's is bound to the pod of the DaemonSet on its node.
 */
export function createRealCluster(
  options: ClusterOptions,
  { kubeVirt = KUBEVIRT_STAND_IN, apiServerArgs = [], electedSchedulers = false }: RealClusterOptions = {},
): RealCluster {
  const authority = createCertificateAuthority('plumbline-services');
  let parts: Parts | undefined;
  let shipped: readonly KubernetesObject[] = [];
  const started = () => {
    if (parts === undefined) throw new Error('the cluster has not been started');
    return parts;
  };
  /** With the account of the shipped Deployment, which has only the permissions of the cluster's own scheduler. */
  const startOwn = async (extender: number, hostName?: string): Promise<SchedulerProgram> => {
    const { plane } = started();
    const kubeconfig = await plane.accountKubeconfig(SCHEDULER_ACCOUNT, NAMESPACE, SCHEDULER_ACCOUNT);
    const configuration = await sidecarConfiguration(options.packageRoot, extender);
    return plane.startScheduler(configuration, { kubeconfig, ...(hostName !== undefined && { hostName }) });
  };
  return {
    get client() {
      return started().client;
    },
    authority,
    get plane() {
      return started().plane;
    },
    get scheduler() {
      return started().scheduler;
    },
    node(name) {
      const found = started().nodes.find((node) => node.name === name);
      if (!found) throw new RangeError(`no node ${name}`);
      return found;
    },
    async start() {
      parts = await startParts(options, kubeVirt, apiServerArgs);
    },
    async prepare() {
      shipped = objectsOf(render('base', ['base/node-agent/components/dpu'])).filter(
        ({ kind }) => !FOREIGN.includes(kind),
      );
      await started().plane.create(...shipped.filter((object) => !isWebhookConfiguration(object)));
    },
    async keepCertificate(service, { cert, key }) {
      const base64 = (text: string) => Buffer.from(text).toString('base64');
      await started().plane.create({
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: `${service}-tls`, namespace: NAMESPACE },
        type: 'kubernetes.io/tls',
        data: { 'tls.crt': base64(cert), 'tls.key': base64(key) },
      });
    },
    kubeconfig: (identity) => kubeconfigOf(started(), identity),
    async wire({ webhook, extender }) {
      const { plane } = started();
      await plane.create(...shipped.filter(isWebhookConfiguration).map((one) => callOf(one, webhook, authority.cert)));
      await untilCalled(plane);
      if (!electedSchedulers) await startOwn(extender);
    },
    startElectedScheduler: (hostName, extender) => startOwn(extender, hostName),
    async stop() {
      if (parts === undefined) return;
      const { plane, kube, client, nodes, kubeVirt } = parts;
      client.close();
      await kubeVirt.stop();
      await Promise.all(nodes.map((node) => node.stop()));
      await kube.close();
      await plane.stop();
    },
  };
}

async function startParts(
  { directory, nodes: descriptions, processes, onFault }: ClusterOptions,
  kubeVirt: KubeVirt,
  apiServerArgs: readonly string[],
): Promise<Parts> {
  const plane = await startControlPlane({ apiServerArgs });
  try {
    await plane.create(...definitions());
    await plane.startControllers();
    await kubeVirt.define(plane);
    const kube = createKubeClient(kubeconfigAccess(plane.adminKubeconfig), 'plumbline-test-parts');
    const client = createRemoteClient({ client: kube, types: READ, log: silent });
    await client.start();
    const nodes = descriptions.map((description) =>
      createEmulatedNode(description, { directory: `${directory}/${description.name}`, client, processes, onFault }),
    );
    for (const node of nodes) await node.start();
    const running = await kubeVirt.start({ plane, client, nodes, onFault });
    const scheduler = await plane.startScheduler(SCHEDULER);
    return { plane, kube, client, nodes, kubeVirt: running, scheduler };
  } catch (error) {
    await plane.stop();
    throw error;
  }
}

function definitions(): KubernetesObject[] {
  return objectsOf(render('base/crd')).filter(({ metadata }) => metadata.name.startsWith(NODE_TOPOLOGIES.plural));
}

async function kubeconfigOf({ plane, client }: Parts, identity: Identity): Promise<string> {
  switch (identity.kind) {
    case 'admin':
      return plane.adminKubeconfig;
    case 'webhook':
      return plane.accountKubeconfig('webhook', NAMESPACE, 'plumbline-webhook');
    case 'scheduler-plugin':
      return plane.accountKubeconfig('scheduler-plugin', NAMESPACE, SCHEDULER_ACCOUNT);
    case 'node-agent': {
      const pod = await agentPod(client, identity.node);
      return plane.accountKubeconfig(`agent-${identity.node}`, NAMESPACE, AGENT, pod);
    }
    case 'dpu':
      await plane.create({
        apiVersion: 'v1',
        kind: 'ServiceAccount',
        metadata: { name: identity.node, namespace: DPUS },
      });
      return plane.accountKubeconfig(`dpu-${identity.node}`, DPUS, identity.node);
  }
}

/** The pod of the DaemonSet on a node, by its name. */
async function agentPod(client: RemoteClient, node: string): Promise<string> {
  const { metadata } = await until(`the DaemonSet's pod on ${node}`, () =>
    client.list(PODS).find(({ metadata: { namespace }, spec }) => {
      return namespace === NAMESPACE && spec.nodeName === node && spec['serviceAccountName'] === AGENT;
    }),
  );
  return metadata.name;
}
