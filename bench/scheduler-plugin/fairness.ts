import { setTimeout as delay } from 'node:timers/promises';
import { namespaceOf, podOf } from '../../test/real/control-plane-stage.ts';
import {
  configurationAt,
  type ExtenderSettings,
  inParallel,
  type SeenPod,
  type Stage,
  startStage,
} from '../../test/real/scheduler/stage.ts';
import { until } from '../../test/support/until.ts';
import { runScript } from '../support/process.ts';
import type { BenchSettings } from '../support/settings.ts';
import { type BenchResult, median, summary } from '../support/timing.ts';
import { nodeName, nodeStatus } from './nodes.ts';

/**
 * As many as one kube-apiserver on two cores takes: with 2,000 waiting pods and 40 new ones a second it uses a whole core, and
 * kube-scheduler has not tried each pod once after five minutes, with any extender.
 */
const NODES = 100;
const WAITING_PODS = 400;
const NEW_PODS_A_SECOND = 10;
/** One in so many new pods has more containers than the extender reads. */
const UNREADABLE = 5;
const VICTIMS = 20;
const TENANT = 'tenant';
const VICTIM = 'victim';
const KVM = 'devices.kubevirt.io/kvm';
/** More than a node has free, but not more than kube-scheduler counts there. */
const TOO_MANY_CPUS = '128';

/**
 * Until the VM of one namespace has a node, with a real kube-scheduler, while another namespace has thousands of waiting VMs,
 * relative to the smallest extender that refuses those. The turn is the same: each new pod of the tenant is tried once.
 */
export async function victimBesideTenant({ rounds }: BenchSettings): Promise<BenchResult[]> {
  const stage = await startStage();
  const echo = runScript('bench/scheduler-plugin/echo-extender.ts', [TENANT]);
  try {
    await stage.plane.create(namespaceOf(TENANT), namespaceOf(VICTIM));
    await stage.addNodes(Array.from({ length: NODES }, (_, i) => ({ name: nodeName(i), topology: nodeStatus(i) })));
    const replica = await stage.startReplica();
    const { port } = await echo.line((found) => typeof found['port'] === 'number');
    const ours = (await configurationAt('sidecar', replica.port)).extenders;
    const theirs = (await configurationAt('sidecar', Number(port))).extenders.map((extender) => ({
      ...extender,
      prioritizeVerb: '',
      preemptVerb: '',
    }));
    const victims: { ours: number[]; theirs: number[] } = { ours: [], theirs: [] };
    for (let round = 0; round < rounds; round++) {
      const both = [
        ['ours', ours],
        ['theirs', theirs],
      ] as const;
      for (const [whose, extenders] of round % 2 === 0 ? both : both.toReversed())
        victims[whose].push(...(await secondsOfVictims(stage, extenders, `turn-${round}-${whose}`)));
    }
    // Of all rounds together: one victim waits some milliseconds, in which anything else of the machine counts.
    const ratio = median(victims.ours) / median(victims.theirs);
    return [summary('fairness.victim-and-400-waiting-over-echo', [ratio], { most: 1.2 })];
  } finally {
    await echo.stop();
    await stage.stop();
  }
}

const podsOf = (namespace: string) => `/api/v1/namespaces/${namespace}/pods`;

async function createPod(stage: Stage, namespace: string, name: string, cpu: string, schedulerName: string, extra = 0) {
  const amounts = { cpu, memory: '64Mi', [KVM]: '1' };
  const containers = [
    { name: 'compute', image: 'none', resources: { requests: amounts, limits: amounts } },
    ...Array.from({ length: extra }, (_, i) => ({ name: `c${i}`, image: 'none' })),
  ];
  const spec = { schedulerName, terminationGracePeriodSeconds: 0, containers };
  await stage.client.create(podsOf(namespace), podOf({ name, namespace }, spec));
}

/** Of each victim, with a kube-scheduler of its own. */
async function secondsOfVictims(stage: Stage, extenders: readonly ExtenderSettings[], name: string): Promise<number[]> {
  const { client } = stage;
  const ending = new AbortController();
  const scheduler = await stage.startScheduler({ name, extenders });
  const waiting = Array.from({ length: WAITING_PODS }, (_, i) => `${name}-w${i}`);
  await inParallel(waiting, (pod) => createPod(stage, TENANT, pod, TOO_MANY_CPUS, name));
  await until(
    'each waiting pod to be tried',
    async () => {
      await delay(1000);
      const { items } = (await client.get(podsOf(TENANT))) as {
        items: { status: { conditions?: readonly object[] } }[];
      };
      return items.every(({ status }) => status.conditions !== undefined);
    },
    300,
  );
  const creating = createForEver(stage, name, ending.signal);
  const seconds: number[] = [];
  try {
    for (let i = 0; i < VICTIMS; i++) {
      seconds.push(await secondsUntilBound(stage, `${name}-v${i}`, name));
      await delay(100);
    }
  } finally {
    ending.abort();
    await creating;
  }
  await scheduler.stop();
  for (const namespace of [TENANT, VICTIM]) {
    await client.delete(podsOf(namespace), { body: { gracePeriodSeconds: 0 } });
    await until(
      'the pods to be gone',
      async () => ((await client.get(podsOf(namespace))) as { items: object[] }).items.length === 0,
    );
  }
  console.error(`# ${name}: median ${median(seconds).toFixed(3)} s, longest ${Math.max(...seconds).toFixed(3)} s`);
  return seconds;
}

async function createForEver(stage: Stage, name: string, signal: AbortSignal): Promise<void> {
  const begun = performance.now();
  for (let i = 0; !signal.aborted; i++) {
    await createPod(stage, TENANT, `${name}-n${i}`, TOO_MANY_CPUS, name, i % UNREADABLE === 0 ? 60 : 0);
    const due = begun + ((i + 1) * 1000) / NEW_PODS_A_SECOND;
    if (due > performance.now()) await delay(due - performance.now());
  }
}

async function secondsUntilBound(stage: Stage, pod: string, schedulerName: string): Promise<number> {
  const begun = performance.now();
  await createPod(stage, VICTIM, pod, '2', schedulerName);
  for (;;) {
    const { spec, status } = (await stage.client.get(`${podsOf(VICTIM)}/${pod}`)) as SeenPod;
    if (spec.nodeName !== undefined) return (performance.now() - begun) / 1000;
    if (performance.now() - begun > 120_000)
      throw new Error(`${pod} has no node after 120 s: ${status.conditions?.[0]?.message ?? 'not tried'}`);
    await delay(2);
  }
}
