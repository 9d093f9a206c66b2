import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sidecarConfiguration } from '../../../cli/demo/cluster.ts';
import type { DaemonProcess } from '../../../cli/demo/daemons.ts';
import { openVswitch } from '../../../cli/demo/open-vswitch.ts';
import { root } from '../../support/bundles.ts';
import type { Program } from '../../support/processes.ts';
import { buildStage } from '../../support/stage.ts';
import { until } from '../../support/until.ts';
import { type ControlPlane, namespaceOf, podOf, startControlPlane } from '../control-plane-stage.ts';
import { readyNode } from '../scheduler/stage.ts';
import { isSwitchedOn } from '../webhook/installed-stage.ts';
import { type AuditedRequest, auditPolicy, readAuditLog } from './audit-log-stage.ts';
import { agentOf, buildImages, DPU_WORKER, DPUS, SYSTEM, starter, WORKER, type Workload } from './daemons-stage.ts';
import { DEFINITIONS } from './foreign-definitions-fixture.ts';
import { createNodeStandIn, type NodeStandIn } from './node-stand-in.ts';
import { createCertificates, kubectlOf, objectsOf, render } from './rendered-fixture.ts';
import { createWayToTheCluster } from './services-stage.ts';

/**
 * Plumbline installed on a real API server as a user would: the manifests applied by kubectl, the certificates from the
 * script of the development overlay, the daemons from the files of their images, each with a token of its shipped
 * service account and the arguments of its shipped workload. The test changes nothing in the API.
 */
export type Installation = Awaited<ReturnType<typeof install>>;

export interface SchedulerPair {
  readonly extender: DaemonProcess;
  readonly scheduler: Program;
}

export const OVERLAY = {
  folder: 'overlays/dpu-host',
  components: ['base/node-agent/components/gate', 'components/console', 'components/monitoring'],
} as const;

export function install() {
  return buildStage('plumbline-install-', async (directory, undo) => {
    const file = (name: string) => join(directory, name);
    const images = buildImages(directory);
    const way = await createWayToTheCluster(directory);
    undo(way.stop);
    const plane = await startAudited(file, way.apiServerArgs);
    undo(plane.stop);
    const objects = objectsOf(render(OVERLAY.folder, OVERLAY.components));
    await apply(plane, file('ca.crt'));
    const nodes = new Map<string, NodeStandIn>();
    for (const name of [WORKER, DPU_WORKER]) {
      mkdirSync(file(name));
      const node = await createNodeStandIn(name, file(name), plane.client);
      nodes.set(name, node);
      undo(node.stop);
      await createNode(plane, name, agentOf(objects, name));
    }
    const ovs = await openVswitch(images.dist, directory);
    undo(ovs.stop);
    const daemons = starter({ plane, objects, images, directory, nodes, ovs, undo });
    return {
      plane,
      client: plane.client,
      objects,
      ca: () => readFileSync(file('ca.crt'), 'utf8'),
      nodes: nodes as ReadonlyMap<string, NodeStandIn>,
      requests: (): AuditedRequest[] => readAuditLog(file('audit.log')),
      startAgent: daemons.startAgent,
      startDpu: daemons.startDpu,
      startConsole: daemons.startConsole,
      async startWebhook() {
        const webhook = await daemons.startWebhook();
        way.port = (await webhook.ports()).port;
        await until('the API server to call the webhook', () => isSwitchedOn(plane));
        return webhook;
      },
      async startPair(hostName: string): Promise<SchedulerPair> {
        const extender = await daemons.startSidecar(hostName);
        const configuration = await sidecarConfiguration(root, (await extender.ports()).port);
        const kubeconfig = await plane.accountKubeconfig(`scheduler-${hostName}`, SYSTEM, 'plumbline-scheduler');
        const backoff = { podInitialBackoffSeconds: 1, podMaxBackoffSeconds: 2 };
        const scheduler = await plane.startScheduler({ ...configuration, ...backoff }, { kubeconfig, hostName });
        return { extender, scheduler };
      },
    };
  });
}

function startAudited(file: (name: string) => string, wayArgs: readonly string[]): Promise<ControlPlane> {
  writeFileSync(file('audit-policy.yaml'), auditPolicy([SYSTEM, DPUS]));
  return startControlPlane({
    apiServerArgs: [
      ...['--audit-policy-file', file('audit-policy.yaml'), '--audit-log-path', file('audit.log')],
      ...wayArgs,
      // Controllers that do not run here would have to remove the second taint.
      '--disable-admission-plugins=ServiceAccount,TaintNodesByCondition',
    ],
  });
}

/** As in docs/tasks/operate.md#replace-certificates, for a cluster without cert-manager. */
async function apply(plane: ControlPlane, caFile: string): Promise<void> {
  await plane.create(...['ovn-kubernetes', 'tenant'].map(namespaceOf), ...DEFINITIONS);
  const args = ['apply', '--server-side', '--validate=strict', '-f', '-'];
  const { status, said } = kubectlOf(plane)(args, render(OVERLAY.folder, OVERLAY.components));
  if (status !== 0) throw new Error(said);
  createCertificates(plane, '--ca-out', caFile);
}

async function createNode(plane: ControlPlane, name: string, { spec }: Workload): Promise<void> {
  const amounts = {
    cpu: '16',
    memory: '64Gi',
    pods: '110',
    'devices.kubevirt.io/kvm': '1k',
    ...(name === WORKER && { 'physnet.plumbline.dev/physnet0': '110' }),
  };
  const labels = { 'kubernetes.io/os': 'linux', ...(name === DPU_WORKER && { 'k8s.ovn.org/dpu-host': '' }) };
  const status = { nodeInfo: { kubeletVersion: 'v1.36.2' } };
  const agent = podOf({ name: `agent-${name}`, namespace: SYSTEM }, { ...spec.template.spec, nodeName: name });
  await plane.create(readyNode(name, amounts, { labels, status }), agent);
}
