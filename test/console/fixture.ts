import { rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildConsole } from '../../build-console.ts';
import { createConsole } from '../../console/server/console.ts';
import type { Kind, OptionalKind } from '../../console/server/kinds.ts';
import type { QuestionSources } from '../../console/server/questions.ts';
import { podState } from '../../diagnosis/launcher.ts';
import { extenderVerdict, groupNodes } from '../../diagnosis/opinions.ts';
import { remedyLines } from '../../diagnosis/remedies.ts';
import type { KubeError } from '../../kube/client.ts';
import type { NodeTopologyStatus } from '../../kube/node-topology.ts';
import type { Pod } from '../../kube/resources.ts';
import { DPU_HOST_LABEL, DPU_READY_CONDITION, NAMESPACE, SCHEDULABLE_LABEL } from '../../model/names.ts';
import type { PodShape } from '../../model/shapes.ts';
import { createExplainer } from '../../scheduler-plugin/extender/explain.ts';
import {
  type ExtenderFixture,
  type ExtenderUnderTest,
  extenderOf,
  unschedulable,
} from '../scheduler-plugin/extender-fixture.ts';
import { silent } from '../support/logger.ts';
import { inventNode, launcher } from './cluster-fixture.ts';
import { createMemoryApi, type MemoryApi } from './memory-api-stand-in.ts';

interface NodeState {
  /** The status of its DPUReady condition. */
  readonly dpu?: string;
  readonly since?: string;
  readonly isControlPlane?: true;
  readonly message?: string;
}

/** The console's server with an API in memory, and the extender that explains pods. */
export interface ConsoleUnderTest extends Pick<ExtenderUnderTest, 'filter' | 'extender'> {
  readonly api: MemoryApi;
  readonly page: ReturnType<typeof createConsole>;
  readonly url: string;
  readonly port: number;
  /** The names of the initial nodes. */
  readonly names: readonly string[];
  /** Replaces the Node; null: deletes it. */
  node(name: string, what: NodeState | null): void;
  report(name: string, status: NodeTopologyStatus | undefined): void;
  /** Its agent's Lease with a renewal time; a Lease that does not change is one of a silent agent. */
  lease(name: string, spec: object): void;
  /** Lets the Lease of a node's agent expire; `renewTime` is its last renewal. */
  silence(node: string, renewTime: string): Promise<void>;
  see(pod: Pod, status?: object): void;
  gone(pod: Pod): void;
  stop(): Promise<void>;
}

export interface ConsoleFixture extends ExtenderFixture, Partial<Omit<QuestionSources, 'histories'>> {
  /** Generated nodes with their VMs. */
  readonly invented?: number;
  readonly port?: number;
  readonly without?: ReadonlySet<OptionalKind>;
  /** The answers of the API server when these are read. */
  readonly refused?: Readonly<Partial<Record<Kind, KubeError>>>;
  /** No scheduler leads. */
  readonly leaderless?: true;
}

let built: Promise<string> | undefined;

/** The page's files, bundled once for each run. */
export function pageFiles(): Promise<string> {
  built ??= (async () => {
    const folder = await mkdtemp(join(tmpdir(), 'plumbline-console-'));
    process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
    await buildConsole(folder);
    return folder;
  })();
  return built;
}

/** The message of kube-scheduler for a pod without a node. */
export const NO_ROOM = '0/400 nodes are available: 400 too few free whole cores.';

/** A launcher without a node. */
export function waitingPod(name: string, cpus: number, since = '2026-05-04T10:00:00Z'): Pod {
  const pod = launcher({ namespace: 'east', name, uid: `uid-${name}`, count: cpus, padding: 1 });
  return { ...pod, metadata: { ...pod.metadata, creationTimestamp: since } } as Pod;
}

export const LEADER = 'plumbline-scheduler-7d9-abcde';

/** The complete console, as in a process; the test controls the answers of the API server. */
export async function consoleOf(fixture: ConsoleFixture = {}): Promise<ConsoleUnderTest> {
  const invented = Array.from({ length: fixture.invented ?? 0 }, (_, index) => inventNode(index));
  const dpus = Object.fromEntries(
    invented.filter(({ dpu }) => dpu).map(({ name }) => [name, { ready: true, state: 'alive' as const, age: 3 }]),
  );
  const under = extenderOf({
    ...(invented.length > 0 ? { nodes: Object.fromEntries(invented.map((one) => [one.name, one.status])), dpus } : {}),
    ...fixture,
  });
  const api = createMemoryApi();
  const pods = new Map<string, Pod>();
  const lease: ConsoleUnderTest['lease'] = (name, spec) =>
    api.put('leases', { metadata: { name, namespace: NAMESPACE }, spec } as never);

  const node: ConsoleUnderTest['node'] = (name, what) => {
    const { dpu, since, message, isControlPlane } = what ?? {};
    const labels = {
      ...(dpu !== undefined && { [DPU_HOST_LABEL]: '' }),
      ...(isControlPlane !== true && { [SCHEDULABLE_LABEL]: 'true' }),
    };
    const condition = { type: DPU_READY_CONDITION, status: dpu, lastTransitionTime: since, message };
    const object = { metadata: { name, labels }, status: { conditions: dpu === undefined ? [] : [condition] } };
    if (what === null) api.remove('nodes', object);
    else api.put('nodes', object);
  };
  const report: ConsoleUnderTest['report'] = (name, status) => {
    const object = { metadata: { name }, status };
    if (status === undefined) api.remove('nodetopologies', object);
    else api.put('nodetopologies', object);
  };
  const see: ConsoleUnderTest['see'] = (pod, status = unschedulable(NO_ROOM)) => {
    pods.set(`${pod.metadata.namespace}/${pod.metadata.name}`, { ...pod, status } as Pod);
    under.see(pod, status);
    api.put('pods', { ...pod, status } as Pod);
  };

  const given = fixture.nodes ?? (invented.length > 0 ? {} : { n1: undefined });
  for (const name of Object.keys(given)) node(name, name in (fixture.dpus ?? {}) ? { dpu: 'True' } : {});
  for (const [name, status] of Object.entries(given)) if (status) report(name, status);
  for (const { name, status, vms, dpu } of invented) {
    node(name, dpu ? { dpu: 'True' } : {});
    report(name, status);
    for (const vm of vms) {
      const pod = launcher(vm);
      // The extender knows from the report what they own.
      api.put('pods', { ...pod, spec: { ...pod.spec, nodeName: name }, status: { phase: 'Running' } } as Pod);
    }
  }
  for (const [kind, error] of Object.entries(fixture.refused ?? {})) api.fail(kind as Kind, error);
  const holderIdentity = fixture.leaderless ? '' : `${LEADER}_0f3a`;
  const renewTime = '2026-05-04T10:00:00.000000Z';
  lease('plumbline-scheduler', { holderIdentity, leaseDurationSeconds: 3600, renewTime });

  const explainer = createExplainer({
    extender: under.extender,
    decisions: under.decisions,
    client: { get: async (path) => pods.get(path.replace(/^.*namespaces\/(.*)\/pods\//, '$1/')) ?? {} },
    isActive: () => true,
  });
  const explained = async (pod: string) => {
    const answer = JSON.parse(JSON.stringify(await explainer.ofPod(pod))) as Record<'decisions' | 'nodes', object[]>;
    // The extender's clock stands still here.
    const decisions = answer.decisions.map((decision) => ({ ...decision, time: new Date().toISOString() }));
    return { ...answer, decisions };
  };
  /** As `plumbline explain` answers: its groups of nodes, and the table of states. */
  const diagnosed = async (name: string) => {
    const [namespace = '', own = ''] = name.split('/');
    const pod = pods.get(name) as PodShape | undefined;
    const nodes = pod === undefined ? [] : (await explained(name)).nodes.map((node) => extenderVerdict.parse(node));
    const search = { groups: groupNodes(nodes), nodes: nodes.length };
    const { remedies, causes, ...state } = podState({ namespace, name: own, kind: 'vm', search }, pod as PodShape);
    return { ...state, causes: causes.map(({ text }) => text), remedies: remedies.map(remedyLines), notes: [] };
  };
  const unreachable = async () => ({ why: 'this console cannot reach it' });
  const page = createConsole({
    client: api.client,
    address: { host: '127.0.0.1', port: fixture.port ?? 0 },
    assets: await pageFiles(),
    // Over the network it is JSON.
    ask: async (pod) => ({ answer: await explained(pod) }),
    askSwitch: unreachable,
    askDrain: async () => ({ why: 'this cluster is not read' }),
    askInterference: unreachable,
    diagnose: async (kind, name) =>
      kind === 'vm' ? { why: 'this cluster has no VM' } : { answer: await diagnosed(name) },
    ...fixture,
    log: silent,
  });
  const running = new AbortController();
  await page.server.start();
  const ran = page.run(running.signal);
  while (page.missing !== undefined) await new Promise((resolve) => setTimeout(resolve, 5));
  return {
    extender: under.extender,
    filter: under.filter,
    api,
    page,
    names: [...Object.keys(given), ...invented.map(({ name }) => name)],
    url: `http://127.0.0.1:${page.server.port}`,
    port: page.server.port,
    node,
    report,
    lease,
    async silence(node, renewTime) {
      lease(`plumbline-agent-${node}`, { renewTime, leaseDurationSeconds: 1 });
      // Another Lease that keeps changing shows that the watch works.
      for (let at = 0; at < 30; at++) {
        lease('other', { renewTime: `2026-05-04T10:00:${10 + at}.000000Z` });
        await new Promise((resolve) => setTimeout(resolve, 80));
      }
    },
    see,
    gone(pod) {
      under.gone(pod);
      api.remove('pods', pod);
    },
    async stop() {
      page.closeStreams();
      await page.server.stop(0);
      running.abort();
      await ran;
    },
  };
}
