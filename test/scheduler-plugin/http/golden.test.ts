import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import type { NodeTopologyStatus } from '../../../kube/node-topology.ts';
import { appOf, useServer } from '../app-fixture.ts';
import { extenderOf, type FilterReply, owned, statusOf } from '../extender-fixture.ts';

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
