import assert from 'node:assert/strict';
import { ASKING, annotationFindings, hasAsked } from '../../model/launcher/annotation.ts';
import type { NodeKind } from '../../model/launcher/smt-affinity.ts';
import {
  checkTemplate,
  misplacedAnnotations,
  rejectionWarning,
  threadsWarning,
  type VmTemplate,
} from '../../model/launcher/template.ts';
import { ANNOTATED, CPU, kind } from './admission/fixture.ts';

const MASK = 'plumbline.dev/cpu-mask';
const FIX = 'plumbline.dev/fix-cpu-mismatch';
const START = 'plumbline.dev/cpu-mask-start';
const AFFINITY = 'plumbline.dev/numa-affinity';

interface Parts {
  readonly annotations?: Readonly<Record<string, string>>;
  readonly cpu?: object | null;
  readonly instancetype?: boolean;
  readonly livenessProbe?: object;
}
function template({ annotations = {}, cpu = { cores: 2 }, instancetype = false, livenessProbe }: Parts): VmTemplate {
  return { metadata: { annotations }, spec: { domain: cpu === null ? {} : { cpu }, livenessProbe }, instancetype };
}
const check = (current: Parts, previous?: Parts, instance = false, gate = true) =>
  checkTemplate(template(current), previous && { previous: template(previous), instance }, gate);
const refusals = (current: Parts, previous?: Parts, instance?: boolean) => check(current, previous, instance).refusals;
const masked = (mask: string, more: Parts = {}): Parts => ({ ...more, annotations: { [MASK]: mask } });

describe('the template of a VM', () => {
  it('requests something with any one of the annotations', () => {
    assert.equal(ASKING.length, 5);
    for (const name of ASKING) assert.equal(hasAsked({ annotations: { [name]: '' } }), true, name);
    assert.equal(hasAsked({ annotations: { other: '' } }), false);
  });

  const wrong = masked('1:2:3');
  const grown = masked('1:2', { cpu: { cores: 3 } });
  for (const [what, current, previous, instance, count] of [
    ['a mask for more vCPUs', wrong, undefined, false, 1],
    ['a mask whose vCPUs come from an instancetype', masked('1:2:3', { instancetype: true }), undefined, false, 0],
    ['a wrong mask that stays', wrong, wrong, false, 0],
    ['a mask that becomes wrong', wrong, masked('1:2'), false, 1],
    ['more vCPUs than the mask', grown, masked('1:2'), false, 1],
    ['vCPUs that KubeVirt plugs into a VMI', grown, masked('1:2'), true, 0],
  ] as const) {
    it(`is ${count === 0 ? 'accepted' : 'refused'}: ${what}`, () =>
      assert.equal(refusals(current, previous, instance).length, count));
  }

  it('causes a warning if a liveness probe prevents a paused start', () => {
    const livenessProbe = {};
    const running = { annotations: { [MASK]: '1:2', [START]: 'running' }, livenessProbe };
    const [warning = ''] = check(masked('1:2', { livenessProbe })).warnings;
    assert.match(warning, /with a liveness probe .* cannot start paused/);
    for (const parts of [masked('1:2'), { livenessProbe }, masked('all', { livenessProbe }), running])
      assert.deepEqual(check(parts).warnings, []);
    assert.deepEqual(check(masked('1:2:3', { livenessProbe })).warnings, [], 'a refusal is enough');
  });

  for (const [name, values, expected, fallback] of [
    [FIX, ['false', 'true'], 'true or false', 'false'],
    [START, ['paused', 'running'], 'running or paused', 'paused'],
  ] as const) {
    it(`${name} has one of two values and needs a mask`, () => {
      for (const value of values) {
        assert.deepEqual(check({ annotations: { [MASK]: '1:2', [name]: value } }).warnings, []);
        const [warning] = check({ annotations: { [name]: value } }).warnings;
        assert.equal(warning, `annotation ${name} has no effect without ${MASK}`);
      }
      const unknown = `annotation ${name} has the unknown value "yes" and counts as ${fallback}: expected ${expected}`;
      assert.deepEqual(check({ annotations: { [MASK]: '1:2', [name]: 'yes' } }).warnings, [unknown]);
    });
  }

  it('is refused for unreadable affinities only when they are written', () => {
    const bad = { annotations: { [AFFINITY]: '{' } };
    const [refusal = ''] = refusals(bad);
    assert.match(refusal, /numa-affinity/);
    assert.deepEqual(refusals(bad, bad), []);
    assert.equal(refusals(bad, {}).length, 1);
    assert.deepEqual(refusals({ annotations: { [AFFINITY]: '{"net1":"preferred"}' } }), []);
  });

  it('causes a warning if whole cores are requested without effect', () => {
    const count = (parts: Parts, gate = true) =>
      check({ annotations: ANNOTATED, ...parts }, undefined, false, gate).warnings.length;
    assert.deepEqual([count({}), count({ cpu: null }), count({ cpu: CPU }, false)], [1, 1, 1]);
    assert.deepEqual([count({ instancetype: true }), count({ cpu: CPU })], [0, 0]);
    assert.deepEqual(annotationFindings({ annotations: ANNOTATED }, undefined, true), []);
  });

  it('causes a warning for annotations on the VM instead of the template', () => {
    const warnings = (outer: object, inner: object) =>
      misplacedAnnotations({ annotations: { ...outer } }, { annotations: { ...inner } }, 'spec.template');
    const notes = (...names: string[]) =>
      names.map((name) => `annotation ${name} has no effect here: put it into spec.template.metadata.annotations`);
    const [full = ''] = Object.keys(ANNOTATED);
    const all = { ...ANNOTATED, [MASK]: '', [START]: '', [FIX]: '', [AFFINITY]: '' };
    assert.deepEqual(warnings(all, {}), notes(...Object.keys(all)));
    assert.deepEqual(warnings(all, { [MASK]: '', [FIX]: 'x' }), notes(full, START, AFFINITY));
    assert.deepEqual(misplacedAnnotations({ annotations: { other: '' } }, {}, 'x'), []);
  });
});

describe('the warning that nodes would reject the launcher of a VM', () => {
  const on = { gate: true, policy: 'annotated' } as const;
  const off = { ...on, gate: false };
  const lax = { ...kind(2), fullPcpusOnly: false };
  const notIsolated = { ...CPU, cores: 3, threads: 1, isolateEmulatorThread: false };
  const plain = template({ cpu: CPU });
  const annotated = template({ cpu: CPU, annotations: ANNOTATED });
  const ANNOTATE = 'annotate the template with kubevirt.io/CPUManagerPolicyBetaOptions: full-pcpus-only';
  const FILL = 'give it vCPUs that fill whole cores';
  const text = (cpus: string, where: string, remedy: string) =>
    `the launcher asks for ${cpus}: ${where} rejects it, SMTAlignmentError; ${remedy}`;
  const EVERY = 'every node it can go to (2 threads per core)';
  const SOME = 'every full-pcpus-only node (2 or 4 threads per core)';

  const all = { ...on, policy: 'auto' } as const;
  const shared = template({ cpu: notIsolated, annotations: ANNOTATED });
  const sized = template({ cpu: CPU, instancetype: true });
  type Case = [string, VmTemplate, NodeKind[], Parameters<typeof rejectionWarning>[2], expected?: string];
  const cases: Case[] = [
    ['an odd number without the annotation', plain, [kind(2)], on, text('9 CPUs', EVERY, ANNOTATE)],
    ['other nodes accept it', plain, [kind(4), lax, kind(2), kind(4)], on, text('9 CPUs', SOME, ANNOTATE)],
    ['the gate is off', annotated, [kind(2)], off, text('9 CPUs', EVERY, FILL)],
    ['no isolated emulator thread', shared, [kind(2)], on, text('3 CPUs', EVERY, FILL)],
    ['no node requires whole cores', plain, [lax], on],
    ['an instancetype sets the CPUs', sized, [kind(2)], on],
    ['all VMs are aligned', plain, [kind(2)], all],
  ];
  for (const [what, vm, kinds, settings, expected] of cases) {
    it(`is ${expected === undefined ? 'omitted' : 'given'}: ${what}`, () =>
      assert.equal(rejectionWarning(vm, kinds, settings), expected));
  }
});

describe('the warning for a guest with threads', () => {
  const cpu = { cores: 4, threads: 2, dedicatedCpuPlacement: true };
  for (const [what, vm, kinds, isGiven] of [
    ['no node has SMT', template({ cpu }), [kind(1)], true],
    ['some node has SMT', template({ cpu }), [kind(1), kind(2)], false],
    ['a VM on shared CPUs', template({ cpu: { ...cpu, dedicatedCpuPlacement: false } }), [kind(1)], false],
  ] as const) {
    it(`is ${isGiven ? 'given' : 'omitted'}: ${what}`, () => {
      const warning = threadsWarning(vm, kinds) ?? '';
      assert.equal(/^no node that this VM may go to has SMT: its guest has 2 threads per core/.test(warning), isGiven);
    });
  }
});
