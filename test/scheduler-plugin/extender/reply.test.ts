import assert from 'node:assert/strict';
import { createBufferPool } from '../../../runtime/buffer-pool.ts';
import { encodeFilterReply, encodePriorities } from '../../../scheduler-plugin/extender/reply.ts';
import { ArgsDecoder } from '../../../scheduler-plugin/wire/wire.ts';
import { extenderOf, podOf, statusOf } from '../extender-fixture.ts';

describe('the reply to a filter call', () => {
  const CASES: readonly [string, readonly string[]][] = [
    ['no node', []],
    ['a node that passes', ['n1']],
    ['a refused node', ['gone']],
    ['nodes of both kinds', ['n1', 'gone', 'n2', 'a-node-that-is-not-known-with-a-long-name', 'n3']],
  ];
  for (const [what, names] of CASES) {
    it(`takes a buffer that is a few bytes longer than the text, and returns it: ${what}`, () => {
      const { extender, state } = extenderOf({ nodes: { n1: statusOf(), n2: statusOf(), n3: statusOf() } });
      const sizes: number[] = [];
      const given: Buffer[] = [];
      const pool = createBufferPool();
      const counting = {
        take: (size: number) => {
          sizes.push(size);
          return pool.take(size);
        },
        give: (buffer: Buffer) => void given.push(buffer),
      };
      const body = Buffer.from(JSON.stringify({ Pod: podOf('2'), Nodes: null, NodeNames: names }));
      const outcome = extender.filter(new ArgsDecoder(state.fleet.names).decode(body), 0);
      const { bytes, release } = encodeFilterReply(outcome, undefined, counting);
      const reply = JSON.parse(bytes.toString()) as { NodeNames: string[]; FailedAndUnresolvableNodes: object };
      const known = names.filter((name) => name.startsWith('n'));
      assert.deepEqual([...reply.NodeNames].sort(), known);
      assert.deepEqual(
        Object.keys(reply.FailedAndUnresolvableNodes),
        names.filter((name) => !known.includes(name)),
      );
      assert.equal(sizes.length, 1);
      const more = sizes[0]! - bytes.length;
      assert.ok(more >= 3 && more <= 7, `${more} bytes more than the text`);
      release();
      assert.deepEqual(
        given.map((buffer) => buffer.buffer === bytes.buffer),
        [true],
      );
    });
  }
});

describe('the reply to a prioritize call', () => {
  it('has whole numbers: the scheduler refuses a reply with a fraction', () => {
    const priorities = [
      { node: 'n1', score: 7.4 },
      { node: 'n2', score: 7.5 },
      { node: 'n3', score: 0 },
    ];
    assert.deepEqual(JSON.parse(encodePriorities(priorities).toString()), [
      { Host: 'n1', Score: 7 },
      { Host: 'n2', Score: 8 },
      { Host: 'n3', Score: 0 },
    ]);
  });
});
