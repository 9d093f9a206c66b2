import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sidecarConfiguration } from '../../../cli/demo/cluster.ts';
import { type DaemonProcess, startDaemon } from '../../../cli/demo/daemons.ts';
import { createGateFixture, PASS } from '../../native/gate.ts';
import { buildOnce, dist, root } from '../../support/bundles.ts';
import { DPUS, installAgents, WITH_DPUS } from '../node-agent/installed.ts';
import { readyNode, type SeenPod } from '../scheduler/stage.ts';

/** In seconds. */
export const INTERVAL = 1;
export const DURATION = 4;
export const NODE = 'worker-dpu';
const SYSTEM = 'plumbline-system';
const MERGE = 'application/merge-patch+json';

/** A real control plane with the extender for its scheduler, and one node whose network runs on a DPU. */
export type DpuScene = Awaited<ReturnType<typeof createDpuScene>>;

export async function createDpuScene() {
  buildOnce();
  const installed = await installAgents([NODE], WITH_DPUS);
  const { plane } = installed;
  const directory = mkdtempSync(join(tmpdir(), 'plumbline-dpu-'));
  mkdirSync(join(directory, 'kubelet'));
  const cni = ['cni-conf-dir', 'cni-bin-dir'].flatMap((name) => [`--${name}`, join(directory, name)]);
  const daemons: DaemonProcess[] = [];
  const start = async (name: string, daemon: string, args: readonly string[]) => {
    const serial = `${name}-${daemons.length}`;
    const made = startDaemon({ name: serial, program: join(dist, `${daemon}.cjs`), args, directory });
    daemons.push(made);
    await made.ports();
    return made;
  };
  const timing = ['--dpu-node-lease-renew-interval', String(INTERVAL), '--dpu-node-lease-duration', String(DURATION)];
  const base = '/api/v1/namespaces/default/pods';
  const gate = createGateFixture();
  /** Calls the host's gate for a network. */
  const callGate = (verb: string) => {
    const conf = { cniVersion: '1.1.0', name: 'net', type: 'plumbline-gate', delegate: { type: PASS } };
    return gate.call({ verb, conf, environment: { PLUMBLINE_RUN_DIR: directory } });
  };
  /** The node's DPUReady condition: its status and reason. */
  const condition = async (): Promise<string | undefined> => {
    const { status } = (await plane.client.get(`/api/v1/nodes/${NODE}`)) as {
      status: { conditions?: { type: string; status: string; reason: string }[] };
    };
    const ready = status.conditions?.find(({ type }) => type === 'plumbline.dev/DPUReady');
    return ready && `${ready.status} ${ready.reason}`;
  };

  await describeNode();
  await startScheduler();
  return {
    installed,
    callGate,
    /** The code of the gate's error; undefined if it lets the call pass. */
    async gateCode(verb = 'ADD'): Promise<unknown> {
      const { stdout, json } = await callGate(verb);
      return stdout === '' ? undefined : json()['code'];
    },
    condition,
    isCondition: (status: string) => async () => (await condition())?.startsWith(status) === true,
    async startHost(...more: string[]) {
      // The kubeconfig of the client of this account.
      await installed.agent(NODE);
      return start('host', 'node-agent', [
        ...['--node-name', NODE, '--mode', 'dpu-host', '--probe-port', '0', '--kubelet-endpoint', ''],
        ...['--kubeconfig', join(plane.directory, `agent-${NODE}.kubeconfig`)],
        ...['--kubelet-dir', join(directory, 'kubelet')],
        ...['--gate', 'on', '--gate-status', 'on', '--run-dir', directory, ...cni],
        ...timing,
        ...more,
      ]);
    },
    async startDpu(rundir: string) {
      await installed.account(DPUS, NODE);
      return start('dpu', 'node-agent', [
        ...['--node-name', NODE, '--mode', 'dpu', '--probe-port', '0', '--ovs-rundir', rundir],
        ...['--kubeconfig', join(plane.directory, `${DPUS}-${NODE}.kubeconfig`)],
        ...timing,
      ]);
    },
    pod: createPod,
    /** Creates a pod that runs on the node, with a status as from its kubelet. @returns its uid */
    async runningPod(name: string) {
      const uid = await createPod(name, { nodeName: NODE });
      const state = { running: { startedAt: '2026-01-01T00:00:00Z' } };
      const main = { name: 'main', image: 'x', imageID: 'x', ready: true, restartCount: 0, started: true, state };
      const status = { phase: 'Running', containerStatuses: [main] };
      await plane.client.patch(`${base}/${name}/status`, MERGE, { status });
      return uid;
    },
    readPod: async (name: string) => (await plane.client.get(`${base}/${name}`)) as SeenPod,
    async stop() {
      await Promise.all(daemons.map((daemon) => daemon.stop()));
      await installed.stop();
      gate.remove();
      rmSync(directory, { recursive: true, force: true });
    },
  };

  /** Creates a pod for the scheduler. @returns its uid */
  async function createPod(name: string, more: object = {}): Promise<string> {
    const resources = { limits: { 'devices.kubevirt.io/kvm': '1' } };
    const spec = {
      schedulerName: 'plumbline-scheduler',
      containers: [{ name: 'main', image: 'x', resources }],
      tolerations: [{ operator: 'Exists' }],
      ...more,
    };
    const object = { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec };
    const { metadata } = (await plane.client.create(base, object)) as SeenPod;
    return metadata.uid;
  }

  /** The labels and the status of a kubelet. */
  async function describeNode(): Promise<void> {
    const path = `/api/v1/nodes/${NODE}`;
    const amounts = { cpu: '16', memory: '64Gi', pods: '110', 'devices.kubevirt.io/kvm': '1000' };
    const { metadata, status } = readyNode(NODE, amounts, { labels: { 'k8s.ovn.org/dpu-host': '' } });
    await plane.client.patch(path, MERGE, { metadata, spec: { taints: null } });
    await plane.client.patch(`${path}/status`, MERGE, { status });
  }

  /** As in the base: a kube-scheduler with the extender in its pod, both with the account of that pod. */
  async function startScheduler(): Promise<void> {
    const token = await plane.serviceAccountToken(SYSTEM, 'plumbline-scheduler');
    const kubeconfig = await plane.kubeconfig('scheduler', token);
    const extender = await start('extender', 'scheduler-plugin', [
      ...['--port', '0', '--probe-host', '127.0.0.1', '--probe-port', '0'],
      ...['--kubeconfig', kubeconfig],
    ]);
    const configuration = await sidecarConfiguration(root, (await extender.ports()).port);
    await plane.startScheduler(configuration, { kubeconfig });
  }
}
