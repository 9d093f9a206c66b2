import assert from 'node:assert/strict';
import { ALIGN_ANNOTATION, ALIGN_WHOLE_CORES } from '../../../model/names.ts';
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
      'W14: a physnet without a decision',
      (pod) => Object.assign(pod.spec.containers[0]!.resources.limits, { [PHYSNET]: '1' }),
      403,
      /container compute asks for physnet\.plumbline\.dev\/physnet1: 1, which only Plumbline may set/,
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

  const resizes: readonly (readonly [name: string, change: (pod: TestPod) => void, isAllowed: boolean])[] = [
    ['its CPUs', (pod) => setCpu(pod, '12'), false],
    ['nothing', () => undefined, true],
    [
      'its memory',
      (pod) => Object.assign(pod.spec.containers[0]!.resources, both({ cpu: '10', memory: '9Gi' })),
      false,
    ],
  ];
  for (const [name, change, isAllowed] of resizes) {
    it(`W11: ${isAllowed ? 'admits' : 'refuses'} a resize of ${name}`, async () => {
      const before = podVector();
      setCpu(before, '10');
      const after = structuredClone(before);
      change(after);
      const request = requestFor(after, { operation: 'UPDATE', subResource: 'resize', oldObject: before });
      assert.equal((await validationOf()(request)).allowed, isAllowed);
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
});
