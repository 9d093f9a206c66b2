import assert from 'node:assert/strict';
import { DpuLease } from '../../../node-agent/dpu-lease/dpu.ts';
import { createAgentMetrics } from '../../../node-agent/telemetry/metrics.ts';
import { createLogger } from '../../../runtime/log.ts';
import { Registry } from '../../../runtime/metrics.ts';
import { AGENT_BIN_DIR, CONF_DIR, type GuestCni, useCni } from './guest-cni.ts';
import type { Scenario, Scene } from './scenario.ts';
import type { ScenePod } from './scene-pods.ts';

const OWN = '00-multus-plumbline-gate.json';
const OWN_LIST = '00-multus-plumbline-gate.conflist';
/** In seconds. */
const INTERVAL = 2;
const DURATION = 12;
const NOTICED = DURATION + INTERVAL + 60;
const GATE_FLAGS = ['--gate', 'on'];
const DPU_HOST = [
  ...['--mode', 'dpu-host', '--gate-status', 'on'],
  ...['--dpu-node-lease-renew-interval', String(INTERVAL), '--dpu-node-lease-duration', String(DURATION)],
];

/** A real container runtime calls the gate; this machine simulates the DPU and renews its Lease or not. */
export const GATE: Scenario = {
  name: 'gate',
  about: 'containerd asks the gate before each sandbox; a dead DPU refuses pods and, by STATUS, the node',
  async play(scene) {
    const { lab, agent, undo } = scene;
    undo(() => lab.run(`rm -rf /run/plumbline`));
    await lab.run(`mkdir -p /run/plumbline ${AGENT_BIN_DIR}`);
    agent.allow(CONF_DIR, AGENT_BIN_DIR, '/run/plumbline');
    const cni = await useCni(scene);
    const dpu = playDpu(scene);
    await cni.write('list');
    await refusedAndLet(scene, cni, dpu);
    await statusTells(scene, cni, dpu);
  },
};

interface PlayedDpu {
  live(): void;
  die(): Promise<void>;
}

function playDpu({ cluster, node, undo }: Scene): PlayedDpu {
  let stop = new AbortController();
  let running: Promise<void> = Promise.resolve();
  const die = async () => {
    stop.abort();
    await running;
  };
  undo(die);
  return {
    live() {
      stop = new AbortController();
      running = new DpuLease({
        client: cluster.client,
        lease: { namespace: 'ovn-kubernetes', name: `ovn-dpu-${node.name}` },
        timing: { renewInterval: INTERVAL, duration: DURATION },
        probe: async () => undefined,
        readRun: () => undefined,
        log: createLogger('dpu', 'error'),
        metrics: createAgentMetrics(new Registry()),
        wallClock: Date.now,
      }).run(stop.signal);
    },
    die,
  };
}

const runs = async ({ pods }: Scene, pod: ScenePod) => assert.equal(await pods.state(pod), 'Running');

async function metric({ lab }: Scene, name: string): Promise<number> {
  const ask = 'fetch("http://127.0.0.1:8082/metrics").then((r) => r.text()).then(console.log)';
  const lines = (await lab.run(`node -e '${ask}'`)).split('\n');
  return Number(lines.find((line) => line.startsWith(`${name} `))?.slice(name.length) ?? 0);
}

const answered = (scene: Scene, outcome: string, verb = 'ADD') =>
  metric(scene, `plumbline_gate_calls_total{verb="${verb}",outcome="${outcome}"}`);

async function readiness({ cluster, node }: Scene): Promise<string> {
  const { status } = (await cluster.client.get(`/api/v1/nodes/${node.name}`)) as {
    status: { conditions: { type: string; status: string; message: string }[] };
  };
  const ready = status.conditions.find(({ type }) => type === 'Ready');
  return `${ready?.status}: ${ready?.message}`;
}

async function refusedAndLet(scene: Scene, cni: GuestCni, dpu: PlayedDpu): Promise<void> {
  const { holds, pods, agent } = scene;
  await agent.start(...DPU_HOST, ...GATE_FLAGS);
  await holds('a list of plugins: the gate wraps the first', async () => {
    const { cniVersion, name, plugins } = await cni.read(OWN_LIST);
    assert.deepEqual([cniVersion, name], ['1.0.0', 'lab']);
    const types = (plugins as { type: string }[]).map(({ type }) => type).join(', ');
    assert.equal(types, 'plumbline-gate, tuning');
    return types;
  });
  const waits = await pods.create('waits', {});
  await holds('no DPU: a pod waits, with the reason in its Event', async () => {
    const event = (await pods.events(waits)).find((one) =>
      /^FailedCreatePodSandBox.*DPU Not Ready: its lease/.test(one),
    );
    assert.ok(event, (await pods.events(waits)).join('; '));
    return /DPU Not Ready: .*?;/.exec(event)?.[0];
  });
  const hosts = await pods.create('hosts', {}, { hostNetwork: true });
  await holds('a pod on the host’s network runs', () => runs(scene, hosts));
  await holds('at CNI 1.0.0 there is no STATUS, and the node stays Ready', async () => {
    assert.match(await readiness(scene), /^True/);
  });
  dpu.live();
  await holds('the DPU starts: the pod runs', () => runs(scene, waits), NOTICED);
  await pods.remove(hosts);
  const before = await answered(scene, 'allowed');
  await cni.killSandbox(waits.uid);
  await holds('a recreated sandbox calls the gate again, once', async () => {
    assert.equal(await answered(scene, 'allowed'), before + 1);
    await runs(scene, waits);
  });
  await pods.remove(waits);
}

async function statusTells(scene: Scene, cni: GuestCni, dpu: PlayedDpu): Promise<void> {
  const { holds, pods } = scene;
  await cni.write('newer');
  await holds('a primary of CNI 1.1.0', async () => assert.equal((await cni.read(OWN))['cniVersion'], '1.1.0'));
  const stays = await pods.create('stays', {});
  await holds('a pod runs on it', () => runs(scene, stays));
  await holds('the runtime calls STATUS', async () => assert.ok((await answered(scene, 'allowed', 'STATUS')) > 0));
  await dpu.die();
  await holds(
    'the DPU dies: the node is NotReady, with the reason',
    async () => {
      const said = await readiness(scene);
      assert.match(said, /^False: .*DPU Not Ready/);
      return said;
    },
    NOTICED,
  );
  await holds('the running pod is not affected', () => runs(scene, stays));
  dpu.live();
  await holds(
    'the DPU recovers: the node is Ready',
    async () => assert.match(await readiness(scene), /^True/),
    NOTICED,
  );
  await pods.remove(stays);
}
