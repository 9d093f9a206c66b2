import assert from 'node:assert/strict';
import { placementNeedsOf } from '../../../model/placement/pod-needs.ts';
import { bypassesOf, schedulerOf } from '../../../model/vm-state/bypasses.ts';
import type { StatePod, VmFacts } from '../../../model/vm-state/facts.ts';
import { ANNOTATED, DECIDED, launcher, shown, VM } from './fixture.ts';

const MASKED = { 'plumbline.dev/cpu-mask': '1:2' };
const NETWORKS = { 'k8s.v1.cni.cncf.io/networks': 'fast' };
const AFFINITY = { 'plumbline.dev/numa-affinity': '{}' };
const AGAIN =
  'start-again: start the VM again once the webhook works: plumbline doctor webhook; virtctl restart fw -n tenants';
const UNSEEN = 'the webhook did not see this launcher: ';

type Parts = Parameters<typeof launcher>[0] & { readonly annotations?: Readonly<Record<string, string>> };

function pod({ annotations, metadata, ...parts }: Parts = {}): StatePod {
  return launcher({ ...parts, metadata: { ...metadata, ...(annotations && { annotations }) } });
}
const bypasses = (one: StatePod, facts: Partial<VmFacts> = {}) =>
  bypassesOf({ ...VM, ...facts }, one, placementNeedsOf(one)).map(shown);

/** Requests and limits in hundredths of a CPU: none of its own. */
const shared = { containers: [{ name: 'compute', resources: { requests: { cpu: '200m' } } }] };

const amounts = { cpu: '3', memory: '1Gi' };
const odd = (name: string) => ({ name, resources: { requests: amounts, limits: amounts } });

describe('what shows that the webhook never saw a launcher', () => {
  const missed = (what: string) => [{ reason: 'WebhookMissed', text: UNSEEN + what, remedies: [AGAIN] }];
  const undecided = (what: string) => [{ reason: 'NotDecided', text: UNSEEN + what, remedies: [AGAIN] }];

  for (const [title, one, expected] of [
    ['nothing does: it has its decision', pod(), []],
    ['nothing does: it asks for nothing', pod({ annotations: {} }), []],
    [
      'it asks for whole cores, and has no decision',
      pod({ annotations: ANNOTATED }),
      missed('it has no decision annotation'),
    ],
    [
      'it asks for whole cores, and has neither',
      pod({ annotations: ANNOTATED, cpus: '3' }),
      missed('compute asks for 3 CPUs, which are not whole cores'),
    ],
    [
      'the first container that is odd is named',
      pod({ annotations: ANNOTATED, spec: { containers: ['compute', 'log'].map(odd) } }),
      missed('compute asks for 3 CPUs, which are not whole cores'),
    ],
    [
      'it was decided, and is odd nevertheless',
      pod({ annotations: { ...ANNOTATED, ...DECIDED }, cpus: '3' }),
      missed('compute asks for 3 CPUs, which are not whole cores'),
    ],
    [
      'it was decided to leave it odd',
      pod({ annotations: { ...ANNOTATED, 'plumbline.dev/decision': '{"padding":0}' }, cpus: '3' }),
      [],
    ],
    [
      'an odd init container needs no whole cores',
      pod({
        annotations: { ...ANNOTATED, ...DECIDED },
        spec: {
          initContainers: [odd('init')],
        },
      }),
      [],
    ],
    [
      'networks hold it to nothing',
      pod({ annotations: NETWORKS }),
      undecided('it has no decision annotation, so nothing keeps it near its networks'),
    ],
    [
      'an affinity holds it to nothing',
      pod({ annotations: AFFINITY }),
      undecided('it has no decision annotation, so nothing keeps it near its networks'),
    ],
    ['networks, with a decision', pod({ annotations: { ...NETWORKS, ...DECIDED } }), []],
    [
      'networks hold it to something',
      pod({ annotations: NETWORKS, resources: { 'physnet.plumbline.dev/east': '1' } }),
      [],
    ],
    [
      'a mask that is not checked',
      pod({ annotations: MASKED, spec: shared }),
      undecided('it has no decision annotation, so its CPU mask is not checked'),
    ],
    [
      'a mask that waits for a node',
      pod({ annotations: MASKED, spec: shared, status: { phase: 'Pending' } }),
      undecided('it has no decision annotation, so its CPU mask is not checked'),
    ],
    ['a mask, with a decision', pod({ annotations: { ...MASKED, ...DECIDED }, spec: shared }), []],
    ['a mask of a pod that runs', pod({ annotations: MASKED, spec: shared, status: { phase: 'Running' } }), []],
    [
      'a mask of a pod with networks and without CPUs of its own',
      pod({ annotations: { ...MASKED, ...NETWORKS }, spec: shared }),
      undecided('it has no decision annotation, so its CPU mask is not checked'),
    ],
    ['of another pod nothing is reported', pod({ annotations: ANNOTATED, cpus: '3', metadata: { labels: {} } }), []],
  ] as const) {
    it(title, () => assert.deepEqual(bypasses(one), expected));
  }

  it('of what asks for whole cores without CPUs of its own, nothing but that it shares them', () =>
    assert.deepEqual(bypasses(pod({ annotations: ANNOTATED, spec: shared })), [
      {
        reason: 'SharedCpus',
        text: 'this VM has no dedicated CPUs, so Plumbline neither pads nor places it',
        remedies: [
          'dedicate-cpus: set dedicatedCpuPlacement, isolateEmulatorThread and equal requests and limits if it needs dedicated CPUs',
        ],
      },
    ]));

  it('of a pod that is no launcher, not even that', () =>
    assert.deepEqual(bypasses(pod({ annotations: {}, spec: shared, metadata: { labels: {} } })), []));
});

describe('what shows that the extender is not asked about a pod', () => {
  const leads = { scheduler: { leads: true } };
  const named = (schedulerName: string | undefined, parts: Parts = {}) =>
    pod({ ...parts, spec: { schedulerName, ...parts.spec } });
  const says = (name: string) => `its scheduler is ${name}, which does not call the extender unless you configured it`;
  const RESTART =
    'start-again: remove schedulerName from the VM’s template and start the VM again: virtctl restart fw -n tenants';

  it('nothing does: it has the scheduler of Plumbline', () => assert.deepEqual(bypasses(pod(), leads), []));
  it('nothing does once it is bound', () =>
    assert.deepEqual(bypasses(named('other', { spec: { nodeName: 'n1' } }), leads), []));

  for (const [name, shownAs, reason] of [
    ['other', 'other', 'OtherScheduler'],
    ['default-scheduler', 'default-scheduler', 'ExtenderNotAsked'],
    [undefined, 'default-scheduler', 'ExtenderNotAsked'],
    ['', 'default-scheduler', 'ExtenderNotAsked'],
  ] as const) {
    it(`its scheduler is ${JSON.stringify(name)}, where that of Plumbline leads`, () => {
      assert.equal(schedulerOf(named(name)), shownAs);
      assert.deepEqual(bypasses(named(name), leads), [{ reason, text: says(shownAs), remedies: [RESTART] }]);
    });
  }

  it('another pod is created again', () =>
    assert.deepEqual(bypasses(named('other', { metadata: { labels: {} } }), leads), [
      {
        reason: 'OtherScheduler',
        text: says('other'),
        remedies: ['name-scheduler: create the pod again with schedulerName: plumbline-scheduler'],
      },
    ]));

  it('a pod with a mask is asked about as well, one without CPUs of its own is not', () => {
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

  describe('where no scheduler of Plumbline leads', () => {
    const amounts = { cpu: '4', memory: '1Gi' };
    const plain = { name: 'compute', resources: { requests: amounts, limits: amounts } };
    const asking = [
      {
        reason: 'ExtenderNotAsked',
        text: 'kube-scheduler does not call the extender for this pod: it requests none of the managed resources',
        remedies: ['opt-in: add the request plumbline.dev/placed: 1'],
      },
    ];
    const kvm = { 'devices.kubevirt.io/kvm': '1' };
    for (const [title, spec, expected] of [
      [
        'it requests a managed resource',
        { containers: [{ ...plain, resources: { requests: { ...amounts, ...kvm }, limits: amounts } }] },
        [],
      ],
      [
        'it has a limit of one',
        { containers: [{ ...plain, resources: { requests: amounts, limits: { ...amounts, ...kvm } } }] },
        [],
      ],
      [
        'a container beyond the first does',
        { containers: [plain, { name: 'b', resources: { limits: { ...amounts, 'plumbline.dev/placed': '1' } } }] },
        [],
      ],
      [
        'an init container does',
        {
          containers: [plain],
          initContainers: [{ name: 'i', resources: { requests: { ...amounts, ...kvm }, limits: amounts } }],
        },
        [],
      ],
      ['none does', { containers: [plain, { ...plain, name: 'b' }], initContainers: null }, asking],
    ] as const) {
      for (const scheduler of [{}, { leads: false }, undefined]) {
        it(`${title} (${JSON.stringify(scheduler)})`, () => {
          const one = named('default-scheduler', { spec: spec as Partial<StatePod['spec']> });
          assert.deepEqual(bypasses(one, { scheduler }), expected);
        });
      }
    }
  });
});
