import assert from 'node:assert/strict';
import fc from 'fast-check';
import { assertBoundedJson, JsonTooLarge } from '../../../runtime/json-bounds.ts';
import { ArgsError, parseExtenderArgs } from '../../../scheduler-plugin/extender/args.ts';
import { podVector } from '../../webhook/launcher-fixture.ts';
import { almost, withLong } from '../mutation.ts';
import { parsedOrRefused, type Target } from '../target.ts';

const nodeName = fc.oneof(
  fc.stringMatching(/^[a-z0-9]([-a-z0-9.]{0,30}[a-z0-9])?$/),
  fc.string({ unit: 'binary', maxLength: 12 }),
);
const POD = podVector() as { metadata: object };
const pod = { ...POD, metadata: { ...POD.metadata, name: 'p', namespace: 'n', uid: 'u-1' } };
const body = fc
  .record(
    {
      NodeNames: fc.option(fc.array(nodeName, { maxLength: 12 })),
      Nodes: fc.option(
        fc.record({
          items: fc.array(
            nodeName.map((name) => ({ metadata: { name } })),
            { maxLength: 3 },
          ),
        }),
      ),
    },
    { requiredKeys: [] },
  )
  // In the order of Go's structs.
  .map(({ Nodes, NodeNames }) => JSON.stringify({ Pod: pod, Nodes, NodeNames }));

/** As the app reads a body. */
function read(text: string) {
  assertBoundedJson(Buffer.from(text));
  return parseExtenderArgs(JSON.parse(text));
}

/** The start of a call. */
const HEAD = `{"Pod":${JSON.stringify(pod)}`;

export const extenderArgs: Target<string> = {
  name: 'extender-args',
  about: 'kube-scheduler’s calls give the names that were sent, in their order, or a clear error',
  inputs: withLong(
    almost(body, [
      '{"Pod":{"metadata":{"uid":"u","name":"p"},"spec":{"containers":[]}},"Nodes":null,"NodeNames":["a","b"]}',
    ]),
    200_000,
    { head: `${HEAD},"NodeNames":[`, piece: (i) => `"worker-${i}"`, joint: ',', tail: ']}' },
    { head: `${HEAD},"NodeNames":[`, piece: '""', joint: ' , ', tail: ']}' },
    { head: `${HEAD},"NodeNames":["`, piece: '\\"', tail: '"]}' },
    { head: `${HEAD},"Nodes":{"items":[`, piece: '{"metadata":{"name":"a"}}', joint: ',', tail: ']}}' },
    { head: '{"NodeNames":["a"],"Pod":{"metadata":{},"spec":{"containers":[', piece: '{}', joint: ',', tail: ']}}}' },
    { piece: '"NodeNames":[' },
  ),
  fed(text) {
    const bytes = Buffer.from(text);
    return { bytes: bytes.length, parse: () => read(text) };
  },
  work: { base: 1000, each: 66 },
  judge(text) {
    const parsed = parsedOrRefused(() => read(text), SyntaxError, ArgsError, JsonTooLarge);
    if (parsed === undefined) return 'refused';
    const { names, nodes } = parsed.value;
    const sent = JSON.parse(text) as {
      NodeNames?: string[] | null;
      Nodes?: { items?: { metadata: { name: string } }[] | null } | null;
    };
    assert.equal(nodes === undefined, sent.Nodes?.items == null);
    assert.deepEqual(names, sent.NodeNames ?? sent.Nodes?.items?.map(({ metadata }) => metadata.name));
    return 'accepted';
  },
};
