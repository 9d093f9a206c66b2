import assert from 'node:assert/strict';
import * as z from 'zod';
import { cpusWhileRunning, forbiddenUse, reservedRequest } from '../../../model/admission/decide.ts';
import {
  decidedOf,
  decisionText,
  inWords,
  paddingOf,
  placementText,
} from '../../../model/admission/decision-annotation.ts';
import type { Settings } from '../../../model/admission/facts.ts';
import { cpusOfLauncher } from '../../../model/admission/launcher-cpus.ts';
import { doubtfulNetworks, podNetworks, reachFindings } from '../../../model/admission/networks.ts';
import { cpusOfOrdinary } from '../../../model/admission/ordinary-cpus.ts';
import { resizeRefusal } from '../../../model/admission/resize.ts';
import { schedulerWarnings, schedulingOf } from '../../../model/admission/scheduling.ts';
import { CpuSet } from '../../../model/cpu-set.ts';
import { issuesText } from '../../../model/errors.ts';
import { ASKING, hasAsked } from '../../../model/launcher/annotation.ts';
import { isAt, podResourcesOf } from '../../../model/launcher/containers.ts';
import { DECISION_ANNOTATION, NUMA_AFFINITY_ANNOTATION, PLACEMENT_ANNOTATION } from '../../../model/names.ts';
import { NETWORKS_ANNOTATION, refText } from '../../../model/networks/attachments.ts';
import { nadFacts } from '../../../model/networks/nad.ts';
import type { PodShape } from '../../../model/shapes.ts';
import { refused } from '../../../webhook/review/admission-review.ts';
import { ANNOTATED, CPU, cluster, container, kind, launcher, ordinary } from './facts.ts';

const SETTINGS: Settings = { gate: true, policy: 'annotated', oversized: 'refuse' };
const EAST = 'physnet.plumbline.dev/east';
const PLACED = 'plumbline.dev/placed';

describe('a refusing answer', () => {
  it('has warnings only if there are any', () => {
    assert.deepEqual(refused(400, 'no'), { allowed: false, code: 400, message: 'plumbline: no' });
    assert.deepEqual(refused(422, 'no', ['w']), {
      allowed: false,
      code: 422,
      message: 'plumbline: no',
      warnings: ['w'],
    });
    assert.equal(refused(400, 'x'.repeat(2000)).message.length, 1024);
  });

  it('names the first three invalid places, without texts of the writer that a terminal may interpret', () => {
    const text = (schema: z.ZodType, value: unknown) => {
      const { error } = schema.safeParse(value);
      assert.ok(error);
      return issuesText(error);
    };
    const number = 'expected number, received string';
    const four = z.object({ a: z.object({ b: z.number() }), c: z.number(), d: z.number(), e: z.number() });
    assert.equal(text(z.number(), 'x'), `the whole: ${number}`);
    assert.equal(
      text(four, { a: { b: '' }, c: '', d: '', e: '' }),
      ['a.b', 'c', 'd'].map((path) => `${path}: ${number}`).join('; '),
    );
    const keys = { ['k'.repeat(81)]: '', '\u001b[2J': '', '\ud800': '' };
    const expected = Array.from({ length: 3 }, () => `*: ${number}`).join('; ');
    assert.equal(text(z.record(z.string(), z.number()), keys), expected);
  });
});

describe('a launcher requests something', () => {
  it('with any one of the annotations', () => {
    assert.equal(ASKING.length, 5);
    for (const name of ASKING) assert.equal(hasAsked({ annotations: { [name]: '' } }), true, name);
    assert.equal(hasAsked({ annotations: { other: '' } }), false);
    assert.equal(hasAsked({}), false);
  });
});

describe('the CPUs of a launcher', () => {
  const vmi = { metadata: { annotations: ANNOTATED }, spec: { domain: { cpu: CPU } } };
  const of = (cpu: string, settings: Partial<Settings> = {}, its = vmi) => {
    const { pod, compute } = launcher({ containers: [container('side', '2'), container('compute', cpu)] });
    const owner = { vmi: its, resources: podResourcesOf(pod), cluster: cluster() };
    return cpusOfLauncher({ pod, compute, settings: { ...SETTINGS, ...settings } }, owner);
  };
  const base = {
    exclusive: true,
    threadsPerCore: 2,
    bearer: { list: 'containers', index: 1 },
    own: [],
    unpadded: undefined,
    findings: [],
  };

  it('are padded to whole cores', () =>
    assert.deepEqual(of('9'), {
      ...base,
      answered: true,
      amounts: [
        { list: 'containers', cpus: 2 },
        { list: 'containers', cpus: 10 },
      ],
      containers: [{ list: 'containers', index: 1, cpus: 10 }],
      stated: { compute: 10 },
      padding: 1,
    }));

  it('are unchanged if an earlier pass made them whole cores', () => {
    const found = of('10');
    assert.deepEqual(
      [found.answered, found.containers, found.stated, found.padding, found.unpadded],
      [true, [{ list: 'containers', index: 1, cpus: undefined }], { compute: 10 }, 1, undefined],
    );
  });

  it('are unchanged, with a reason if whole cores were requested', () => {
    const found = of('9', { gate: false });
    assert.deepEqual(
      [found.answered, found.containers, found.stated, found.padding, found.unpadded],
      [
        false,
        [{ list: 'containers', index: 1, cpus: undefined }],
        {},
        0,
        'the webhook runs with --full-pcpus-only false',
      ],
    );
    assert.deepEqual(
      found.amounts.map(({ cpus }) => cpus),
      [2, 9],
    );
    const { pod, compute } = launcher({ annotations: {} });
    const owner = { vmi: { ...vmi, metadata: {} }, resources: podResourcesOf(pod), cluster: cluster() };
    const notAsked = cpusOfLauncher({ pod, compute, settings: SETTINGS }, owner);
    assert.deepEqual([notAsked.answered, notAsked.unpadded], [false, undefined]);
  });

  it('are none without a whole number of CPUs', () => {
    const { pod, compute } = launcher({ containers: [{ name: 'compute' }] });
    const owner = { vmi, resources: podResourcesOf(pod), cluster: cluster() };
    const found = cpusOfLauncher({ pod, compute, settings: SETTINGS }, owner);
    assert.deepEqual([found.exclusive, found.amounts, found.padding], [false, [], -9]);
    assert.equal(of('9500m').padding, -9);
    assert.equal(
      found.unpadded,
      'the container compute does not have the same whole number of CPUs as request and limit',
    );
  });
});

describe('the CPUs of an ordinary pod', () => {
  const setup = container('setup', '3');

  it('are rounded up for each container', () =>
    assert.deepEqual(cpusOfOrdinary(ordinary({ containers: [container('a', '2'), container('b', '3')] })), {
      exclusive: true,
      answered: true,
      threadsPerCore: 2,
      amounts: [
        { list: 'containers', cpus: 2 },
        { list: 'containers', cpus: 4 },
      ],
      containers: [
        { list: 'containers', index: 0, cpus: undefined },
        { list: 'containers', index: 1, cpus: 4 },
      ],
      bearer: { list: 'containers', index: 0, name: 'a', cpus: 2, hasEqualLimit: true, to: 2 },
      own: [PLACED],
      stated: { a: 2, b: 4 },
      padding: 0,
      findings: [],
    }));

  it('are none without a whole number of CPUs', () => {
    const found = cpusOfOrdinary(ordinary({ containers: [container('a', '500m')] }));
    assert.deepEqual(
      [found.exclusive, found.answered, found.amounts, found.containers, found.bearer, found.stated],
      [false, false, [], [], undefined, {}],
    );
  });

  it('are lost if a container is not Guaranteed', () => {
    const found = cpusOfOrdinary(ordinary({ containers: [container('a', '3'), container('b', '100m', '200m')] }));
    assert.deepEqual(
      [found.exclusive, found.answered, found.containers, found.stated, found.findings.map(({ code }) => code)],
      [false, false, [], {}, ['not-guaranteed']],
    );
  });

  it('give the devices to an init container if only that one has any', () => {
    const found = cpusOfOrdinary(ordinary({ initContainers: [setup], containers: [container('a', '500m')] }));
    assert.deepEqual(found.bearer, {
      list: 'initContainers',
      index: 0,
      name: 'setup',
      cpus: 3,
      hasEqualLimit: true,
      to: 4,
    });
    assert.equal(cpusWhileRunning(found), 0);
  });

  it('that last are those of ordinary containers', () =>
    assert.equal(
      cpusWhileRunning(cpusOfOrdinary(ordinary({ initContainers: [setup], containers: [container('a', '5')] }))),
      6,
    ));

  it('places are equal if list and index are', () => {
    const place = { list: 'containers', index: 1 } as const;
    assert.deepEqual(
      [isAt(place, place), isAt(place, { ...place, index: 0 }), isAt(place, { ...place, list: 'initContainers' })],
      [true, false, false],
    );
    assert.equal(isAt(undefined, place), false);
  });
});

describe('a decision annotation', () => {
  const read = (text: string) => decidedOf({ annotations: { [DECISION_ANNOTATION]: text } });
  it('is read up to its limits', () => {
    assert.deepEqual(read('{"padding":4096}'), { kind: 'padded', padding: 4096, cpus: false });
    assert.equal(read('{"padding":4097}')?.kind, 'nothing-to-pad');
    const long = (length: number) => '{"padding":1}'.padEnd(length, ' ');
    assert.equal(read(long(100_000))?.kind, 'padded');
    assert.equal(read(long(100_001)), undefined);
  });
  it('means no padding if it is absent', () => {
    assert.equal(paddingOf({}), 0);
    assert.equal(paddingOf({ annotations: { [DECISION_ANNOTATION]: '{"padding":3}' } }), 3);
  });
  it('names nodes, networks and resources if there are any', () => {
    const text = {
      cpus: {},
      threadsPerCore: 2,
      padding: 1,
      networks: [
        {
          kind: 'tunnel',
          name: 'net1',
          network: 'ns/a',
          affinity: 'required',
          role: 'secondary',
        } as never,
      ],
      resources: ['r'],
      nodes: [
        { key: 'k', operator: 'In', values: ['a', 'b'] },
        { key: 'e', operator: 'Exists' },
      ],
      notes: [],
    } as const;
    assert.deepEqual(JSON.parse(decisionText(text)), {
      padding: 0,
      networks: [{ interface: 'net1', network: 'ns/a', on: 'tunnel' }],
      resources: ['r'],
      nodes: ['k In a,b', 'e Exists '],
    });
    assert.equal(inWords({ key: 'k', operator: 'In', values: null } as never), 'k In ');
  });
  it('has a placement annotation next to it only if a network or threads matter', () => {
    const none = { preferred: [], spansCells: false, interfaces: {}, guestThreads: 1 };
    assert.equal(placementText(none, []), undefined);
    assert.equal(typeof placementText(none, [EAST]), 'string');
    assert.equal(placementText({ ...none, guestThreads: 2 }, []), '{"guestThreads":2}');
    assert.equal(typeof placementText({ ...none, preferred: [EAST] }, []), 'string');
  });
});

describe('the networks of a pod under review', () => {
  const facts = cluster().networks;
  const owner = (networks: string, affinity = '') => ({
    namespace: 'ns',
    exclusive: true,
    pod: {
      metadata: { annotations: { [NETWORKS_ANNOTATION]: networks, [NUMA_AFFINITY_ANNOTATION]: affinity } },
      spec: { containers: [] },
    },
  });
  const nad = (physnet: string, topology = 'localnet') =>
    nadFacts({
      metadata: {},
      spec: {
        config: JSON.stringify({
          type: 'ovn-k8s-cni-overlay',
          name: 'n',
          netAttachDefName: 'ns/n',
          topology,
          physicalNetworkName: physnet,
        }),
      },
    });

  it('count only for a pod with CPUs of its own', () => {
    const asking = owner('east', '{"east":"preferred"}');
    const found = podNetworks(asking, facts);
    assert.deepEqual([found.preferred, found.interfaces, found.resources], [[EAST], { [EAST]: 'net1' }, []]);
    const shared = podNetworks({ ...asking, exclusive: false }, facts);
    assert.deepEqual([shared.preferred, shared.interfaces], [[], {}]);
    const required = podNetworks(owner('east'), facts);
    assert.deepEqual(
      [required.resources, required.mayHave, required.required.length, required.preferred, required.interfaces],
      [[EAST], [EAST], 1, [], { [EAST]: 'net1' }],
    );
  });

  it('keep the devices of a network that no node reports', () => {
    const found = podNetworks(owner('east'), { ...facts, reported: { physnets: new Set(), tunnel: false } });
    assert.deepEqual([found.resources, found.mayHave, found.required], [[], [EAST], []]);
  });

  it('report a missing primary network for a pod on the pod network', () => {
    const codes = (primary: typeof facts.primary) =>
      podNetworks(owner('east'), { ...facts, primary }).findings.map(({ code }) => code);
    assert.deepEqual(codes({ kind: 'missing' }), ['no-primary-network']);
    assert.deepEqual(codes({ kind: 'none' }), []);
    const hosted = { ...owner('east').pod, spec: { containers: [], hostNetwork: true } };
    const found = podNetworks({ ...owner('east'), pod: hosted }, { ...facts, primary: { kind: 'missing' } });
    assert.deepEqual([found.networks, found.findings], [[], []]);
  });

  it('use a primary network instead of the pod network', () => {
    const primary = { kind: 'primary', ref: { namespace: 'ns', name: 'blue' } } as const;
    const asked: string[] = [];
    const definitions = new Map([['ns/blue', nad('east')]]);
    const { networks } = podNetworks(owner(''), { ...facts, primary, definitions });
    assert.deepEqual(
      networks.map(({ role, network, kind: on }) => [role, network, on]),
      [['pod', 'ns/blue', 'physnet']],
    );
    doubtfulNetworks(owner(''), { ...facts, primary }, (ref) => {
      asked.push(refText(ref));
      return nad('east');
    });
    assert.deepEqual(asked, ['ns/blue']);
  });

  describe('need a new read of definitions for', () => {
    const doubtful = (networks: string, nads: Record<string, ReturnType<typeof nad>>, affinity = '') => {
      const asked: string[] = [];
      const found = doubtfulNetworks(owner(networks, affinity), facts, (ref) => {
        asked.push(refText(ref));
        return nads[refText(ref)];
      });
      return [found.map(refText), asked] as const;
    };
    for (const [title, networks, nads, expected, affinity] of [
      ['none', '', {}, []],
      ['no known network', 'east', { 'ns/east': nad('east') }, []],
      ['no overlay', 'over', { 'ns/over': nad('', 'layer2') }, []],
      ['a missing network', 'gone', {}, ['ns/gone']],
      ['a network on a physnet that no node reports', 'west', { 'ns/west': nad('west') }, ['ns/west']],
      ['a network that is listed twice, once', 'west,west', { 'ns/west': nad('west') }, ['ns/west']],
      [
        'only the doubtful networks of several',
        'east,west,gone,over',
        { 'ns/east': nad('east'), 'ns/west': nad('west'), 'ns/over': nad('', 'layer2') },
        ['ns/gone', 'ns/west'],
      ],
      ['no network that is only preferred', 'west', { 'ns/west': nad('west') }, [], '{"west":"preferred"}'],
    ] as const) {
      it(title, () => {
        const [found, asked] = doubtful(networks, nads, affinity);
        assert.deepEqual(found, expected);
        assert.deepEqual(asked, networks === '' ? [] : networks.split(',').map((name) => `ns/${name}`));
      });
    }
  });
});

describe('a guest that may be too large for its networks', () => {
  const network = podNetworks(
    {
      namespace: 'ns',
      exclusive: true,
      pod: { metadata: { annotations: { [NETWORKS_ANNOTATION]: 'east' } }, spec: { containers: [] } },
    },
    cluster().networks,
  ).required;
  const nowhere = { ...kind(2), networks: { physnets: new Map(), tunnel: undefined } };
  for (const [title, cpus, kinds, allReport, oversized, expected] of [
    ['fits', 6, [kind(2, 6)], true, 'refuse', []],
    ['is too large', 7, [kind(2, 6)], true, 'refuse', ['error larger-than-cells']],
    ['is too large, but some node has not reported', 7, [kind(2, 6)], false, 'refuse', ['warning larger-than-cells']],
    ['is too large, but allowed', 7, [kind(2, 6)], true, 'warn', ['warning larger-than-cells']],
  ] as const) {
    it(title, () =>
      assert.deepEqual(
        reachFindings(network, { cpus, spansCells: false }, { candidates: kinds, allReport }, oversized).map(
          ({ severity, code }) => `${severity} ${code}`,
        ),
        expected,
      ),
    );
  }
  it('causes a warning, whatever its size, if no node has all networks', () => {
    const west = { ...network[0]!, physnet: 'west' } as (typeof network)[number];
    const apart = {
      ...nowhere,
      networks: { physnets: new Map([...kind(2).networks.physnets, ['west', CpuSet.parse('1')]]), tunnel: undefined },
    };
    const guest = { cpus: 1, spansCells: false };
    const found = reachFindings([...network, west], guest, { candidates: [apart], allReport: true }, 'refuse');
    assert.deepEqual(
      found.map(({ severity, code }) => `${severity} ${code}`),
      ['warning out-of-reach'],
    );
  });
});

describe("Plumbline's own resources on a pod", () => {
  const YOURS = ', which only Plumbline may set; remove it';
  const withLimits = (
    limits: Record<string, string>,
    list: 'containers' | 'initContainers' = 'containers',
  ): PodShape => {
    const one = { name: 'c', resources: { limits } };
    const spec =
      list === 'containers' ? { containers: [{ name: 'a' }, one] } : { containers: [], initContainers: [one] };
    return { metadata: {}, spec };
  };
  const bearer = { list: 'containers', index: 1 } as const;

  for (const resource of ['plumbline.dev/tunnel', PLACED, EAST]) {
    it(`${resource} is refused if Plumbline did not set it`, () => {
      const expected = `container c asks for ${resource}: 1${YOURS}`;
      assert.equal(reservedRequest(withLimits({ [resource]: '1' })), expected);
      assert.equal(forbiddenUse(withLimits({ [resource]: '1' })), expected);
      assert.equal(reservedRequest(withLimits({ [resource]: '1' }, 'initContainers')), expected);
      const requests = {
        metadata: {},
        spec: { containers: [{ name: 'c', resources: { requests: { [resource]: '1' } } }] },
      };
      assert.equal(reservedRequest(requests), expected);
    });
    it(`${resource} is allowed once in the container for which Plumbline set it`, () => {
      const pod = withLimits({ [resource]: '1' });
      const refusal = `container c asks for ${resource}: 1${YOURS}`;
      assert.equal(reservedRequest(pod, bearer, [resource]), undefined);
      assert.equal(reservedRequest(pod, { ...bearer, index: 0 }, [resource]), refusal);
      assert.equal(reservedRequest(pod, { ...bearer, list: 'initContainers' }, [resource]), refusal);
      assert.equal(reservedRequest(pod, bearer, ['other']), refusal);
      assert.equal(reservedRequest(pod, undefined, [resource]), refusal);
      assert.equal(
        reservedRequest(withLimits({ [resource]: '2' }), bearer, [resource]),
        `container c asks for ${resource}: 2${YOURS}`,
      );
    });
  }

  it('the first one is named; other resources are not reserved', () => {
    assert.equal(
      reservedRequest(withLimits({ cpu: '1', 'nvidia.com/gpu': '1', [EAST]: '1', [PLACED]: '1' })),
      `container c asks for ${EAST}: 1${YOURS}`,
    );
    assert.equal(reservedRequest(withLimits({ cpu: '1', 'nvidia.com/gpu': '1' })), undefined);
    assert.equal(reservedRequest({ metadata: {}, spec: { containers: [{ name: 'c' }] } }), undefined);
  });

  it('annotations are refused on a pod without a decision', () => {
    const pod = (annotations?: Record<string, string>): PodShape => ({
      metadata: annotations ? { annotations } : {},
      spec: { containers: [] },
    });
    assert.equal(forbiddenUse(pod()), undefined);
    assert.equal(forbiddenUse(pod({ other: '' })), undefined);
    const both = { [PLACEMENT_ANNOTATION]: '', [DECISION_ANNOTATION]: '' };
    assert.equal(forbiddenUse(pod(both)), `the pod has the annotation ${DECISION_ANNOTATION}${YOURS}`);
    assert.equal(
      forbiddenUse(pod({ [PLACEMENT_ANNOTATION]: '' })),
      `the pod has the annotation ${PLACEMENT_ANNOTATION}${YOURS}`,
    );
  });
});

describe('an in-place resize', () => {
  const VM = 'this pod has whole cores, which cannot be resized in place: change the VM and restart or migrate it';
  const POD = 'this pod has whole cores, which cannot be resized in place: delete and create it again';
  const settings = { gate: true, policy: 'annotated' } as const;
  const larger = launcher({ containers: [container('compute', '12')] }).pod;
  const asking = ordinary().pod;
  const grown = ordinary({ containers: [container('dpdk', '5')] }).pod;
  const plain = launcher({ annotations: {} }).pod;
  const changedInit = ordinary({ initContainers: [container('i', '2')] }).pod;
  const shared = launcher({ containers: [container('compute', '100m')] }).pod;
  for (const [title, before, after, its, expected] of [
    ['is refused for a launcher with whole cores', launcher().pod, larger, settings, VM],
    ['is allowed if nothing changes', launcher().pod, launcher().pod, settings, undefined],
    ['is allowed if the gate is off', launcher().pod, larger, { ...settings, gate: false }, undefined],
    ['is allowed for a launcher without the annotation', plain, larger, settings, undefined],
    [
      'is refused for a launcher without the annotation if all are aligned',
      plain,
      larger,
      { ...settings, policy: 'auto' },
      VM,
    ],
    ['is allowed for a launcher on shared CPUs', shared, larger, settings, undefined],
    ['is refused for an ordinary pod with whole cores', asking, grown, settings, POD],
    ['is refused for an ordinary pod even if the gate is off', asking, grown, { ...settings, gate: false }, POD],
    [
      'is allowed for an ordinary pod without the annotation',
      ordinary({ annotations: {} }).pod,
      grown,
      { ...settings, policy: 'auto' },
      undefined,
    ],
    [
      'is refused for an init container',
      changedInit,
      ordinary({ initContainers: [container('i', '4')] }).pod,
      settings,
      POD,
    ],
  ] as const) {
    it(title, () => assert.equal(resizeRefusal(before, after, its), expected));
  }
});

describe('the scheduler of a pod', () => {
  const ours = { schedulerName: 'plumbline-scheduler', away: undefined };
  const away = { ...ours, away: 'no replica leads' };
  const OTHER =
    '"volcano" does not check kubelets, networks and DPUs unless it asks Plumbline\'s extender; remove it for plumbline-scheduler';
  const kept = {
    severity: 'warning',
    code: 'other-scheduler',
    reason: 'OtherScheduler',
    message: `The pod keeps its scheduler: ${OTHER}`,
  };
  const notReady = {
    severity: 'warning',
    code: 'scheduler-not-ready',
    reason: 'SchedulerNotReady',
    message: 'The pod waits for plumbline-scheduler: no replica leads. See kubectl -n plumbline-system get pods',
  };
  for (const [own, facts, set, findings] of [
    [undefined, ours, 'plumbline-scheduler', []],
    ['', ours, 'plumbline-scheduler', []],
    ['default-scheduler', ours, 'plumbline-scheduler', []],
    ['plumbline-scheduler', ours, undefined, []],
    ['plumbline-scheduler', away, undefined, [notReady]],
    ['default-scheduler', away, 'plumbline-scheduler', [notReady]],
    ['volcano', away, undefined, [kept]],
    ['volcano', { schedulerName: '', away: 'x' }, undefined, []],
    [undefined, { schedulerName: '', away: 'x' }, undefined, []],
  ] as const) {
    it(`${JSON.stringify(own)} with ${JSON.stringify(facts)}`, () => {
      assert.deepEqual(schedulingOf(own, facts), { set, findings });
    });
  }

  it('causes a warning if a template names another one', () => {
    assert.deepEqual(schedulerWarnings('volcano', 'plumbline-scheduler'), [`spec.schedulerName: ${OTHER}`]);
    assert.deepEqual(schedulerWarnings('volcano', ''), []);
    assert.deepEqual(schedulerWarnings('plumbline-scheduler', 'plumbline-scheduler'), []);
    assert.deepEqual(schedulerWarnings(undefined, 'plumbline-scheduler'), []);
  });
});
