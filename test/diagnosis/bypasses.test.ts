import assert from 'node:assert/strict';
import { bypassesOf, schedulerOf } from '../../diagnosis/bypasses.ts';
import type { VmFacts } from '../../diagnosis/facts.ts';
import { placementNeedsOf } from '../../model/placement/preferences.ts';
import type { PodShape } from '../../model/shapes.ts';
import { ANNOTATED, DECIDED, launcher, shown, VM } from './fixture.ts';

const MASKED = { 'plumbline.dev/cpu-mask': '1:2' };
const NETWORKS = { 'k8s.v1.cni.cncf.io/networks': 'fast' };
const AFFINITY = { 'plumbline.dev/numa-affinity': '{}' };
const AGAIN = 'start-again';
const UNSEEN = 'the webhook did not see this launcher: ';

type Parts = Parameters<typeof launcher>[0] & { readonly annotations?: Readonly<Record<string, string>> };

function pod({ annotations, metadata, ...parts }: Parts = {}): PodShape {
  return launcher({ ...parts, metadata: { ...metadata, ...(annotations && { annotations }) } });
}
const bypasses = (one: PodShape, facts: Partial<VmFacts> = {}) =>
  bypassesOf({ ...VM, ...facts }, one, placementNeedsOf(one)).map(shown);

/** Requests and limits in hundredths of a CPU: no dedicated CPUs. */
const shared = { containers: [{ name: 'compute', resources: { requests: { cpu: '200m' } } }] };

const amounts = { cpu: '3', memory: '1Gi' };
const odd = (name: string) => ({ name, resources: { requests: amounts, limits: amounts } });

describe('evidence that the webhook never saw a launcher', () => {
  const missed = (what: string) => [{ reason: 'WebhookMissed', text: UNSEEN + what, remedies: [AGAIN] }];
  const undecided = (what: string) => [{ reason: 'NotDecided', text: UNSEEN + what, remedies: [AGAIN] }];

  for (const [title, one, expected] of [
    ['is absent if it has its decision', pod(), []],
    ['is absent if it requests nothing', pod({ annotations: {} }), []],
    [
      'is a request for whole cores without a decision',
      pod({ annotations: ANNOTATED }),
      missed('it has no decision annotation'),
    ],
    [
      'is a request for whole cores without a decision or whole cores',
      pod({ annotations: ANNOTATED, cpus: '3' }),
      missed('compute asks for 3 CPUs, which are not whole cores'),
    ],
    [
      'names the first container with an odd number',
      pod({ annotations: ANNOTATED, spec: { containers: ['compute', 'log'].map(odd) } }),
      missed('compute asks for 3 CPUs, which are not whole cores'),
    ],
    [
      'is another one with a decision and an odd number',
      pod({ annotations: { ...ANNOTATED, ...DECIDED }, cpus: '3' }),
      missed('compute asks for 3 CPUs, which are not whole cores'),
    ],
    [
      'is absent if the decision was to leave it odd',
      pod({ annotations: { ...ANNOTATED, 'plumbline.dev/decision': '{"padding":0}' }, cpus: '3' }),
      [],
    ],
    [
      'is not an odd init container',
      pod({
        annotations: { ...ANNOTATED, ...DECIDED },
        spec: {
          initContainers: [odd('init')],
        },
      }),
      [],
    ],
    [
      'is absent for networks that have no effect',
      pod({ annotations: NETWORKS }),
      undecided('it has no decision annotation, so nothing keeps it near its networks'),
    ],
    [
      'is absent for an affinity that has no effect',
      pod({ annotations: AFFINITY }),
      undecided('it has no decision annotation, so nothing keeps it near its networks'),
    ],
    ['is absent for networks with a decision', pod({ annotations: { ...NETWORKS, ...DECIDED } }), []],
    [
      'is networks that have an effect',
      pod({ annotations: NETWORKS, resources: { 'physnet.plumbline.dev/east': '1' } }),
      [],
    ],
    [
      'is a mask that was not checked',
      pod({ annotations: MASKED, spec: shared }),
      undecided('it has no decision annotation, so its CPU mask is not checked'),
    ],
    [
      'is a mask that waits for a node',
      pod({ annotations: MASKED, spec: shared, status: { phase: 'Pending' } }),
      undecided('it has no decision annotation, so its CPU mask is not checked'),
    ],
    ['is absent for a mask with a decision', pod({ annotations: { ...MASKED, ...DECIDED }, spec: shared }), []],
    [
      'is absent for a mask of a running pod',
      pod({ annotations: MASKED, spec: shared, status: { phase: 'Running' } }),
      [],
    ],
    [
      'is a mask of a pod with networks and without CPUs of its own',
      pod({ annotations: { ...MASKED, ...NETWORKS }, spec: shared }),
      undecided('it has no decision annotation, so its CPU mask is not checked'),
    ],
    ['is not reported for another pod', pod({ annotations: ANNOTATED, cpus: '3', metadata: { labels: {} } }), []],
  ] as const) {
    it(title, () => assert.deepEqual(bypasses(one), expected));
  }

  it('is only the shared CPUs for a request for whole cores without dedicated CPUs', () =>
    assert.deepEqual(bypasses(pod({ annotations: ANNOTATED, spec: shared })), [
      {
        reason: 'SharedCpus',
        text: 'this VM has no dedicated CPUs, so Plumbline neither pads nor places it',
        remedies: ['dedicate-cpus'],
      },
    ]));

  it('is absent for a pod that is not a launcher', () =>
    assert.deepEqual(bypasses(pod({ annotations: {}, spec: shared, metadata: { labels: {} } })), []));
});

describe('evidence that the extender is not asked about a pod', () => {
  const leads = { scheduler: { leads: true } };
  const named = (schedulerName: string | undefined, parts: Parts = {}) =>
    pod({ ...parts, spec: { schedulerName, ...parts.spec } });
  const says = (name: string) => `its scheduler is ${name}, which does not call the extender`;
  const RESTART = 'start-again';

  it('is absent if it has Plumbline’s scheduler', () => assert.deepEqual(bypasses(pod(), leads), []));
  it('is absent after it is bound', () =>
    assert.deepEqual(bypasses(named('other', { spec: { nodeName: 'n1' } }), leads), []));

  for (const [name, shownAs, reason] of [
    ['other', 'other', 'OtherScheduler'],
    ['default-scheduler', 'default-scheduler', 'ExtenderNotAsked'],
    [undefined, 'default-scheduler', 'ExtenderNotAsked'],
    ['', 'default-scheduler', 'ExtenderNotAsked'],
  ] as const) {
    it(`is its scheduler ${JSON.stringify(name)} while Plumbline’s leads`, () => {
      assert.equal(schedulerOf(named(name)), shownAs);
      assert.deepEqual(bypasses(named(name), leads), [{ reason, text: says(shownAs), remedies: [RESTART] }]);
    });
  }

  it('advises to create a pod again if it is not a VM', () =>
    assert.deepEqual(bypasses(named('other', { metadata: { labels: {} } }), leads), [
      {
        reason: 'OtherScheduler',
        text: says('other'),
        remedies: ['name-scheduler'],
      },
    ]));

  it('exists for a pod with a mask, but not for one without CPUs of its own', () => {
    const masked = named('other', { annotations: { ...MASKED, ...DECIDED }, spec: shared });
    assert.deepEqual(
      bypasses(masked, leads).map(({ reason }) => reason),
      ['OtherScheduler'],
    );
    assert.deepEqual(
      bypasses(named('other', { annotations: {}, spec: shared }), leads).map(({ reason }) => reason),
      ['SharedCpus'],
    );
  });

  for (const scheduler of [{}, { leads: false }, undefined]) {
    it(`is absent without a leading scheduler of Plumbline (${JSON.stringify(scheduler)})`, () =>
      assert.deepEqual(bypasses(named('default-scheduler'), { scheduler }), []));
  }
});
