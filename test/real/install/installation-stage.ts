import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sidecarConfiguration } from '../../../cli/demo/cluster.ts';
import type { DaemonProcess } from '../../../cli/demo/daemons.ts';
import { openVswitch } from '../../../cli/demo/open-vswitch.ts';
import { root } from '../../support/bundles.ts';
import { pathOf } from '../../support/parts.ts';
import type { Program } from '../../support/processes.ts';
import { until } from '../../support/until.ts';
import { type ControlPlane, podOf, startControlPlane } from '../control-plane-stage.ts';
import { readyNode } from '../scheduler/stage.ts';
import { type AuditedRequest, auditPolicy, readAuditLog } from './audit-log-stage.ts';
import { agentOf, buildImages, DPU_WORKER, DPUS, SYSTEM, starter, WORKER, type Workload } from './daemons-stage.ts';
import { DEFINITIONS } from './foreign-definitions-fixture.ts';
import { createNodeStandIn, type NodeStandIn } from './node-stand-in.ts';
import { kubectlEnvironment, objectsOf, render } from './rendered-fixture.ts';
import { createWayToTheCluster, type WayToTheCluster } from './services-stage.ts';

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

export async function install() {
  const directory = mkdtempSync(join(tmpdir(), 'plumbline-install-'));
  const file = (name: string) => join(directory, name);
  const undo: (() => Promise<unknown>)[] = [async () => rmSync(directory, { recursive: true, force: true })];
  const stop = async () => {
    for (const one of undo.toReversed()) await one();
  };
  try {
    const images = buildImages(directory);
    const way = await createWayToTheCluster(directory);
    undo.push(way.stop);
    const plane = await startAudited(file, way);
    undo.push(plane.stop);
    const objects = objectsOf(render(OVERLAY.folder, OVERLAY.components));
    await apply(plane, file('ca.crt'));
    const nodes = new Map<string, NodeStandIn>();
    for (const name of [WORKER, DPU_WORKER]) {
      mkdirSync(file(name));
      const node = await createNodeStandIn(name, file(name), plane.client);
      nodes.set(name, node);
      undo.push(node.stop);
      await createNode(plane, name, agentOf(objects, name));
    }
    const ovs = await openVswitch(images.dist, directory);
    undo.push(ovs.stop);
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
        const path = `/apis/rbac.authorization.k8s.io/v1/namespaces/${SYSTEM}/rolebindings/plumbline-webhook-required`;
        await until('the API server to call the webhook', async () => {
          const { subjects = [] } = (await plane.client.get(path)) as { subjects?: readonly object[] };
          return subjects.length > 0;
        });
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
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

function startAudited(file: (name: string) => string, way: WayToTheCluster): Promise<ControlPlane> {
  writeFileSync(file('audit-policy.yaml'), auditPolicy([SYSTEM, DPUS]));
  writeFileSync(file('egress.yaml'), way.configuration);
  return startControlPlane({
    apiServerArgs: [
      ...['--audit-policy-file', file('audit-policy.yaml'), '--audit-log-path', file('audit.log')],
      ...['--egress-selector-config-file', file('egress.yaml')],
      // Controllers that do not run here would have to remove the second taint.
      '--disable-admission-plugins=ServiceAccount,TaintNodesByCondition',
    ],
  });
}

/** As in docs/tasks/operate.md#replace-certificates, for a cluster without cert-manager. */
async function apply(plane: ControlPlane, caFile: string): Promise<void> {
  const namespace = { apiVersion: 'v1', kind: 'Namespace' };
  await plane.create(
    { ...namespace, metadata: { name: 'ovn-kubernetes' } },
    { ...namespace, metadata: { name: 'tenant' } },
    ...DEFINITIONS,
  );
  const env = kubectlEnvironment(plane.adminKubeconfig);
  execFileSync(pathOf('kubectl'), ['apply', '--server-side', '--validate=strict', '-f', '-'], {
    input: render(OVERLAY.folder, OVERLAY.components),
    env,
    stdio: ['pipe', 'ignore', 'inherit'],
  });
  const script = join(root, 'manifests/overlays/development/certificates.sh');
  execFileSync(script, ['--ca-out', caFile], { env, stdio: ['ignore', 'ignore', 'inherit'] });
}

async function createNode(plane: ControlPlane, name: string, { spec }: Workload): Promise<void> {
  const amounts = {
    ...{ cpu: '16', memory: '64Gi', pods: '110', 'devices.kubevirt.io/kvm': '1k' },
    ...(name === WORKER && { 'physnet.plumbline.dev/physnet0': '110' }),
  };
  const labels = { 'kubernetes.io/os': 'linux', ...(name === DPU_WORKER && { 'k8s.ovn.org/dpu-host': '' }) };
  const status = { nodeInfo: { kubeletVersion: 'v1.36.2' } };
  const agent = podOf({ name: `agent-${name}`, namespace: SYSTEM }, { ...spec.template.spec, nodeName: name });
  await plane.create(readyNode(name, amounts, { labels, status }), agent);
}
