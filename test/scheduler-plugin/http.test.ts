import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import type { NodeTopologyStatus } from '../../kube/node-topology.ts';
import {
  appOf,
  type ExtenderUnderTest,
  extenderOf,
  type FilterReply,
  owned,
  podOf,
  statusOf,
  useServer,
} from './extender-fixture.ts';

/** Node names of 63 characters. */
const nodeNames = (count: number) => Array.from({ length: count }, (_, i) => `worker-${i}.`.padEnd(63, 'x'));
describe('an answer for 5,000 nodes', () => {
  for (const text of ['o', '\0', '"', '’'])
    it(`has at most 1 MiB if a network of the pod is called ${JSON.stringify(text.repeat(3))}…`, () => {
      const names = nodeNames(5000);
      const { filter } = extenderOf({ nodes: Object.fromEntries(names.map((node) => [node, statusOf()])) });
      const reply = filter(podOf('4', [`physnet.plumbline.dev/${text.repeat(295)}`]), names);
      assert.equal(Object.keys(reply.FailedAndUnresolvableNodes).length, 5000);
      assert.match(reply.FailedAndUnresolvableNodes[names[0]!] ?? '', /^physnet .*…$/s);
      assert.ok(Buffer.byteLength(JSON.stringify(reply)) <= 1024 * 1024);
    }).timeout(30_000);
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
const usedBy = (cpus: string) =>
  statusOf({ assignments: [owned('other', cpus)], physnets: [{ name: 'physnet0', cells: '1' }] });
/** The kinds of nodes, in rotation, and the text that refuses a pod with 8 CPUs on physnet0. */
const KINDS: readonly { readonly status: NodeTopologyStatus | undefined; readonly text?: string }[] = [
  { status: statusOf({ cells: [{ id: 0, cpus: '0-15' }], physnets: [{ name: 'physnet0', cells: '0' }] }) },
  { status: usedBy('4,12'), text: 'no room on the NUMA nodes of a required network' },
  { status: usedBy('1-7,9-15'), text: 'too few free whole cores' },
  { status: statusOf({ physnets: [] }), text: 'physnet physnet0 is not on the node' },
  { status: undefined, text: 'node does not report its topology' },
];
/** A filter call that kube-scheduler 1.36.2 sent for 5,000 nodes. */
describe('a filter call of a real scheduler with 5,000 names', () => {
  const server = useServer();

  it('gets some nodes that fit, and the reason of every other node', async () => {
    const body = String(gunzipSync(readFileSync(join(import.meta.dirname, 'http/golden/filter-5000.request.json.gz'))));
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
