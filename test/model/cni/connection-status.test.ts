import assert from 'node:assert/strict';
import { dpuConnections } from '../../../model/cni/connection-status.ts';

const DETAILS = 'k8s.ovn.org/dpu.connection-details';
const STATUS = 'k8s.ovn.org/dpu.connection-status';
const text = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));

/** Each network in a text. */
function linesOf(details: unknown, status?: unknown): string[] {
  const annotations = {
    ...(details !== undefined && { [DETAILS]: text(details) }),
    ...(status !== undefined && { [STATUS]: text(status) }),
  };
  return dpuConnections(annotations).map(({ network, state, reason }) => `${network}: ${state}: ${reason}`);
}

describe('the connections of a pod that the DPU reports', () => {
  const details = { default: { pfId: '0' }, 'ns/net': { pfId: '0' } };
  const cases: [what: string, lines: string[], expected: string[]][] = [
    ['are none without annotations', linesOf(undefined), []],
    ['are absent without an answer', linesOf(details), ['default: absent: ', 'ns/net: absent: ']],
    [
      'have a state for each network',
      linesOf(details, { 'ns/net': { Status: 'Ready' }, default: { Status: 'Error', Reason: 'no port' } }),
      ['default: not ready: no port', 'ns/net: Ready: '],
    ],
    [
      'have lower-case fields, which apply before the others',
      linesOf(
        { a: {}, b: {} },
        { a: { status: 'Ready', reason: 'fine' }, b: { status: 'x', Status: 'Ready', reason: 'r', Reason: 'R' } },
      ),
      ['a: Ready: fine', 'b: not ready: r'],
    ],
    [
      'have the status as the reason, if there is none',
      linesOf({ a: {} }, { a: { status: 'Waiting' } }),
      ['a: not ready: Waiting'],
    ],
    [
      'have fields without a network, in the older form',
      linesOf({ pfId: '0', vfId: '1' }, { Status: 'Ready' }),
      ['default: Ready: '],
    ],
    ['leave out networks that are not objects', linesOf({ a: {}, b: 3, c: null, d: [] }), ['a: absent: ']],
  ];
  for (const [what, lines, expected] of cases) it(what, () => assert.deepEqual(lines, expected));

  it('are up to 64, with up to 120 characters of a name, a status and a reason', () => {
    const names = Array.from({ length: 70 }, (_, i) => `n${i}`);
    const of = (count: number) => linesOf(Object.fromEntries(names.slice(0, count).map((name) => [name, {}])));
    assert.deepEqual([of(64).length, of(65).length], [64, 64]);
    const long = 'x'.repeat(120);
    assert.deepEqual(linesOf({ [long]: {} }, { [long]: { status: 'Error', reason: long } }), [
      `${long}: not ready: ${long}`,
    ]);
    const [longer = ''] = linesOf({ [`${long}x`]: {} }, { [`${long}x`]: { status: `${long}x` } });
    const cutText = `${'x'.repeat(119)}…`;
    assert.equal(longer, `${cutText}: not ready: ${cutText}`);
  });
});
