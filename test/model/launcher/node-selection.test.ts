import assert from 'node:assert/strict';
import {
  filteringTaints,
  requiredTerms,
  type SelectingSpec,
  selectsNode,
  type Toleration,
  toleratesAll,
} from '../../../model/launcher/node-selection.ts';
import { need, selecting, term } from './selectors.ts';

const LABELS: Readonly<Record<string, string>> = { zone: 'a', size: '10', empty: '' };
const NODE = { name: 'n1', label: (key: string) => LABELS[key] };
const ZONE_A = need('zone', 'In', 'a', 'b');
const ZONE_C = need('zone', 'In', 'c');

describe('selection of a node by a pod', () => {
  const n1 = need('metadata.name', 'In', 'n1');
  const n2 = need('metadata.name', 'In', 'n2');
  const cases: readonly (readonly [string, SelectingSpec, boolean])[] = [
    ['all labels match', { nodeSelector: { zone: 'a', size: '10' } }, true],
    ['a term matches, a label does not', { nodeSelector: { zone: 'b' }, ...selecting(term(ZONE_A)) }, false],
    ['a term without requirements', selecting({}), false],
    ['one term of two matches', selecting(term(ZONE_C), term(ZONE_A)), true],
    ['NotIn, its value', selecting(term(need('zone', 'NotIn', 'a'))), false],
    ['NotIn, a missing label', selecting(term(need('rack', 'NotIn', 'a'))), true],
    ['DoesNotExist, an existing label', selecting(term(need('empty', 'DoesNotExist'))), false],
    ['Lt', selecting(term(need('size', 'Lt', '11'))), true],
    ['Lt, by value, not by text', selecting(term(need('size', 'Lt', '+9', '11'))), false],
    ['Gt, a label that is not a number', selecting(term(need('zone', 'Gt', '1'))), false],
    ['an unknown operator', selecting(term(need('zone', 'Like', 'a'))), false],
    ['another name', selecting({ matchFields: [n2] }), false],
    ['a matching name and another label', selecting({ matchFields: [n1], matchExpressions: [ZONE_C] }), false],
  ];
  for (const [what, spec, expected] of cases)
    it(`${what}: ${expected}`, () => assert.equal(selectsNode(spec, NODE), expected));

  it('uses the terms of the required affinity', () => {
    const required = (value: object | null) =>
      requiredTerms({ affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: value } } });
    assert.equal(requiredTerms({ affinity: null }), undefined);
    assert.equal(required(null), undefined);
    assert.deepEqual(required({}), []);
    assert.deepEqual(required({ nodeSelectorTerms: [term(ZONE_A)] }), [term(ZONE_A)]);
  });
});

describe('taints', () => {
  const taint = (key: string, effect = 'NoSchedule', value?: string) => ({ key, effect, ...(value && { value }) });
  const CORDON = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' };

  it('filter nodes with NoSchedule and NoExecute; a cordon is one of them', () => {
    assert.deepEqual(filteringTaints({ taints: null, unschedulable: false }), []);
    const taints = [taint('a'), taint('b', 'PreferNoSchedule'), taint('c', 'NoExecute')];
    assert.deepEqual(filteringTaints({ taints }), [taints[0], taints[2]]);
    assert.deepEqual(filteringTaints({ taints, unschedulable: true }), [CORDON, taints[0], taints[2]]);
    const cordoned = [taint('a'), { ...CORDON, value: 'v' }];
    assert.deepEqual(filteringTaints({ taints: cordoned, unschedulable: true }), cordoned);
  });

  it('are read up to 128', () => {
    const taints = Array.from({ length: 130 }, (_, i) => taint(`k${i}`));
    assert.deepEqual(filteringTaints({ taints }), taints.slice(0, 128));
    const tolerations = taints.map(({ key }) => ({ key, operator: 'Exists' }));
    assert.equal(toleratesAll(tolerations, taints.slice(0, 128)), true);
    assert.equal(toleratesAll(tolerations, taints.slice(0, 129)), false);
  });

  const tolerations: readonly (readonly [string, Toleration, boolean])[] = [
    ['an empty operator', { key: 'k', value: 'v', operator: '' }, true],
    ['an unknown operator', { key: 'k', value: 'v', operator: 'Like' }, false],
    ['no value', { key: 'k' }, false],
    ['Exists, another key', { key: 'other', operator: 'Exists' }, false],
    ['Exists for every key', { operator: 'Exists' }, true],
    ['a value without a key', { key: null, value: 'v' }, false],
    ['an empty effect', { key: 'k', value: 'v', effect: '' }, true],
    ['another effect', { operator: 'Exists', effect: 'NoExecute' }, false],
  ];
  for (const [what, toleration, expected] of tolerations) {
    it(`k=v:NoSchedule is ${expected ? '' : 'not '}tolerated by ${what}`, () =>
      assert.equal(toleratesAll([toleration], [taint('k', 'NoSchedule', 'v')]), expected));
  }

  it('must each be tolerated by a toleration', () => {
    const [a, b] = ['a', 'b'].map((key) => ({ key, operator: 'Exists' }));
    assert.equal(toleratesAll([a!, b!], [taint('a'), taint('b')]), true);
    assert.equal(toleratesAll([a!], [taint('a'), taint('b')]), false);
    assert.equal(toleratesAll(null, []), true);
    assert.equal(toleratesAll(undefined, [taint('a')]), false);
  });
});
