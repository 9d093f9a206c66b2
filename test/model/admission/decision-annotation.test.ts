import assert from 'node:assert/strict';
import {
  type DecisionText,
  decidedOf,
  decisionText,
  inWords,
  NOTHING_TO_DO,
  paddingOf,
  placementText,
} from '../../../model/admission/decision-annotation.ts';
import { DECISION_ANNOTATION } from '../../../model/names.ts';
import type { ResolvedNetwork } from '../../../model/networks/resolve.ts';

const EAST = 'physnet.plumbline.dev/east';
const read = (text: string | undefined) =>
  decidedOf({ annotations: text === undefined ? {} : { [DECISION_ANNOTATION]: text } });
const NOTHING: DecisionText = {
  cpus: {},
  threadsPerCore: undefined,
  padding: 0,
  networks: [],
  resources: [],
  nodes: undefined,
  notes: [],
};

describe('the decision annotation', () => {
  const cases: readonly [string, DecisionText, string, ReturnType<typeof decidedOf>][] = [
    [
      'padded',
      { ...NOTHING, cpus: { compute: 10 }, padding: 1, threadsPerCore: 2 },
      '{"cpus":{"compute":10},"padding":1,"threadsPerCore":2}',
      { kind: 'padded', padding: 1, cpus: true },
    ],
    ['nothing to do', NOTHING, NOTHING_TO_DO, { kind: 'nothing-to-pad', padding: 0, cpus: false }],
    [
      'unchanged',
      { ...NOTHING, unpadded: 'the gate is off' },
      '{"padding":0,"unpadded":"the gate is off"}',
      { kind: 'not-padded', padding: 0, cpus: false, why: 'the gate is off' },
    ],
  ];
  for (const [name, text, written, decided] of cases) {
    it(`is written and read: ${name}`, () => {
      assert.equal(decisionText(text), written);
      assert.deepEqual(read(written), decided);
    });
  }

  it('names nodes, networks and resources if there are any', () => {
    const network = { kind: 'tunnel', name: 'net1', network: 'ns/a' } as ResolvedNetwork;
    const nodes = [
      { key: 'k', operator: 'In', values: ['a', 'b'] },
      { key: 'e', operator: 'Exists' },
    ];
    assert.deepEqual(JSON.parse(decisionText({ ...NOTHING, networks: [network], resources: ['r'], nodes })), {
      padding: 0,
      networks: [{ interface: 'net1', network: 'ns/a', on: 'tunnel' }],
      resources: ['r'],
      nodes: ['k In a,b', 'e Exists '],
    });
    assert.equal(inWords({ key: 'k', operator: 'In', values: null }), 'k In ');
  });

  it('has a bounded number of notes of bounded length', () => {
    const note = { severity: 'warning', code: 'c', message: 'x'.repeat(10_000) } as const;
    const text = decisionText({ ...NOTHING, notes: Array(100).fill(note) });
    assert.ok(text.length < 16 * 600, `${text.length} characters`);
    const [information] = JSON.parse(decisionText({ ...NOTHING, notes: [{ ...note, severity: 'information' }] })).notes;
    assert.deepEqual([information.type, information.reason], ['Normal', 'LauncherDecided']);
  });

  it('gives no decision if it is missing, malformed or too long', () => {
    const long = (length: number) => '{"padding":1}'.padEnd(length, ' ');
    assert.equal(read(long(100_000))?.kind, 'padded');
    for (const text of [undefined, '', 'seen', '7', 'null', '[]', '{"padding":', long(100_001)])
      assert.equal(read(text), undefined, text);
  });

  it('ignores padding that no host can have', () => {
    const padding = (value: unknown) =>
      paddingOf({ annotations: { [DECISION_ANNOTATION]: JSON.stringify({ padding: value }) } });
    assert.deepEqual([3, 4096].map(padding), [3, 4096]);
    assert.deepEqual([-1, 0.5, 4097, '1', null].map(padding), [0, 0, 0, 0, 0]);
    assert.equal(paddingOf({}), 0);
  });

  it('has a placement annotation next to it only if a network or threads matter', () => {
    const none = { preferred: [], spansCells: false, interfaces: {}, guestThreads: 1 };
    assert.equal(placementText(none, []), undefined);
    assert.equal(typeof placementText(none, [EAST]), 'string');
    assert.equal(placementText({ ...none, guestThreads: 2 }, []), '{"guestThreads":2}');
    assert.equal(typeof placementText({ ...none, preferred: [EAST] }, []), 'string');
  });
});
