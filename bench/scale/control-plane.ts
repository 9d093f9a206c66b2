import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createCertificateAuthority } from '../../sandbox/certificates.ts';
import { kubeconfig as kubeconfigText } from '../../sandbox/cluster/identities.ts';
import { type ApiGate, startApiGate } from '../../test/faults/world/api-gate.ts';
import type { KubernetesObject } from '../../test/real/control-plane-stage.ts';
import { objectsOf, render } from '../../test/real/install/rendered-fixture.ts';
import { inParallel, type Replica, type Stage, startStage } from '../../test/real/scheduler/stage.ts';
import { FOREIGN_DEFINITIONS } from '../../test/real/webhook/crds-fixture.ts';
import { shippedNodeOptions } from '../../test/support/shipped.ts';
import { until } from '../../test/support/until.ts';
import { nodeName, nodeStatus } from '../scheduler-plugin/nodes.ts';
import { requireReports, untilQuiet } from '../scheduler-plugin/schedule.ts';
import { bundle, cpuSecondsOf, memoryOf, type Running, run } from '../support/process.ts';
import { LAUNCHER_NAD, launcherVmi, openReviewLoad, reviewBody, untilReady } from '../webhook/reviews.ts';
import { type ChooseNode, createTraffic, NAMESPACE, offeredByDefault, openScheduling } from './traffic.ts';

const SYSTEM = 'plumbline-system';
const LEASES = `/apis/coordination.k8s.io/v1/namespaces/${SYSTEM}/leases`;
/** Seconds between two renewals of an agent's Lease. */
export const RENEWAL = 10;
const HEARTBEAT_SECONDS = 20;
/** Lasts for the whole measurement: no agent may count as silent while others are measured. */
const LEASE_SECONDS = 600;
/** Seconds in which the extender must have read the last renewal. */
const CATCH_UP_SECONDS = 5;
const VMS = 500;
/**
 * VMs before the measured ones: a quarter of a minute of the load that the page names. The compiler is warm by then;
 * after 600 VMs, each still takes a fifth more.
 */
const WARM_UP = 1500;
/** VMs in progress at a time. One by one, each would wake every daemon several times for one event. */
const AT_ONCE = 10;
const IDLE_SECONDS = 10;
const VMI_PATH = `/apis/kubevirt.io/v1/namespaces/${NAMESPACE}/virtualmachineinstances`;
const NADS_PATH = `/apis/k8s.cni.cncf.io/v1/namespaces/${NAMESPACE}/network-attachment-definitions`;

/** Cost of a daemon for a number of nodes. */
export interface DaemonCost {
  /** Resident memory in bytes, with full caches. */
  readonly memory: number;
  /** Bytes that it reads when it starts. */
  readonly startBytes: number;
  /** Seconds of processor time, and bytes read, for each second in which every agent renews its Lease normally. */
  readonly heartbeatShare: number;
  readonly heartbeatBytes: number;
  /** For one VM that is created and deleted, with every node's name in the filter call. */
  readonly vmSeconds: number;
  /** The same VM, with as many names as kube-scheduler offers by default. */
  readonly vmSecondsByDefault: number;
  readonly vmBytes: number;
  readonly vmRequests: number;
}

type Daemon = 'webhook' | 'extender';

interface Measured {
  readonly pid: number;
  readonly api: ApiGate;
}

/** Cost of the webhook and the extender with a real API server and a number of nodes. */
export async function measureDaemons(nodes: number): Promise<Readonly<Record<Daemon, DaemonCost>>> {
  const stage = await startStage();
  const apis: ApiGate[] = [];
  let webhook: (Running & { port: number; ca: string }) | undefined;
  try {
    await stage.plane.create(...FOREIGN_DEFINITIONS, ...webhookObjects());
    await stage.plane.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } });
    const fleet = Array.from({ length: nodes }, (_, i) => ({ name: nodeName(i), topology: nodeStatus(i) }));
    await stage.addNodes(fleet);
    await inParallel(fleet, async ({ name }) => void (await stage.client.create(LEASES, agentLease(name))));
    for (let i = 0; i < 2; i++) apis.push(await startApiGate(stage.plane));
    const [extenderApi, webhookApi] = apis as [ApiGate, ApiGate];
    const replica = await stage.startReplica({ args: ['--reservation-timeout', '600'], api: extenderApi });
    await until('the replica to be active', () => replica.isActive());
    webhook = await startWebhook(stage, webhookApi);
    // The extender labels every node with a report.
    await delay(5000);
    await untilQuiet(stage);
    await requireReports(replica);
    const measured: Record<Daemon, Measured> = {
      webhook: { pid: webhook.pid, api: webhookApi },
      extender: { pid: replica.pid, api: extenderApi },
    };
    const startBytes = { webhook: webhookApi.take().bytes, extender: extenderApi.take().bytes };
    let renewals = 0;
    const beats = await over(measured, async () => {
      renewals = await heartbeats(stage, nodes);
    });
    await requireCaughtUp(stage, replica);
    // The API server may take longer than the renewals' interval on this machine.
    const renewing = renewals / (nodes / RENEWAL);
    const idle = await over(measured, () => delay(IDLE_SECONDS * 1000));
    const comeAndGo = createTraffic(stage, nodes, await openReviews(webhook, stage));
    const [all, byDefault] = [nodes, offeredByDefault(nodes)].map((offered) =>
      openScheduling(replica.port, nodes, offered),
    ) as [ChooseNode, ChooseNode];
    await comeAndGo(WARM_UP, all);
    const vms = await over(measured, () => comeAndGo(VMS, all));
    const vmsByDefault = await over(measured, () => comeAndGo(VMS, byDefault));
    // What a daemon does anyway is part of the heartbeats.
    const aVm = (name: Daemon, { [name]: cost }: typeof vms) =>
      (cost.seconds - (idle[name].seconds / idle[name].elapsed) * cost.elapsed) / VMS;
    await requireReports(replica);
    const costOf = (name: Daemon): DaemonCost => ({
      memory: memoryOf(measured[name].pid).rss,
      startBytes: startBytes[name],
      heartbeatShare: beats[name].seconds / renewing,
      heartbeatBytes: beats[name].bytes / renewing,
      vmSeconds: aVm(name, vms),
      vmSecondsByDefault: aVm(name, vmsByDefault),
      vmBytes: vms[name].bytes / VMS,
      vmRequests: vms[name].requests / VMS,
    });
    return { webhook: costOf('webhook'), extender: costOf('extender') };
  } finally {
    await webhook?.stop();
    await Promise.all(apis.map((api) => api.stop()));
    await stage.stop();
  }
}

async function over(measured: Readonly<Record<Daemon, Measured>>, work: () => Promise<unknown>) {
  for (const { api } of [measured.webhook, measured.extender]) api.take();
  const before = { webhook: cpuSecondsOf(measured.webhook.pid), extender: cpuSecondsOf(measured.extender.pid) };
  const begun = performance.now();
  await work();
  // Time for the daemons to process the watch events.
  await delay(1000);
  const elapsed = (performance.now() - begun) / 1000;
  const of = (name: Daemon) => {
    const { pid, api } = measured[name];
    return { seconds: cpuSecondsOf(pid) - before[name], elapsed, ...api.take() };
  };
  return { webhook: of('webhook'), extender: of('extender') };
}

/**
 * Every agent renews its Lease, spread evenly over the interval, for HEARTBEAT_SECONDS.
 * @returns the number of renewals, fewer if the API server is slower
 */
async function heartbeats({ client }: Stage, nodes: number): Promise<number> {
  const perSecond = nodes / RENEWAL;
  const begun = performance.now();
  for (let done = 0; ; ) {
    const elapsed = (performance.now() - begun) / 1000;
    if (elapsed >= HEARTBEAT_SECONDS) return done;
    const due = Array.from({ length: Math.floor(elapsed * perSecond) - done }, (_, i) => (done + i) % nodes);
    done += due.length;
    await inParallel(due, (node) => renew(client, node));
    await delay(50);
  }
}

async function renew(client: Stage['client'], node: number, terms: { leaseDurationSeconds?: number } = {}) {
  const renewTime = new Date().toISOString().replace('Z', '000Z');
  const spec = { renewTime, ...terms };
  await client.patch(`${LEASES}/${leaseName(nodeName(node))}`, 'application/merge-patch+json', { spec });
}

/**
 * Checks that the extender has read the last renewal: one that is valid for a second makes the agent silent after it.
 * An extender that falls behind would look cheap, and its agents silent.
 *
 * @throws Error if it takes longer than CATCH_UP_SECONDS
 */
async function requireCaughtUp({ client }: Stage, { metric }: Replica): Promise<void> {
  const [one, another] = [0, 1];
  await renew(client, one, { leaseDurationSeconds: 1 });
  for (let waited = 0; waited < CATCH_UP_SECONDS; waited++) {
    await delay(1000);
    // Silence counts only while the watch delivers other events.
    await renew(client, another);
    if ((await metric('plumbline_extender_silent_agents')) > 0) {
      await renew(client, one, { leaseDurationSeconds: LEASE_SECONDS });
      return;
    }
  }
  throw new Error(`the extender is more than ${CATCH_UP_SECONDS} s behind the agents' renewals`);
}

/** Functions that each send one review over a connection of their own. */
async function openReviews(
  webhook: { port: number; ca: string },
  { client }: Stage,
): Promise<readonly (() => Promise<void>)[]> {
  await client.create(NADS_PATH, LAUNCHER_NAD);
  const created = (await client.create(VMI_PATH, launcherVmi() as never)) as { metadata: { uid: string } };
  const body = reviewBody(created.metadata.uid);
  const target = { port: webhook.port, path: '/mutate-pods', ca: webhook.ca };
  const loads = await Promise.all(Array.from({ length: AT_ONCE }, () => openReviewLoad(target, body, 1)));
  // Warms up the compiler, as in a webhook that has been running for some time.
  for (const load of loads) await load.run(200);
  return loads.map((load) => () => load.run(1));
}

const leaseName = (node: string) => `plumbline-agent-${node}`;

function agentLease(node: string): KubernetesObject {
  const spec = { holderIdentity: node, leaseDurationSeconds: LEASE_SECONDS, renewTime: '2026-01-01T00:00:00.000000Z' };
  return { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: leaseName(node) }, spec };
}

/** The objects of the base that the webhook's account needs. */
const webhookObjects = () =>
  objectsOf(render('base')).filter(
    ({ kind, metadata: { name } }) => /Role|ServiceAccount/.test(kind) && name.startsWith('plumbline-webhook'),
  );

async function startWebhook(stage: Stage, api: ApiGate) {
  const authority = createCertificateAuthority('plumbline-webhook');
  const { cert, key } = authority.issue(['localhost', '127.0.0.1']);
  const directory = await mkdtemp(join(tmpdir(), 'plumbline-scale-'));
  const file = async (name: string, content: string) => {
    await writeFile(join(directory, name), content);
    return join(directory, name);
  };
  const token = await stage.plane.serviceAccountToken(SYSTEM, 'plumbline-webhook');
  const args = [
    bundle('webhook.cjs'),
    ...['--host', '127.0.0.1', '--port', '0', '--probe-host', '127.0.0.1', '--probe-port', '0'],
    ...['--cert-file', await file('tls.crt', cert), '--key-file', await file('tls.key', key)],
    ...['--kubeconfig', await file('kubeconfig', kubeconfigText({ server: api.url, ca: api.ca, token }))],
  ];
  const one = run(process.execPath, args, shippedNodeOptions('webhook'));
  await untilReady(one);
  const { port } = await one.line(
    (found) => typeof found['port'] === 'number' && typeof found['probePort'] === 'number',
  );
  return { ...one, port: Number(port), ca: authority.cert };
}
