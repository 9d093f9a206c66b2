import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import type { NodeTopologyStatus } from '../../../kube/node-topology.ts';
import { appOf, useServer } from '../app-fixture.ts';
import { extenderOf, type FilterReply, statusOf } from '../extender-fixture.ts';

const file = (name: string) => join(import.meta.dirname, 'golden', `filter-5000.${name}.json.gz`);
const NODES = 5000;
const nodeName = (i: number) => `worker-${String(i).padStart(4, '0')}.east`;
const owned = (cpus: string) => [{ podUID: 'other', container: 'compute', cpus }];

/** The kinds of nodes, in rotation, and the text that refuses a pod with 8 CPUs on physnet0. */
const KINDS: readonly { readonly status: NodeTopologyStatus | undefined; readonly text?: string }[] = [
  { status: statusOf({ cells: [{ id: 0, cpus: '0-15' }], physnets: [{ name: 'physnet0', cells: '0' }] }) },
  {
    status: statusOf({ assignments: owned('4,12'), physnets: [{ name: 'physnet0', cells: '1' }] }),
    text: 'no room on the NUMA nodes of a required network',
  },
  {
    status: statusOf({ assignments: owned('1-7,9-15'), physnets: [{ name: 'physnet0', cells: '1' }] }),
    text: 'too few free whole cores',
  },
  { status: statusOf({ physnets: [] }), text: 'physnet physnet0 is not on the node' },
  { status: undefined, text: 'node does not report its topology' },
];

/**
 * A filter call that kube-scheduler 1.36.2 sent for 5,000 nodes, and the answer, byte for byte. The content of the
 * answer is checked, too, so that the stored answer can be replaced with an equivalent one.
 */
describe('a filter call of a real scheduler with 5,000 names', () => {
  const server = useServer();
  const answerTo = (body: string) => {
    const nodes = Object.fromEntries(
      Array.from({ length: NODES }, (_, i) => [nodeName(i), KINDS[i % KINDS.length]!.status]),
    );
    server.serve(appOf(extenderOf({ nodes })).handler);
    return server.ask('/filter', body);
  };

  it('gets the stored answer, byte for byte, and a correct one', async () => {
    const body = String(gunzipSync(readFileSync(file('request'))));
    const { text, headers } = await answerTo(body);
    assert.equal(headers['content-length'], String(Buffer.byteLength(text)));
    assert.ok(text === String(gunzipSync(readFileSync(file('reply')))), 'the reply differs from the stored one');

    const { NodeNames: offered } = JSON.parse(body) as { NodeNames: string[] };
    assert.equal(offered.length, NODES);
    const reply = JSON.parse(text) as FilterReply;
    const { NodeNames, FailedAndUnresolvableNodes } = reply;
    assert.deepEqual([reply.FailedNodes, reply.Error, NodeNames.length], [{}, '', 16]);
    const kindOf = (name: string) => KINDS[Number(name.slice('worker-'.length, -'.east'.length)) % KINDS.length]!;
    for (const name of NodeNames) assert.equal(kindOf(name).text, undefined, name);
    const expected = offered.filter((name) => kindOf(name).text !== undefined);
    assert.deepEqual(FailedAndUnresolvableNodes, Object.fromEntries(expected.map((name) => [name, kindOf(name).text])));
  });
});
