import { type IncomingHttpHeaders, type RequestListener, request } from 'node:http';
import { text } from 'node:stream/consumers';
import type { NodeTopologyStatus } from '../../kube/node-topology.ts';
import type { Pod } from '../../kube/resources.ts';
import type { UnpredictablePolicy } from '../../model/placement/verdict.ts';
import { HttpServer } from '../../runtime/http-server.ts';
import { createRegistry } from '../../runtime/metrics.ts';
import { ClusterState } from '../../scheduler-plugin/cluster/cluster-state.ts';
import type { DpuVerdict } from '../../scheduler-plugin/cluster/dpu-health.ts';
import { NodeExclusions } from '../../scheduler-plugin/cluster/node-exclusions.ts';
import { NeedsReader } from '../../scheduler-plugin/cluster/pod-needs.ts';
import { observedPod, type PodView, podViewOf, unreadablePodView } from '../../scheduler-plugin/cluster/pod-view.ts';
import { Lookahead } from '../../scheduler-plugin/controllers/lookahead.ts';
import { filterResult, parseExtenderArgs } from '../../scheduler-plugin/extender/args.ts';
import { createExplainer } from '../../scheduler-plugin/extender/explain.ts';
import { Extender } from '../../scheduler-plugin/extender/extender.ts';
import { Decisions } from '../../scheduler-plugin/filter/decisions.ts';
import { NodeVerdicts } from '../../scheduler-plugin/filter/node-verdicts.ts';
import { createExtenderApp } from '../../scheduler-plugin/http/app.ts';
import { createExtenderMetrics } from '../../scheduler-plugin/telemetry/metrics.ts';
import { silent } from '../support/logger.ts';

/** Two cells of four SMT2 cores each; the first core reserved; physnet0 on cell 0, physnet1 on cell 1. */
export function statusOf(more: Partial<NodeTopologyStatus> = {}): NodeTopologyStatus {
  return {
    kubeletVersion: 'v1.36.2',
    cells: [
      { id: 0, cpus: '0-3,8-11' },
      { id: 1, cpus: '4-7,12-15' },
    ],
    cores: Array.from({ length: 8 }, (_, core) => `${core},${core + 8}`),
    reserved: '0,8',
    cpuManager: { policy: 'static', options: { 'full-pcpus-only': 'true' } },
    topologyManager: { policy: 'best-effort', scope: 'container' },
    assignments: [],
    physnets: [
      { name: 'physnet0', cells: '0' },
      { name: 'physnet1', cells: '1' },
    ],
    tunnel: { cells: '1' },
    ...more,
  };
}
/** The status of a pod that kube-scheduler could not place. */
export const unschedulable = (message: string) => ({
  phase: 'Pending',
  conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message }],
});
/** A Guaranteed pod of one container. */
export function podOf(cpu: string, resources: readonly string[] = [], more: Partial<Pod> = {}): Pod {
  const amounts = { cpu, memory: '1Gi', ...Object.fromEntries(resources.map((name) => [name, '1'])) };
  return {
    metadata: { name: 'vm', namespace: 'default', uid: 'pod-uid' },
    spec: { containers: [{ name: 'compute', resources: { requests: amounts, limits: { ...amounts } } }] },
    ...more,
  } as Pod;
}
export const withUid = (pod: Pod, uid: string, more: object = {}): Pod => ({
  ...pod,
  metadata: { ...pod.metadata, name: uid, uid, ...more },
});
/** The pod bound to a node. */
export const onNode = (pod: Pod, nodeName = 'n1'): Pod => ({ ...pod, spec: { ...pod.spec, nodeName } });
/** CPUs of a pod in a report. */
export const owned = (podUID: string, cpus: string) => ({ podUID, container: 'compute', cpus });
/** With the scope `all`: pods on the pod network need the DPU of their node. */
export const reader = new NeedsReader('all');
/** The pod as the watch keeps it; undefined for one that is not kept. */
export const viewOf = (pod: Pod, status: object = {}): PodView | undefined =>
  podViewOf(observedPod.parse({ ...pod, status }), reader);
export interface ExtenderFixture {
  /** Undefined: the node is there and does not report. */
  readonly nodes?: Readonly<Record<string, NodeTopologyStatus | undefined>>;
  /** Pods on nodes. */
  readonly bound?: readonly { readonly node: string; readonly pod: Pod }[];
  readonly dpus?: Readonly<Record<string, DpuVerdict>>;
  readonly flags?: Readonly<Record<string, 'draCpu' | 'stale'>>;
  readonly missing?: string;
  readonly policy?: UnpredictablePolicy;
  readonly active?: () => boolean;
  readonly answers?: number;
}
/** A reply as the scheduler reads it. */
export interface FilterReply {
  readonly NodeNames: readonly string[];
  readonly FailedNodes: Readonly<Record<string, string>>;
  readonly FailedAndUnresolvableNodes: Readonly<Record<string, string>>;
  readonly Error: string;
}
export type ExtenderUnderTest = ReturnType<typeof extenderOf>;
export function extenderOf(fixture: ExtenderFixture = {}) {
  const { nodes = { n1: statusOf() }, bound = [], dpus = {}, flags = {}, policy = 'refuse' } = fixture;
  const notified: string[] = [];
  const clock = { now: 1000 };
  const nameOf = (what: unknown) => (typeof what === 'string' ? what : (what as { uid: string }).uid);
  const state = new ClusterState(silent);
  const onEnd = (node: string) => void notified.push(`ended ${node}`);
  const exclusions = new NodeExclusions({ fleet: state.fleet, onEnd, log: silent, nowSeconds: () => clock.now });
  const { emit } = state;
  state.emit = ((event: string, ...args: readonly unknown[]) => {
    notified.push([event, nameOf(args[0]), ...(event === 'reservationEnded' ? [args[1]] : [])].join(' '));
    return emit.call(state, event as never, ...(args as never));
  }) as typeof emit;
  state.on('rejected', (pod, isExplained) => exclusions.add(pod, isExplained));
  const names = new Set([...Object.keys(nodes), ...Object.keys(dpus)]);
  for (const name of names) state.nodeChanged(name, { dpuHost: name in dpus });
  for (const [name, status] of Object.entries(nodes)) if (status) state.reportChanged(name, status);
  for (const [name, { ready }] of Object.entries(dpus)) state.setFlag(name, 'dpuDead', !ready);
  for (const [name, flag] of Object.entries(flags)) state.setFlag(name, flag, true);
  const views = new Map<string, PodView | undefined>();
  const observe = ({ metadata: { namespace, name } }: Pod, view: PodView | undefined) => {
    const key = `${namespace}/${name}`;
    const before = views.get(key);
    views.set(key, view);
    if (before || view) state.podChanged(before, view, true);
  };
  const see = (pod: Pod, status: object = {}) => observe(pod, viewOf(pod, status));
  for (const { node, pod } of bound) see(onNode(pod, node));

  const decisions = new Decisions();
  const dpuHealth = {
    verdict: (node: string) => dpus[node] ?? { ready: true, state: 'unknown' as const, age: undefined },
  };
  const verdicts = new NodeVerdicts({
    state,
    exclusions,
    dpuHealth,
    unpredictable: policy,
    nowSeconds: () => clock.now,
  });
  const lookahead = new Lookahead({ fleet: state.fleet, verdicts, log: silent });
  const extender = new Extender({
    lookahead,
    decisionLog: { waits: () => undefined },
    state,
    verdicts,
    recheck: {
      waits: ({ request }) => void notified.push(`waits ${request.uid}`),
      settled: () => undefined,
      neverOffered: ({ request }, node) => void notified.push(`neverOffered ${request.uid} ${node}`),
    },
    reader,
    decisions,
    unpredictable: policy,
    metrics: createExtenderMetrics(createRegistry()),
    cluster: {
      missing: fixture.missing,
      get bindingsKnownUntil() {
        return clock.now;
      },
    },
    replica: { mayAnswer: fixture.active ?? (() => true) },
    nowSeconds: () => clock.now,
    answers: fixture.answers ?? 16,
    reservationTimeout: 660,
  });
  return {
    extender,
    verdicts,
    state,
    decisions,
    /** The events of the state, in order: `improved n1`. */
    notified,
    clock,
    /** By namespace/name. */
    pods: views as ReadonlyMap<string, PodView | undefined>,
    /** By way of the wire. */
    filter(pod: Pod, offered: readonly string[] = [...names], crowd = 0): FilterReply {
      const body = JSON.stringify({ Pod: pod, Nodes: null, NodeNames: offered });
      const outcome = extender.filter(parseExtenderArgs(JSON.parse(body)), crowd);
      return JSON.parse(JSON.stringify(filterResult(outcome, undefined)));
    },
    /** The pod as the watch would bring it. */
    see,
    /** The same for an object of the API server that may be unreadable. */
    seeRaw(object: Omit<Pod, 'status'> & { readonly status: object }): void {
      const { data } = observedPod.safeParse(object);
      const before = views.get(`${object.metadata.namespace}/${object.metadata.name}`);
      observe(object as Pod, data === undefined ? unreadablePodView(object, before) : podViewOf(data, reader));
    },
    gone: (pod: Pod): void => observe(pod, undefined),
  };
}

/** The routes of an extender; the API server has one pod. */
export function appOf(
  { extender, decisions }: Pick<ExtenderUnderTest, 'extender' | 'decisions'>,
  more: Partial<Parameters<typeof createExtenderApp>[0]> = {},
): ReturnType<typeof createExtenderApp> {
  const client = { get: async () => podOf('4') };
  const explainer = createExplainer({ extender, decisions, client, isActive: () => true });
  const metrics = createExtenderMetrics(createRegistry());
  return createExtenderApp({ extender, explainer, unpredictable: 'refuse', metrics, log: silent, ...more });
}
interface Answer {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}
/** A server for all tests of a suite, with the routes that each test sets. */
export function useServer() {
  let server: HttpServer;
  let answering: RequestListener = () => undefined;
  before(async () => {
    const handler: RequestListener = (call, response) => answering(call, response);
    server = new HttpServer({ handler, host: '127.0.0.1', port: 0, log: silent });
    await server.start();
  });
  after(() => server.stop(0));

  /** By node:http, so that headers are seen as sent. */
  const begin = (path: string, length: number, method = 'POST') => {
    const to = { host: '127.0.0.1', port: server.port, path, method, agent: false };
    const call = request({ ...to, headers: { 'content-length': length, connection: 'keep-alive' } });
    const answer = new Promise<Answer>((resolve, reject) => {
      call.on('error', reject).on('response', async (response) => {
        const { statusCode: status, headers } = response;
        resolve({ status, headers, text: await text(response) });
      });
    });
    return { call, answer };
  };
  return {
    get port() {
      return server.port;
    },
    serve(handler: RequestListener) {
      answering = handler;
    },
    /** A call whose body the test sends. */
    begin,
    ask(path: string, body = '', method?: string): Promise<Answer> {
      const { call, answer } = begin(path, Buffer.byteLength(body), method);
      call.end(body);
      return answer;
    },
  };
}
