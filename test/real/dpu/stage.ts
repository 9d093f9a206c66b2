import { join } from 'node:path';
import { DPU_READY_CONDITION } from '../../../model/names.ts';
import { createGateFixture, PASS } from '../../native/gate-stage.ts';
import { DPU_WORKER } from '../install/daemons-stage.ts';
import { install } from '../install/installation-stage.ts';
import { nodeCondition, type SeenPod } from '../scheduler/stage.ts';

export type DpuScene = Awaited<ReturnType<typeof createDpuScene>>;

const PODS = '/api/v1/namespaces/default/pods';

export async function createDpuScene() {
  const installed = await install();
  const { client } = installed;
  await installed.startPair('pair');
  const gate = createGateFixture();
  const runDirectory = join(installed.nodes.get(DPU_WORKER)!.hostRoot, 'run/plumbline');
  const callGate = (verb: string) => {
    const conf = { cniVersion: '1.1.0', name: 'net', type: 'plumbline-gate', delegate: { type: PASS } };
    return gate.call({ verb, conf, environment: { PLUMBLINE_RUN_DIR: runDirectory } });
  };
  const condition = async (): Promise<string | undefined> => {
    const ready = await nodeCondition(client, DPU_WORKER, DPU_READY_CONDITION);
    return ready && `${ready.status} ${ready.reason}`;
  };
  const createPod = async (name: string, more: object = {}): Promise<string> => {
    const resources = { limits: { 'devices.kubevirt.io/kvm': '1' } };
    const spec = {
      schedulerName: 'plumbline-scheduler',
      nodeSelector: { 'kubernetes.io/hostname': DPU_WORKER },
      containers: [{ name: 'main', image: 'x', resources }],
      tolerations: [{ operator: 'Exists' }],
      ...more,
    };
    const object = { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec };
    const { metadata } = (await client.create(PODS, object)) as SeenPod;
    return metadata.uid;
  };

  return {
    plane: installed.plane,
    callGate,
    /** The code of the gate's error; undefined if it lets the call pass. */
    async gateCode(verb = 'ADD'): Promise<unknown> {
      const { stdout, json } = await callGate(verb);
      return stdout === '' ? undefined : json()['code'];
    },
    condition,
    isCondition: (status: string) => async () => (await condition())?.startsWith(status) === true,
    startHost: (...flags: string[]) => installed.startAgent(DPU_WORKER, '--gate-status', 'on', ...flags),
    startDpu: (rundir: string) => installed.startDpu(rundir),
    pod: createPod,
    async runningPod(name: string) {
      const uid = await createPod(name, { nodeName: DPU_WORKER });
      const state = { running: { startedAt: '2026-01-01T00:00:00Z' } };
      const main = { name: 'main', image: 'x', imageID: 'x', ready: true, restartCount: 0, started: true, state };
      const status = { phase: 'Running', containerStatuses: [main] };
      await client.patch(`${PODS}/${name}/status`, 'application/merge-patch+json', { status });
      return uid;
    },
    readPod: async (name: string) => (await client.get(`${PODS}/${name}`)) as SeenPod,
    async stop() {
      await installed.stop();
      gate.remove();
    },
  };
}
