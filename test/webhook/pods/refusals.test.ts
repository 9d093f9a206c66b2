import assert from 'node:assert/strict';
import type { AlignmentPolicy } from '../../../model/launcher/annotation.ts';
import { ALIGN_ANNOTATION, ALIGN_WHOLE_CORES, DECISION_ANNOTATION } from '../../../model/names.ts';
import type { VmiLookup } from '../../../webhook/cluster/cluster-facts.ts';
import {
  denialOf,
  kindOf,
  localnet,
  mutationOf,
  patched,
  patchOf,
  podVector,
  requestFor,
  setCpu,
  type TestPod,
  validationOf,
  viewOf,
  vmiVector,
} from '../launcher-fixture.ts';

const PHYSNET = 'physnet.plumbline.dev/physnet1';
const sidecar = (resources: object, name = 'mesh') => ({ name, image: 'none', resources });
const both = (amounts: Record<string, string>) => ({ requests: amounts, limits: amounts });

describe('refusal of pods', () => {
  const cases: readonly (readonly [name: string, change: (pod: TestPod) => void, code: number, says: RegExp])[] = [
    [
      'a sidecar whose request is below its limit',
      (pod) =>
        pod.spec.containers.push(
          sidecar({ requests: { cpu: '1m', memory: '1M' }, limits: { cpu: '2m', memory: '1M' } }) as never,
        ),
      422,
      /container mesh .*its cpu request 1m differs from its limit 2m/,
    ],
    [
      'an owner with a name of a megabyte',
      (pod) => Object.assign(pod.metadata.ownerReferences[0]!, { name: 'x'.repeat(1e6) }),
      400,
      /metadata\.ownerReferences\.0\.name: longer than 253 characters$/,
    ],
    [
      'a sidecar without resources',
      (pod) => pod.spec.containers.unshift(sidecar({}) as never),
      422,
      /container mesh .*it has no cpu limit/,
    ],
    [
      'pod-level resources',
      (pod) => Object.assign(pod.spec, { resources: both({ cpu: '20', memory: '20Gi' }) }),
      422,
      /pod-level resources.* Remove spec\.resources/,
    ],
    [
      'W14: a physnet without a decision',
      (pod) => Object.assign(pod.spec.containers[0]!.resources.limits, { [PHYSNET]: '1' }),
      403,
      /container compute asks for physnet\.plumbline\.dev\/physnet1: 1, which only Plumbline may set/,
    ],
    [
      'W14: a slot in another container',
      (pod) =>
        pod.spec.containers.push(sidecar(both({ cpu: '1m', memory: '1M', 'plumbline.dev/placed': '1' })) as never),
      403,
      /container mesh asks for plumbline\.dev\/placed/,
    ],
  ];
  for (const [name, change, code, says] of cases) {
    it(`for ${name}, in mutation and in validation`, async () => {
      const pod = podVector();
      change(pod);
      for (const review of [mutationOf(), validationOf()]) {
        const denial = denialOf(await review(requestFor(pod)));
        assert.equal(denial.code, code);
        assert.match(denial.message, says);
      }
    });
  }

  it('does not apply to launchers without a promise, which get only a decision without padding', async () => {
    const pod = podVector();
    pod.metadata.annotations = {};
    pod.spec.containers.push(sidecar({}) as never);
    const seen = { op: 'add', path: '/metadata/annotations/plumbline.dev~1decision', value: '{"padding":0}' };
    assert.deepEqual(patchOf(await mutationOf()(requestFor(pod))), [seen]);
  });

  it('recognises its own resources, and treats more than one of them as foreign', async () => {
    const view = viewOf([kindOf(2, { physnets: { physnet1: '0' } })], { findNad: () => localnet('physnet1') });
    const pod = podVector();
    const once = patched(pod, await mutationOf({ view })(requestFor(pod)));
    assert.deepEqual(patchOf(await mutationOf({ view })(requestFor(once))), []);
    // Its only node has stopped reporting in between.
    const later = viewOf([kindOf(2)], { findNad: () => localnet('physnet1') });
    const paths = patchOf(await mutationOf({ view: later })(requestFor(once))).map(({ path }) => path);
    const annotations = ['decision', 'placement'].map((name) => `/metadata/annotations/plumbline.dev~1${name}`);
    assert.deepEqual(paths.sort(), annotations);
    once.spec.containers[0]!.resources.limits[PHYSNET] = '2';
    assert.equal(denialOf(await mutationOf({ view })(requestFor(once))).code, 403);
  });

  const claims: { name: string; lookup: VmiLookup }[] = [
    { name: 'does not exist', lookup: { kind: 'absent' } },
    { name: 'was created again', lookup: { kind: 'replaced', uid: 'x' } },
  ];
  for (const { name, lookup } of claims) {
    it(`W14: refuses a claim of a launcher whose VMI ${name}`, async () => {
      const lookUpVmi = async () => lookup;
      const pod = podVector();
      pod.metadata.annotations[DECISION_ANNOTATION] = '{}';
      assert.equal(denialOf(await mutationOf({ lookUpVmi })(requestFor(pod))).code, 403);
    });
  }
});

describe('the validation of a pod after all other webhooks', () => {
  it('admits a pod that matches the decision, and names a change that another webhook reverted', async () => {
    const pod = podVector();
    const once = patched(pod, await mutationOf()(requestFor(pod)));
    assert.deepEqual(await validationOf()(requestFor(once)), { allowed: true });
    setCpu(once, '9');
    const { code, message } = denialOf(await validationOf()(requestFor(once)));
    assert.equal(code, 422);
    assert.match(message, /another webhook .*\/spec\/containers\/0\/resources\/requests\/cpu should be "10"/);
  });

  const resizes: {
    name: string;
    policy?: AlignmentPolicy;
    gate?: boolean;
    change: (pod: TestPod) => void;
    allowed: boolean;
  }[] = [
    { name: 'its CPUs', change: (pod) => setCpu(pod, '12'), allowed: false },
    { name: 'nothing', change: () => undefined, allowed: true },
    {
      name: 'its memory',
      change: (pod) => Object.assign(pod.spec.containers[0]!.resources, both({ cpu: '10', memory: '9Gi' })),
      allowed: false,
    },
    { name: 'its CPUs with the gate off', gate: false, change: (pod) => setCpu(pod, '12'), allowed: true },
  ];
  for (const { name, change, allowed, gate = true, policy = 'annotated' } of resizes) {
    it(`W11: ${allowed ? 'admits' : 'refuses'} a resize of ${name}`, async () => {
      const before = podVector();
      setCpu(before, '10');
      const after = structuredClone(before);
      change(after);
      const request = requestFor(after, { operation: 'UPDATE', subResource: 'resize', oldObject: before });
      assert.equal((await validationOf({ gate, policy })(request)).allowed, allowed);
    });
  }

  it('refuses a resize of an object that is not a Pod, and says which object', async () => {
    const resize = { operation: 'UPDATE', subResource: 'resize' } as const;
    const [pod, broken] = [podVector(), { spec: 'nonsense' }];
    const after = denialOf(await validationOf()(requestFor(broken, { ...resize, oldObject: pod })));
    const before = denialOf(await validationOf()(requestFor(pod, { ...resize, oldObject: broken })));
    assert.deepEqual([after.code, before.code], [400, 400]);
    assert.match(after.message, /^plumbline: the new object is not a Pod: /);
    assert.match(before.message, /^plumbline: the old object is not a Pod: /);
  });

  it('admits a resize of a launcher that did not opt in, unless all launchers are aligned', async () => {
    const before = podVector();
    before.metadata.annotations = {};
    const after = structuredClone(before);
    setCpu(after, '12');
    const request = requestFor(after, { operation: 'UPDATE', subResource: 'resize', oldObject: before });
    assert.equal((await validationOf()(request)).allowed, true);
    assert.equal((await validationOf({ policy: 'always' })(request)).allowed, false);
  });
});

describe('annotations that Plumbline does not read', () => {
  it('may be 40,000 and have any text', async () => {
    const pod = podVector();
    const vmi = vmiVector();
    const more = Object.fromEntries(Array.from({ length: 40_000 }, (_, i) => [`key-${i}\ud800`, '\ud800']));
    Object.assign(pod.metadata.annotations, more);
    const lookUpVmi = async () => ({ kind: 'found', vmi }) as const;
    assert.equal((await mutationOf({ lookUpVmi })(requestFor(pod))).allowed, true);
  });
});

describe('ordinary pods that ask for whole cores', () => {
  const podOf = (value: string, ...containers: object[]) =>
    ({ metadata: { annotations: { [ALIGN_ANNOTATION]: value } }, spec: { containers } }) as unknown as TestPod;
  const one = (name: string, cpu: string) => ({ name, resources: both({ cpu, memory: '1Gi' }) });

  it('are rounded container by container, including init containers, and get the resource for the extender', async () => {
    const pod = podOf(ALIGN_WHOLE_CORES, one('a', '3'), one('b', '500m'), one('c', '4'));
    pod.spec.initContainers = [one('first', '1')];
    const review = mutationOf();
    const after = patched(pod, await review(requestFor(pod)));
    const cpus = [...(after.spec.initContainers as TestPod['spec']['containers']), ...after.spec.containers].map(
      ({ resources }) => resources.requests['cpu'],
    );
    assert.deepEqual(cpus, ['2', '4', '500m', '4']);
    assert.equal(after.spec.containers[0]!.resources.limits['plumbline.dev/placed'], '1');
    assert.deepEqual(patchOf(await review(requestFor(after))), []);
    assert.deepEqual(await validationOf()(requestFor(after)), { allowed: true });
  });

  it('are refused for a container that costs them the Guaranteed class', async () => {
    const pod = podOf(ALIGN_WHOLE_CORES, one('a', '3'), sidecar({}));
    assert.match(
      denialOf(await mutationOf()(requestFor(pod))).message,
      /container mesh prevents exclusive CPUs for the pod/,
    );
  });

  for (const [name, pod, says] of [
    ['another value', podOf('yes', one('a', '3')), /unknown value "yes"/],
    ['a fractional number of CPUs', podOf(ALIGN_WHOLE_CORES, one('a', '1500m')), /has no effect/],
  ] as const) {
    it(`get a warning about ${name} and stay unchanged`, async () => {
      const answer = await mutationOf()(requestFor(pod));
      assert.deepEqual(patchOf(answer), []);
      assert.match(answer.warnings?.join() ?? '', says);
    });
  }

  it('get the devices of their own networks', async () => {
    const view = viewOf([kindOf(2, { physnets: { physnet1: '0' } })], { findNad: () => localnet('physnet1') });
    const pod = podOf(ALIGN_WHOLE_CORES, one('a', '3'));
    pod.metadata.annotations['k8s.v1.cni.cncf.io/networks'] = 'data';
    const after = patched(pod, await mutationOf({ view })(requestFor(pod)));
    assert.equal(after.spec.containers[0]!.resources.limits[PHYSNET], '1');
  });
});
