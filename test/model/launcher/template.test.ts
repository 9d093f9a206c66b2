import assert from 'node:assert/strict';
import { cpusOfOrdinary } from '../../../model/admission/ordinary-cpus.ts';
import { parseMask } from '../../../model/cpu-mask/mask.ts';
import { ParseError } from '../../../model/errors.ts';
import type { AlignmentPolicy } from '../../../model/launcher/annotation.ts';
import { annotationFindings, asksForAlignment, asksForWholeCores } from '../../../model/launcher/annotation.ts';
import { integralAt, podResourcesOf } from '../../../model/launcher/containers.ts';
import { maskRefusals, maskRequestKey, maskRequestOf, maskWithOwnCpus } from '../../../model/launcher/mask-request.ts';
import {
  fitsLauncher,
  isLauncher,
  READ_ANNOTATIONS,
  recognizeLauncher,
  vmiObject,
} from '../../../model/launcher/recognize.ts';
import { checkTemplate, misplacedAnnotations, type VmTemplate } from '../../../model/launcher/template.ts';
import type { PodShape } from '../../../model/shapes.ts';
import { ANNOTATED, CPU, cluster, container, kind, launcher, ordinary } from '../admission/facts.ts';

const MASK = 'plumbline.dev/cpu-mask';
const FIX = 'plumbline.dev/fix-cpu-mismatch';
const START = 'plumbline.dev/cpu-mask-start';
const AFFINITY = 'plumbline.dev/numa-affinity';
const NETWORKS = 'k8s.v1.cni.cncf.io/networks';

interface Parts {
  readonly annotations?: Readonly<Record<string, string>>;
  readonly cpu?: object | null;
  readonly instancetype?: boolean;
  readonly livenessProbe?: object;
}
const template = ({ annotations = {}, cpu = { cores: 2 }, instancetype = false, livenessProbe }: Parts = {}) =>
  ({
    metadata: { annotations },
    spec: { domain: cpu === null ? {} : { cpu }, ...(livenessProbe && { livenessProbe }) },
    instancetype,
  }) satisfies VmTemplate;
const check = (current: Parts, previous?: Parts, instance = false, gate = true) =>
  checkTemplate(template(current), previous && { previous: template(previous), instance }, gate);
const refusals = (current: Parts, previous?: Parts, instance?: boolean) => check(current, previous, instance).refusals;

const EXCLUDE = `annotation ${MASK} (1:2) and dedicatedCpuPlacement are mutually exclusive: KubeVirt pins dedicated CPUs. Remove one of the two`;
const dedicated = { cores: 2, dedicatedCpuPlacement: true };

describe('the template of a VM', () => {
  it('causes no message without annotations', () => {
    assert.deepEqual(check({}), { refusals: [], warnings: [] });
    assert.deepEqual(checkTemplate({ ...template(), metadata: {} }, undefined, true), { refusals: [], warnings: [] });
  });

  describe('with a CPU mask', () => {
    const masked = (mask: string, more: Parts = {}) => ({ ...more, annotations: { [MASK]: mask } });
    it('is refused for an impossible mask, with the mask’s own reason', () => {
      assert.deepEqual(refusals(masked('1:2')), []);
      assert.deepEqual(refusals(masked('1:2', { cpu: dedicated })), [EXCLUDE]);
      const [count, ...others] = refusals(masked('1:2:3'));
      assert.deepEqual(others, []);
      assert.match(count ?? '', new RegExp(`^annotation ${MASK}: .*3.*2`));
      const [form] = refusals(masked('x'));
      assert.match(form ?? '', new RegExp(`^annotation ${MASK}: `));
    });

    it('does not count vCPUs that come from an instancetype', () =>
      assert.deepEqual(refusals(masked('1:2:3', { instancetype: true })), []));

    it('is checked in an update only if mask, vCPUs or placement change', () => {
      const wrong = masked('1:2:3');
      assert.equal(refusals(wrong, wrong).length, 0);
      assert.equal(refusals(wrong, masked('1:2')).length, 1);
      assert.equal(refusals(wrong, {}).length, 1);
      const grown = masked('1:2', { cpu: { cores: 3 } });
      assert.equal(refusals(grown, masked('1:2')).length, 1);
      // KubeVirt plugs vCPUs into a VMI.
      assert.equal(refusals(grown, masked('1:2'), true).length, 0);
      const owned = masked('1:2', { cpu: dedicated });
      assert.deepEqual(refusals(owned, masked('1:2')), [EXCLUDE]);
      assert.deepEqual(refusals(owned, masked('1:2'), true), [EXCLUDE]);
      assert.deepEqual(refusals(owned, owned), []);
      const bare = masked('1:2', { cpu: null });
      const said = masked('1:2', { cpu: { dedicatedCpuPlacement: false } });
      assert.deepEqual([refusals(bare, said), refusals(said, bare)], [[], []]);
    });

    it('causes a warning if a liveness probe prevents a paused start', () => {
      const livenessProbe = {};
      const warning = `annotation ${MASK}: with a liveness probe the VM cannot start paused, so it runs for a moment before its vCPUs are pinned`;
      assert.deepEqual(check(masked('1:2', { livenessProbe })).warnings, [warning]);
      assert.deepEqual(check(masked('1:2')).warnings, []);
      assert.deepEqual(check({ livenessProbe }).warnings, []);
      assert.deepEqual(check(masked('all', { livenessProbe })).warnings, []);
      assert.deepEqual(check(masked('1:2:3', { livenessProbe })).warnings, []);
      const running = { annotations: { [MASK]: '1:2', [START]: 'running' }, livenessProbe };
      assert.deepEqual(check(running).warnings, []);
    });
  });

  for (const [name, values, expected, fallback] of [
    [FIX, ['false', 'true'], 'true or false', 'false'],
    [START, ['paused', 'running'], 'running or paused', 'paused'],
  ] as const) {
    it(`${name} has one of two values and needs a mask`, () => {
      for (const value of values) {
        assert.deepEqual(check({ annotations: { [MASK]: '1:2', [name]: value } }).warnings, []);
        assert.deepEqual(check({ annotations: { [name]: value } }).warnings, [
          `annotation ${name} has no effect without ${MASK}`,
        ]);
      }
      const unknown = `annotation ${name} has the unknown value "yes" and counts as ${fallback}: expected ${expected}`;
      assert.deepEqual(check({ annotations: { [MASK]: '1:2', [name]: 'yes' } }).warnings, [unknown]);
      assert.deepEqual(check({ annotations: { [name]: 'yes' } }).warnings, [unknown]);
    });
  }

  it('is refused for unreadable affinities only when they are written', () => {
    const bad = { annotations: { [AFFINITY]: '{' } };
    assert.equal(refusals(bad).length, 1);
    assert.match(refusals(bad)[0] ?? '', /numa-affinity/);
    assert.deepEqual(refusals(bad, bad), []);
    assert.equal(refusals(bad, {}).length, 1);
    assert.deepEqual(refusals({ annotations: { [AFFINITY]: '{"net1":"preferred"}' } }), []);
  });

  it('causes a warning if whole cores are requested without effect', () => {
    const NOT = 'annotation kubevirt.io/CPUManagerPolicyBetaOptions has no effect: the VM has no dedicatedCpuPlacement';
    assert.deepEqual(check({ annotations: ANNOTATED }).warnings, [NOT]);
    assert.deepEqual(check({ annotations: ANNOTATED, cpu: null }).warnings, [NOT]);
    assert.deepEqual(check({ annotations: ANNOTATED, instancetype: true }).warnings, []);
    assert.deepEqual(check({ annotations: ANNOTATED, cpu: CPU }).warnings, []);
    assert.equal(check({ annotations: ANNOTATED, cpu: CPU }, undefined, false, false).warnings.length, 1);
    assert.deepEqual(annotationFindings({ annotations: ANNOTATED }, undefined, true), []);
  });

  it('causes a warning for annotations on the VM instead of the template', () => {
    const note = (name: string) =>
      `annotation ${name} has no effect here: put it into spec.template.metadata.annotations`;
    const found = (outer: object, inner: object) =>
      misplacedAnnotations({ annotations: { ...outer } }, { annotations: { ...inner } }, 'spec.template');
    const all = { ...ANNOTATED, [MASK]: '', [START]: '', [FIX]: '', [AFFINITY]: '' };
    assert.deepEqual(found(all, {}), Object.keys(all).map(note));
    assert.deepEqual(found(all, { [MASK]: '', [FIX]: 'x' }), [Object.keys(ANNOTATED)[0]!, START, AFFINITY].map(note));
    assert.deepEqual(found({ other: '' }, {}), []);
    assert.deepEqual(misplacedAnnotations({}, {}, 'x'), []);
  });
});

describe('the CPU mask of a launcher', () => {
  it('is refused for CPUs of its own', () => {
    const because =
      'requests and limits of this launcher are equal and whole CPUs, so the kubelet gives it CPUs of its own and a mask cannot choose others; let CPU requests and limits differ, or remove the mask';
    assert.deepEqual(maskWithOwnCpus({ annotations: { [MASK]: '1:2' } }), [`annotation ${MASK}: ${because}`]);
    assert.deepEqual(maskWithOwnCpus({ annotations: { [MASK]: 'all' } }), []);
    assert.deepEqual(maskWithOwnCpus({}), []);
  });

  it('causes no refusal after a bug of the program', () =>
    assert.throws(
      () => maskRefusals({ metadata: { annotations: { [MASK]: '1:2' } }, spec: {} as never, vcpusUnknown: false }),
      TypeError,
    ));

  it('becomes a request and a key', () => {
    const request = (annotations: Record<string, string>) => maskRequestOf({ annotations });
    assert.equal(request({}), undefined);
    assert.equal(maskRequestOf({}), undefined);
    assert.equal(request({ [MASK]: 'all' }), undefined);
    const plain = request({ [MASK]: '1:2' })!;
    assert.deepEqual([plain.fixMismatch, plain.mask], [false, parseMask('1:2')]);
    assert.equal(maskRequestKey(plain), '1:2');
    assert.equal(maskRequestKey(request({ [MASK]: '1:2', [FIX]: 'true' })!), '1:2 or all');
    assert.equal(request({ [MASK]: '1:2', [FIX]: 'yes' })!.fixMismatch, false);
    assert.equal(maskRequestKey({ mask: parseMask('1,0:2'), fixMismatch: true }), '0-1:2 or all');
    assert.throws(() => request({ [MASK]: 'x' }), ParseError);
  });

  it('is parsed once, and kept among the latest 64', () => {
    const request = (cpu: number) => maskRequestOf({ annotations: { [MASK]: `${cpu}:1000` } })!;
    const [first, second] = [request(0), request(1)];
    const masks = [first.mask, second.mask];
    assert.equal(first.mask, masks[0]);
    // With 62 others, both stay. The first is requested again, so the second is now the oldest.
    for (let cpu = 2; cpu < 64; cpu++) assert.deepEqual(request(cpu).mask, parseMask(`${cpu}:1000`));
    assert.equal(first.mask, masks[0]);
    assert.equal(second.mask, masks[1]);
    assert.equal(first.mask, masks[0]);
    request(64).mask;
    for (let cpu = 65; cpu < 127; cpu++) request(cpu).mask;
    assert.equal(first.mask, masks[0]);
    assert.notEqual(second.mask, masks[1]);
    assert.deepEqual(second.mask, masks[1]);
  });
});

describe('a launcher matches the current state of its VMI', () => {
  const vmi = (cpu: object, annotations = {}, networks?: object[]) => ({
    metadata: { annotations },
    spec: { domain: { cpu }, ...(networks && { networks: networks as never }) },
  });
  const fits = (annotations: Record<string, string>, cpus: string, its: ReturnType<typeof vmi>) => {
    const { pod, compute } = launcher({ annotations, containers: [container('a', '1'), container('compute', cpus)] });
    return fitsLauncher(pod, integralAt(podResourcesOf(pod), { list: 'containers', index: compute })?.cpus, 'ns', its);
  };

  it('if the annotations that are read are equal', () => {
    for (const name of READ_ANNOTATIONS) {
      const owner = vmi({ cores: 2 }, { [name]: '{}' });
      assert.equal(fits({ [name]: '{}' }, '1', owner), true);
      assert.equal(fits({ [name]: '{ }' }, '1', owner), false);
      assert.equal(fits({}, '1', owner), false);
      assert.equal(fits({ [name]: '{}' }, '1', vmi({ cores: 2 })), false);
    }
    assert.equal(fits({ other: '' }, '1', vmi({ cores: 2 })), true);
  });

  it('if its CPUs are those of the VMI, or padded to cores of up to 8 threads', () => {
    // 8 vCPUs and one for the emulator.
    for (const [cpus, expected] of [
      ['8', false],
      ['9', true],
      ['10', true],
      ['11', false],
      ['12', true],
      ['14', false],
      ['16', true],
      ['18', false],
      ['9500m', false],
    ] as const) {
      assert.equal(fits({}, cpus, vmi(CPU)), expected, cpus);
    }
    assert.equal(fits({}, '7', vmi({ ...CPU, dedicatedCpuPlacement: false })), true);
    const { pod } = launcher({ annotations: {}, containers: [{ name: 'compute' }] });
    assert.equal(fitsLauncher(pod, undefined, 'ns', vmi(CPU)), false);
  });

  it('if each of its networks is one of the VMI', () => {
    const networks = [
      { name: 'a', pod: {} },
      { name: 'b', multus: { networkName: 'east' } },
      { name: 'c', multus: { networkName: 'x/west' } },
    ];
    const owner = vmi({ cores: 2 }, {}, networks);
    assert.equal(fits({ [NETWORKS]: 'east' }, '1', owner), true);
    assert.equal(fits({ [NETWORKS]: 'ns/east,x/west' }, '1', owner), true);
    assert.equal(fits({ [NETWORKS]: 'east,west' }, '1', owner), false);
    assert.equal(fits({ [NETWORKS]: 'west,east' }, '1', owner), false);
    assert.equal(fits({ [NETWORKS]: 'east' }, '1', vmi({ cores: 2 })), false);
    assert.equal(fits({}, '1', owner), true);
    assert.equal(fits({ [NETWORKS]: '' }, '1', owner), true);
  });
});

describe('the kind of a pod', () => {
  const { pod } = launcher();
  const labelled = (labels: Record<string, string>, annotations = {}) => ({
    ...pod,
    metadata: { ...pod.metadata, labels: { ...pod.metadata.labels, ...labels }, annotations },
  });
  const LAUNCHER = { kind: 'launcher', vmi: { name: 'vm', uid: 'u1' }, compute: 0 };

  it('is a launcher with its purpose', () => {
    assert.equal(isLauncher(pod.metadata), true);
    assert.deepEqual(recognizeLauncher(pod), { ...LAUNCHER, purpose: 'run' });
    assert.deepEqual(recognizeLauncher(labelled({ 'kubevirt.io/migrationJobUID': '' })), {
      ...LAUNCHER,
      purpose: 'migration-target',
    });
    const provisioning = (value: string) =>
      recognizeLauncher(labelled({}, { 'kubevirt.io/ephemeral-provisioning': value }));
    assert.deepEqual(provisioning('true'), { ...LAUNCHER, purpose: 'provisioning' });
    assert.deepEqual(provisioning('false'), { ...LAUNCHER, purpose: 'run' });
  });

  it('is another pod with the reason', () => {
    assert.equal(isLauncher({}), false);
    assert.equal(isLauncher({ labels: { 'kubevirt.io': 'hotplug-disk' } }), false);
    const why = (one: typeof pod) => {
      const found = recognizeLauncher(one);
      return found.kind === 'other' ? found.why : found.kind;
    };
    assert.equal(why(labelled({ 'kubevirt.io': 'hotplug-disk' })), 'hot-plug');
    assert.equal(why(labelled({ 'kubevirt.io': 'other' })), 'no-launcher-label');
    assert.equal(why({ ...pod, spec: { containers: [container('other', '1')] } }), 'no-compute-container');
    const owned = (more: object, ...others: object[]) => {
      const [owner] = pod.metadata.ownerReferences ?? [];
      return why({
        ...pod,
        metadata: { ...pod.metadata, ownerReferences: [...others, { ...owner!, ...more }] as never },
      });
    };
    assert.equal(owned({}), 'launcher');
    assert.equal(owned({}, { kind: 'Other', controller: false }), 'launcher');
    assert.equal(owned({ controller: false }), 'no-vmi-owner');
    assert.equal(owned({ kind: 'VirtualMachine' }), 'no-vmi-owner');
    assert.equal(owned({ apiVersion: 'example.com/v1' }), 'no-vmi-owner');
  });

  it('gives the VMI of a launcher as the object of an Event', () =>
    assert.deepEqual(vmiObject('ns', { name: 'vm', uid: 'u1' }), {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachineInstance',
      namespace: 'ns',
      name: 'vm',
      uid: 'u1',
    }));
});

/** The CPUs of a pod that can run on nodes with these threads per core. */
const cpusOf = (pod: PodShape, threads: readonly number[], policy: AlignmentPolicy) =>
  cpusOfOrdinary({
    ...ordinary(),
    pod,
    resources: podResourcesOf(pod),
    cluster: cluster(threads.map((count) => kind(count))),
    settings: { gate: true, policy, oversized: 'refuse' },
  });

describe('an ordinary pod that requests whole cores', () => {
  const ALIGN = 'plumbline.dev/align';
  const pod = (value: string | undefined, ...cpus: string[]) => ({
    metadata: value === undefined ? {} : { annotations: { [ALIGN]: value } },
    spec: { containers: cpus.map((cpu, i) => container(`c${i}`, ...(cpu.split('/') as [string, string?]))) },
  });

  it('is recognised by its annotation', () => {
    assert.deepEqual(
      [pod(undefined), pod('cores'), pod('whole-cores')].map(({ metadata }) => [
        asksForAlignment(metadata),
        asksForWholeCores(metadata),
      ]),
      [
        [false, false],
        [true, false],
        [true, true],
      ],
    );
  });

  for (const [policy, candidates, threads] of [
    ['annotated', [], 2],
    ['annotated', [1], 2],
    ['annotated', [4, 2], 4],
    ['auto', [], 2],
    ['auto', [1], 1],
    ['auto', [2, 8, 4], 8],
  ] as const) {
    it(`is rounded to ${threads} threads, policy ${policy}, nodes of ${candidates.join() || 'no'} threads`, () => {
      const found = cpusOf(pod('whole-cores', '3'), candidates, policy);
      const expected = Math.ceil(3 / threads) * threads;
      assert.deepEqual([found.threadsPerCore, found.amounts], [threads, [{ list: 'containers', cpus: expected }]]);
    });
  }

  it('is rounded in every container whose request equals its limit', () => {
    const { amounts, findings } = cpusOf(pod('whole-cores', '3', '2/3', '4'), [2], 'annotated');
    assert.deepEqual(
      amounts.map(({ cpus }) => cpus),
      [4, 4],
    );
    assert.deepEqual(
      findings.map(({ code }) => code),
      ['not-guaranteed'],
    );
  });

  it('gets a note about different nodes if it was rounded', () => {
    const message =
      'the full-pcpus-only nodes this pod can go to have 2 and 4 and 16 threads per core; it is aligned to 16';
    const of = (...cpus: string[]) => cpusOf(pod('whole-cores', ...cpus), [16, 4, 2, 4], 'annotated').findings;
    assert.deepEqual(of('3', '16'), [
      { severity: 'information', code: 'mixed-candidates', reason: 'MixedCandidates', message },
    ]);
    assert.deepEqual(of('16', '32'), []);
    assert.deepEqual(cpusOf(pod('whole-cores', '3'), [4, 4], 'annotated').findings, []);
  });

  it('has an unknown value if the annotation has none', () => {
    const { findings } = cpusOf(pod(undefined, '3'), [2], 'annotated');
    assert.deepEqual(
      findings.map(({ code, message }) => [code, message]),
      [
        [
          'unknown-annotation-value',
          `annotation ${ALIGN} has the unknown value "" and no effect: the only value is whole-cores`,
        ],
      ],
    );
  });
});
