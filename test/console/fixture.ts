import { rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildConsole } from '../../build-console.ts';
import type { Pod } from '../../kube/resources.ts';
import { createNeedsReader } from '../../scheduler-plugin/cluster/pod-needs.ts';
import { observedPod, type PodView, podViewOf } from '../../scheduler-plugin/cluster/pod-view.ts';
import { createFeed, type Feed, type PodSource } from '../../scheduler-plugin/web-console/feed.ts';
import type { ReplicaStatus } from '../../scheduler-plugin/web-console/records.ts';
import { createConsole } from '../../scheduler-plugin/web-console/server.ts';
import { type ExtenderFixture, type ExtenderUnderTest, extenderOf } from '../scheduler-plugin/extender-fixture.ts';
import { silent } from '../support/logger.ts';
import { inventNode, launcher } from './cluster.ts';

export interface ConsoleUnderTest extends Omit<ExtenderUnderTest, 'see' | 'gone'> {
  readonly feed: Feed;
  readonly url: string;
  readonly port: number;
  /** What the page is told of the replica; to be changed by tests. */
  readonly replica: { -readonly [K in keyof ReplicaStatus]: ReplicaStatus[K] };
  /** The pod as the watch would bring it. */
  see(pod: Pod, status?: object): void;
  gone(pod: Pod): void;
  stop(): Promise<void>;
}

export interface ConsoleFixture extends ExtenderFixture {
  /** Invented nodes, with their VMs. */
  readonly invented?: number;
  readonly port?: number;
  readonly keep?: number;
}

let built: Promise<string> | undefined;

/** The page's files, bundled once in a run. */
export function pageFiles(): Promise<string> {
  built ??= (async () => {
    const folder = await mkdtemp(join(tmpdir(), 'plumbline-console-'));
    process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
    await buildConsole(folder);
    return folder;
  })();
  return built;
}

const UNSCHEDULED = { conditions: [{ type: 'PodScheduled', status: 'False' }] };

/** A launcher that the scheduler has found no node for. */
export function waitingPod(name: string, cpus: number, since = '2026-05-04T10:00:00Z'): Pod {
  const pod = launcher({ namespace: 'east', name, uid: `uid-${name}`, count: cpus, padding: 1 });
  return { ...pod, metadata: { ...pod.metadata, creationTimestamp: since } } as Pod;
}

/** The console of an extender whose watches are the test's own words. */
export async function consoleOf(fixture: ConsoleFixture = {}): Promise<ConsoleUnderTest> {
  const nodes = Array.from({ length: fixture.invented ?? 0 }, (_, index) => inventNode(index));
  const dpus = Object.fromEntries(
    nodes.filter(({ dpu }) => dpu).map(({ name }) => [name, { ready: true, state: 'alive' as const, age: 3 }]),
  );
  const under = extenderOf({
    ...(nodes.length > 0 ? { nodes: Object.fromEntries(nodes.map(({ name, status }) => [name, status])), dpus } : {}),
    ...fixture,
  });
  const reader = createNeedsReader('all');
  const pods = new Map<string, PodView>();
  let listener: Parameters<PodSource['onPod']>[0];
  const put = (pod: Pod, after: PodView | undefined) => {
    const key = `${pod.metadata.namespace}/${pod.metadata.name}`;
    const before = pods.get(key);
    if (after) pods.set(key, after);
    else pods.delete(key);
    listener?.(before, after);
  };
  const see = (pod: Pod, status: object = UNSCHEDULED) => {
    under.see(pod, status);
    put(pod, podViewOf(observedPod.parse({ ...pod, status }), reader));
  };
  for (const { name, vms } of nodes) {
    for (const vm of vms) {
      const pod = launcher(vm);
      see({ ...pod, spec: { ...pod.spec, nodeName: name } }, { phase: 'Running' });
    }
  }
  const replica = {
    active: true,
    holder: 'extender-a_1',
    missing: undefined,
    identity: 'extender-a_1',
    version: '0.1.0',
  };
  const waiting = new Map<string, Pod>();
  const feed = createFeed({
    state: under.state,
    cluster: {
      pods,
      onPod(to) {
        listener = to;
      },
    },
    dpuHealth: {
      verdict: (node) => fixture.dpus?.[node] ?? dpus[node] ?? { ready: true, state: 'unknown', age: undefined },
    },
    decisions: under.decisions,
    status: () => ({ ...replica }),
    interval: 20,
    ...(fixture.keep === undefined ? {} : { keep: fixture.keep }),
  });
  const page = createConsole({
    address: { host: '127.0.0.1', port: fixture.port ?? 0 },
    feed,
    assets: await pageFiles(),
    extender: under.extender,
    client: {
      get: async (path) => {
        const [, namespace, name] = /namespaces\/([^/]+)\/pods\/([^/]+)/.exec(path) ?? [];
        return waiting.get(`${namespace}/${name}`) ?? {};
      },
    },
    log: silent,
  });
  await page.start();
  return {
    ...under,
    feed,
    replica,
    url: `http://127.0.0.1:${page.port}`,
    port: page.port,
    see(pod, status) {
      waiting.set(`${pod.metadata.namespace}/${pod.metadata.name}`, pod);
      see(pod, status);
    },
    gone(pod) {
      under.gone(pod);
      put(pod, undefined);
    },
    stop: () => page.stop(),
  };
}
