import assert from 'node:assert/strict';
import {
  type DecisionText,
  decidedOf,
  decisionText,
  NOTHING_TO_DO,
  paddingOf,
} from '../../../model/admission/decision-annotation.ts';
import { DECISION_ANNOTATION } from '../../../model/names.ts';

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

describe('the decision annotation, written and read', () => {
  const cases: readonly [string, DecisionText, string, ReturnType<typeof decidedOf>][] = [
    [
      'padded',
      { ...NOTHING, cpus: { compute: 10 }, padding: 1, threadsPerCore: 2 },
      '{"cpus":{"compute":10},"padding":1,"threadsPerCore":2}',
      { kind: 'padded', padding: 1, cpus: true },
    ],
    [
      'whole cores already',
      { ...NOTHING, cpus: { compute: 10 }, threadsPerCore: 2 },
      '{"cpus":{"compute":10},"padding":0,"threadsPerCore":2}',
      { kind: 'nothing-to-pad', padding: 0, cpus: true },
    ],
    ['nothing to do', NOTHING, '{"padding":0}', { kind: 'nothing-to-pad', padding: 0, cpus: false }],
    [
      'unchanged',
      { ...NOTHING, unpadded: 'the gate is off' },
      '{"padding":0,"unpadded":"the gate is off"}',
      { kind: 'not-padded', padding: 0, cpus: false, why: 'the gate is off' },
    ],
    [
      'aligned with a network only',
      { ...NOTHING, resources: ['physnet.plumbline.dev/east'] },
      '{"padding":0,"networks":[],"resources":["physnet.plumbline.dev/east"]}',
      { kind: 'nothing-to-pad', padding: 0, cpus: false },
    ],
  ];
  for (const [name, text, written, decided] of cases) {
    it(name, () => {
      assert.equal(decisionText(text), written);
      assert.deepEqual(read(written), decided);
    });
  }

  it('has a bounded number of notes of bounded length', () => {
    const note = { severity: 'warning', code: 'c', message: 'x'.repeat(10_000) } as const;
    const text = decisionText({ ...NOTHING, notes: Array(100).fill(note) });
    assert.ok(text.length < 16 * 600, `${text.length} characters`);
    const [information] = JSON.parse(decisionText({ ...NOTHING, notes: [{ ...note, severity: 'information' }] })).notes;
    assert.deepEqual([information.type, information.reason], ['Normal', 'LauncherDecided']);
  });

  it('has the same text if a launcher requests nothing and if nothing has to be done', () => {
    assert.equal(NOTHING_TO_DO, decisionText(NOTHING));
  });

  it('gives no decision if it is missing or malformed', () => {
    for (const text of [undefined, '', 'seen', '7', 'null', '[]', '{"padding":'])
      assert.equal(read(text), undefined, text);
  });

  it('ignores padding that no host can have', () => {
    for (const padding of [-1, 0.5, 4097, '1', null]) {
      assert.equal(paddingOf({ annotations: { [DECISION_ANNOTATION]: JSON.stringify({ padding }) } }), 0);
    }
  });
});
