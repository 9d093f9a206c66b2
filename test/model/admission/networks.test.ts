import assert from 'node:assert/strict';
import {
  decidedOf,
  decisionText,
  NOTHING_TO_DO,
  networksWithoutDevice,
  paddingOf,
  placementText,
} from '../../../model/admission/decision-annotation.ts';
import { doubtfulNetworks, podNetworks, reachFindings } from '../../../model/admission/networks.ts';
import { CpuSet } from '../../../model/cpu-set.ts';
import { DECISION_ANNOTATION, NUMA_AFFINITY_ANNOTATION } from '../../../model/names.ts';
import { NETWORKS_ANNOTATION, refText } from '../../../model/networks/attachments.ts';
import type { NadFacts } from '../../../model/networks/nad.ts';
import type { ResolvedNetwork } from '../../../model/networks/resolve.ts';
import { brief, cluster, kind, localnet } from './fixture.ts';

type DecisionText = Parameters<typeof decisionText>[0];

const EAST = 'physnet.plumbline.dev/east';
/** A pod with CPUs of its own and these values of the annotations. */
const owner = (networks: string, affinity = '') => ({
  namespace: 'ns',
  exclusive: true,
  pod: {
    metadata: { annotations: { [NETWORKS_ANNOTATION]: networks, [NUMA_AFFINITY_ANNOTATION]: affinity } },
    spec: { containers: [] },
  },
});
describe('the networks of a pod under review', () => {
  const facts = cluster().networks;
  it('count only for a pod with CPUs of its own', () => {
    const preferring = owner('east', '{"east":"preferred"}');
    const resolved = podNetworks(preferring, facts);
    assert.deepEqual([resolved.preferred, resolved.interfaces, resolved.resources], [[EAST], { [EAST]: 'net1' }, []]);
    const shared = podNetworks({ ...preferring, exclusive: false }, facts);
    assert.deepEqual([shared.preferred, shared.interfaces], [[], {}]);
    const required = podNetworks(owner('east'), facts);
    assert.deepEqual(
      [required.resources, required.mayHave, required.required.length, required.preferred, required.interfaces],
      [[EAST], [EAST], 1, [], { [EAST]: 'net1' }],
    );
  });

  it('keep the devices of a network that no node reports', () => {
    const resolved = podNetworks(owner('east'), { ...facts, reported: { physnets: new Set(), tunnel: false } });
    assert.deepEqual([resolved.resources, resolved.mayHave, resolved.required], [[], [EAST], []]);
    assert.equal(resolved.withoutDevice.map(({ name }) => name).join(), 'net1');
  });

  it('wait for a network whose device a kubelet still has, although no node reports it', () => {
    const reported = { physnets: new Set<string>(), tunnel: false, devices: new Set([EAST]) };
    const resolved = podNetworks(owner('east'), { ...facts, reported });
    assert.deepEqual([resolved.resources, resolved.withoutDevice], [[EAST], []]);
    assert.match(resolved.findings.map(({ message }) => message).join(), /waits until one does again/);
  });

  it('report a missing primary network for a pod on the pod network', () => {
    const codes = (primary: typeof facts.primary) =>
      podNetworks(owner('east'), { ...facts, primary }).findings.map(({ code }) => code);
    assert.deepEqual(codes({ kind: 'missing' }), ['no-primary-network']);
    assert.deepEqual(codes({ kind: 'none' }), []);
    const hosted = { ...owner('east').pod, spec: { containers: [], hostNetwork: true } };
    const resolved = podNetworks({ ...owner('east'), pod: hosted }, { ...facts, primary: { kind: 'missing' } });
    assert.deepEqual([resolved.networks, resolved.findings], [[], []]);
  });

  it('use a primary network instead of the pod network', () => {
    const primary = { kind: 'primary', ref: { namespace: 'ns', name: 'blue' } } as const;
    const refs: string[] = [];
    const definitions = new Map([['ns/blue', localnet('east')]]);
    const { networks } = podNetworks(owner(''), { ...facts, primary, definitions });
    assert.equal(networks.map(({ role, network, kind: on }) => [role, network, on]).join(), 'pod,ns/blue,physnet');
    doubtfulNetworks(owner(''), { ...facts, primary }, (ref) => {
      refs.push(refText(ref));
      return localnet('east');
    });
    assert.deepEqual(refs, ['ns/blue']);
  });

  describe('need a new read of definitions for', () => {
    const reread = (networks: string, nads: Record<string, NadFacts>, affinity = '') => {
      const refs: string[] = [];
      const doubtful = doubtfulNetworks(owner(networks, affinity), facts, (ref) => {
        refs.push(refText(ref));
        return nads[refText(ref)];
      });
      return [doubtful.map(refText), refs] as const;
    };
    const west = { 'ns/west': localnet('west') };
    const several = { ...west, 'ns/east': localnet('east'), 'ns/over': localnet('', 'layer2') };
    for (const [title, networks, nads, expected, affinity] of [
      ['a missing network', 'gone', {}, ['ns/gone']],
      ['a network on a physnet that no node reports', 'west', west, ['ns/west']],
      ['only the doubtful networks of several', 'east,west,gone,over', several, ['ns/gone', 'ns/west']],
      ['no network that is only preferred', 'west', west, [], '{"west":"preferred"}'],
    ] as const) {
      it(title, () => {
        const refs = networks.split(',').map((name) => `ns/${name}`);
        assert.deepEqual(reread(networks, nads, affinity), [expected, refs]);
      });
    }
  });
});
describe('a guest that no node can place near its networks', () => {
  it('causes a warning, whatever its size', () => {
    const { networks: facts } = cluster();
    const [east] = podNetworks(owner('east'), facts).required;
    const west = { ...east!, physnet: 'west' } as ResolvedNetwork;
    const physnets = new Map([...kind(2).networks.physnets, ['west', CpuSet.parse('1')]]);
    const apart = { ...kind(2), networks: { physnets, tunnel: undefined } };
    const guest = { cpus: 1, spansCells: false };
    const findings = reachFindings([east!, west], guest, { candidates: [apart], allReport: true }, 'refuse');
    assert.deepEqual(findings.map(brief), ['warning out-of-reach']);
  });
});

const read = (text: string | undefined) =>
  decidedOf({ annotations: text === undefined ? {} : { [DECISION_ANNOTATION]: text } });
const NOTHING: DecisionText = {
  stated: {},
  threadsPerCore: undefined,
  padding: 0,
  required: [],
  resources: [],
  withoutDevice: [],
  nodes: undefined,
  notes: [],
};
describe('the decision annotation', () => {
  const cases: readonly [string, DecisionText, string, ReturnType<typeof decidedOf>][] = [
    [
      'padded',
      { ...NOTHING, stated: { compute: 10 }, padding: 1, threadsPerCore: 2 },
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
  it('names the networks that have no device, each once', () => {
    const reported = { physnets: new Set<string>(), tunnel: false };
    const east = podNetworks(owner('east,east'), { ...cluster().networks, reported });
    const text = decisionText({ ...NOTHING, withoutDevice: east.withoutDevice });
    assert.deepEqual(networksWithoutDevice({ annotations: { [DECISION_ANNOTATION]: text } }), ['physnet east']);
    assert.deepEqual(networksWithoutDevice({}), []);
  });

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
      { key: 'n', operator: 'In', values: null },
    ];
    assert.deepEqual(JSON.parse(decisionText({ ...NOTHING, required: [network], resources: ['r'], nodes })), {
      padding: 0,
      networks: [{ interface: 'net1', network: 'ns/a', on: 'tunnel' }],
      resources: ['r'],
      nodes: ['k In a,b', 'e Exists ', 'n In '],
    });
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
