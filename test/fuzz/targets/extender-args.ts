import assert from 'node:assert/strict';
import fc from 'fast-check';
import { ParseError } from '../../../model/errors.ts';
import { assertBoundedJson, BodyError } from '../../../runtime/json-bounds.ts';
import { ArgsError, filterResult, parseExtenderArgs } from '../../../scheduler-plugin/extender/args.ts';
import { NotNow } from '../../../scheduler-plugin/extender/extender.ts';
import { extenderOf, statusOf } from '../../scheduler-plugin/extender-fixture.ts';
import { podVector } from '../../webhook/launcher-fixture.ts';
import { parsedOrRefused, type Target } from '../engine.ts';
import { almost, withLong } from '../mutation.ts';

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

const HEAD = `{"Pod":${JSON.stringify(pod)}`;

/** Nodes of different load, so that no verdict is shared. */
const NODES = Object.fromEntries(
  Array.from({ length: 6 }, (_, i) => [
    `n${i}`,
    statusOf({ assignments: [{ podUID: `p${i}`, container: 'c', cpus: `${i + 1},${i + 9}` }] }),
  ]),
);
const { extender } = extenderOf({ nodes: NODES });

function read(text: string) {
  assertBoundedJson(Buffer.from(text));
  const args = parseExtenderArgs(JSON.parse(text));
  const outcome = extender.filter({ ...args, names: Object.keys(NODES) }, 0);
  return { ...args, answer: JSON.stringify(filterResult(outcome, undefined)) };
}

const specWith = (fields: string) => `${HEAD.slice(0, -2)},${fields}`;

export const extenderArgs: Target<string> = {
  name: 'extender-args',
  about:
    'kube-scheduler’s calls give the names that were sent, in their order, and an answer of limited length, or a clear error',
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
    {
      head: `{"NodeNames":[],"Pod":{"metadata":{"uid":"u"},"spec":{"containers":[`,
      piece: (i) => `{"name":"c${i}","resources":{"limits":{"cpu":"1","memory":"${i + 1}"}}}`,
      joint: ',',
      tail: ']}}}',
    },
    {
      head: `{"NodeNames":[],"Pod":{"metadata":{"uid":"u"},"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"2","memory":"1Gi"`,
      piece: (i) => `,"physnet.plumbline.dev/p${i}":"1"`,
      tail: '}}}]}}}',
    },
    ...(
      [
        ['"volumes":[', '{"name":"v"}', ']'],
        ['"topologySpreadConstraints":[', '{"topologyKey":"k","whenUnsatisfiable":"ScheduleAnyway"}', ']'],
        [
          '"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[',
          '{"key":"k","operator":"Exists"}',
          ']}]}}}',
        ],
      ] as const
    ).map(([head, piece, tail]) => ({
      head: specWith(head),
      piece,
      joint: ',',
      tail: `${tail}}},"NodeNames":["n0"]}`,
    })),
  ),
  judge(text) {
    const parsed = parsedOrRefused(() => read(text), SyntaxError, ArgsError, ParseError, NotNow, BodyError);
    if (parsed === undefined) return 'refused';
    const { names, nodes, answer } = parsed.value;
    assert.ok(answer.length < 6 * 220, `an answer of ${answer.length} characters`);
    const sent = JSON.parse(text) as {
      NodeNames?: string[] | null;
      Nodes?: { items?: { metadata: { name: string } }[] | null } | null;
    };
    assert.equal(nodes === undefined, sent.Nodes?.items == null);
    assert.deepEqual(names, sent.NodeNames ?? sent.Nodes?.items?.map(({ metadata }) => metadata.name));
    return 'accepted';
  },
};
