import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import type { NodeTopologyStatus } from '../../../kube/node-topology.ts';
import { CPU_MASK_ANNOTATION, PLACEMENT_ANNOTATION } from '../../../model/names.ts';
import { processorTimeOf } from '../../support/processor-time.ts';
import {
  appOf,
  type ExtenderUnderTest,
  extenderOf,
  type FilterReply,
  owned,
  podOf,
  statusOf,
  useServer,
} from '../extender-fixture.ts';

const MEGABYTE = 'x'.repeat(1_000_000);
/** Node names of 63 characters. */
const nodeNames = (count: number) => Array.from({ length: count }, (_, i) => `worker-${i}.`.padEnd(63, 'x'));
const times = <T>(count: number, make: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));
const mapOf = (count: number, prefix: string) => Object.fromEntries(times(count, (i) => [`${prefix}${i}`, '1']));
interface Editable {
  metadata: Record<string, unknown>;
  spec: Record<string, unknown> & { containers: { name: string; resources: object }[] };
}
const withAmounts = (pod: Editable, more: object): void => {
  const amounts = { cpu: '4', memory: '1Gi', ...more };
  pod.spec.containers[0]!.resources = { limits: amounts, requests: amounts };
};
const preferences = (text: string) => ({
  preferred: times(64, (i) => `physnet.plumbline.dev/${text}${i}`),
  interfaces: mapOf(64, 'physnet.plumbline.dev/'),
});
/**
 * Each makes a pod of at most 1.5 MB, which the API server would accept. test/attacks/generated.test.ts has those that
 * the schema refuses or shortens.
 */
const ATTACKS: Readonly<Record<string, (pod: Editable) => void>> = {
  'a long name': (pod) => Object.assign(pod.metadata, { name: MEGABYTE }),
  'a long mask': (pod) => Object.assign(pod.metadata, { annotations: { [CPU_MASK_ANNOTATION]: MEGABYTE } }),
  'long preferred networks': (pod) =>
    Object.assign(pod.metadata, {
      annotations: { [PLACEMENT_ANNOTATION]: JSON.stringify(preferences('y'.repeat(200))) },
    }),
  '48 containers of 2 CPUs, 47 of them init containers': (pod) => {
    const resources = { limits: { cpu: '2', memory: '1Gi' }, requests: { cpu: '2', memory: '1Gi' } };
    Object.assign(pod.spec, { initContainers: times(47, (i) => ({ name: `c${i}`, resources })) });
  },
  '20,000 resources': (pod) => withAmounts(pod, mapOf(20_000, 'example.com/r')),
  '12,000 networks': (pod) => withAmounts(pod, mapOf(12_000, 'physnet.plumbline.dev/p')),
  'a long name of a resource': (pod) => withAmounts(pod, { [`physnet.plumbline.dev/${MEGABYTE}`]: '1' }),
};
describe('a hostile pod in a call', () => {
  /** Twice the goal, because the runtime compiles and the client runs in the same process. */
  const MAX_MILLISECONDS = 200;
  const NAMES = nodeNames(1000);
  let under: ExtenderUnderTest;
  const { serve, ask } = useServer();

  before(async () => {
    /** Every node owns other CPUs: no verdict is shared. */
    const report = (i: number) =>
      statusOf({
        cells: times(4, (id) => ({ id, cpus: `${id * 32}-${id * 32 + 31}` })),
        cores: times(64, (core) => `${2 * core}-${2 * core + 1}`),
        reserved: '0-1',
        topologyManager: { policy: 'single-numa-node', scope: 'container' },
        assignments: times(10, (bit) => ({
          podUID: `${i}-${bit}`,
          container: 'c',
          core: 2 + 2 * bit + ((i >> bit) & 1),
        })).map(({ core, ...owned }) => ({ ...owned, cpus: `${2 * core}-${2 * core + 1}` })),
      });
    under = extenderOf({ nodes: Object.fromEntries(NAMES.map((name, i) => [name, report(i)])) });
    Object.defineProperty(under.clock, 'now', { get: () => performance.now() / 1000 });
    serve(appOf(under).handler);
    // The runtime compiles what every call needs.
    for (const path of ['filter', 'prioritize', 'explain'])
      await ask(`/${path}`, JSON.stringify({ Pod: podOf('4'), NodeNames: NAMES }));
  });

  for (const [what, attack] of Object.entries(ATTACKS)) {
    it(`with ${what}: takes little time, and its texts are not in the answer for each node`, async () => {
      for (const path of ['filter', 'prioritize', 'explain']) {
        let least = Number.POSITIVE_INFINITY;
        for (let attempt = 0; attempt < (path === 'explain' ? 1 : 3) && least > MAX_MILLISECONDS; attempt++) {
          const pod = structuredClone(podOf('4')) as unknown as Editable;
          pod.metadata['uid'] = `${what} ${path} ${attempt}`.slice(0, 64);
          attack(pod);
          const body = JSON.stringify({ Pod: pod, NodeNames: NAMES });
          let text = '';
          const used = await processorTimeOf(async () => {
            text = (await ask(`/${path}`, body)).text;
          });
          under.state.reservations.withdraw(String(pod.metadata['uid']));
          least = Math.min(least, used);
          const most = path === 'explain' ? 2000 : 220;
          assert.ok(text.length < most * NAMES.length, `${path}: ${text.length} characters`);
        }
        // An explanation is made in slices.
        if (path !== 'explain') assert.ok(least <= MAX_MILLISECONDS, `${path}: ${least} ms`);
      }
    }).timeout(30_000);
  }
});
describe('an answer for 5,000 nodes', () => {
  for (const text of ['o', '\0', '"', '’']) {
    it(`has at most 1 MiB if a network of the pod is called ${JSON.stringify(text.repeat(3))}…`, () => {
      const names = nodeNames(5000);
      const { filter } = extenderOf({ nodes: Object.fromEntries(names.map((node) => [node, statusOf()])) });
      const reply = filter(podOf('4', [`physnet.plumbline.dev/${text.repeat(295)}`]), names);
      assert.equal(Object.keys(reply.FailedAndUnresolvableNodes).length, 5000);
      assert.match(reply.FailedAndUnresolvableNodes[names[0]!] ?? '', /^physnet .*…$/s);
      assert.ok(Buffer.byteLength(JSON.stringify(reply)) <= 1024 * 1024);
    }).timeout(30_000);
  }
});
describe('predictions in a call', () => {
  /** Each prediction seems to take 10 ms. */
  const slow = (under: ExtenderUnderTest) => {
    let seconds = 1000;
    Object.defineProperty(under.clock, 'now', { get: () => (seconds += 0.01) });
    return under;
  };
  const names = nodeNames(100);
  const full = statusOf({ topologyManager: { policy: 'single-numa-node', scope: 'container' } });
  const reports = (status: typeof full) =>
    Object.fromEntries(names.map((name, i) => [name, { ...status, physnets: [{ name: `p${i}`, cells: '0' }] }]));

  it('end after a time, with the nodes that passed until then', () => {
    const { filter } = slow(extenderOf({ nodes: reports(statusOf()), answers: 100 }));
    const { NodeNames, FailedAndUnresolvableNodes } = filter(podOf('4'), names);
    assert.ok(NodeNames.length > 0 && NodeNames.length < 20, `${NodeNames.length} nodes`);
    assert.match(FailedAndUnresolvableNodes[names.at(-1) ?? ''] ?? '', /not checked in time/);
  });

  it('that end before a node passed are an error, so that the scheduler tries again soon and gets further', () => {
    const under = slow(extenderOf({ nodes: reports(full) }));
    // 14 CPUs are free, but no more than 8 on one NUMA node.
    const attempt = () => under.filter(podOf('10'), names);
    assert.throws(attempt, /\d+ nodes were not checked in time; try again/);
    assert.equal(under.state.reservations.size, 0);
  });
});
/** The kinds of nodes, in rotation, and the text that refuses a pod with 8 CPUs on physnet0. */
const KINDS: readonly { readonly status: NodeTopologyStatus | undefined; readonly text?: string }[] = [
  { status: statusOf({ cells: [{ id: 0, cpus: '0-15' }], physnets: [{ name: 'physnet0', cells: '0' }] }) },
  {
    status: statusOf({ assignments: [owned('other', '4,12')], physnets: [{ name: 'physnet0', cells: '1' }] }),
    text: 'no room on the NUMA nodes of a required network',
  },
  {
    status: statusOf({ assignments: [owned('other', '1-7,9-15')], physnets: [{ name: 'physnet0', cells: '1' }] }),
    text: 'too few free whole cores',
  },
  { status: statusOf({ physnets: [] }), text: 'physnet physnet0 is not on the node' },
  { status: undefined, text: 'node does not report its topology' },
];
/** A filter call that kube-scheduler 1.36.2 sent for 5,000 nodes. */
describe('a filter call of a real scheduler with 5,000 names', () => {
  const server = useServer();

  it('gets some nodes that fit, and the reason of every other node', async () => {
    const body = String(gunzipSync(readFileSync(join(import.meta.dirname, 'golden/filter-5000.request.json.gz'))));
    const { NodeNames: offered } = JSON.parse(body) as { NodeNames: string[] };
    assert.equal(offered.length, 5000);
    const kindOf = (name: string) => KINDS[Number(name.slice('worker-'.length, -'.east'.length)) % KINDS.length]!;
    const nodes = Object.fromEntries(offered.map((name) => [name, kindOf(name).status]));
    server.serve(appOf(extenderOf({ nodes })).handler);
    const reply = JSON.parse((await server.ask('/filter', body)).text) as FilterReply;
    assert.deepEqual([reply.FailedNodes, reply.Error, reply.NodeNames.length], [{}, '', 16]);
    for (const name of reply.NodeNames) assert.equal(kindOf(name).text, undefined, name);
    const expected = offered.filter((name) => kindOf(name).text !== undefined);
    const reasons = Object.fromEntries(expected.map((name) => [name, kindOf(name).text]));
    assert.deepEqual(reply.FailedAndUnresolvableNodes, reasons);
  });
});
