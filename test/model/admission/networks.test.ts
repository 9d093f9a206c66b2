import assert from 'node:assert/strict';
import { doubtfulNetworks, podNetworks, reachFindings } from '../../../model/admission/networks.ts';
import { CpuSet } from '../../../model/cpu-set.ts';
import { NUMA_AFFINITY_ANNOTATION } from '../../../model/names.ts';
import { NETWORKS_ANNOTATION, refText } from '../../../model/networks/attachments.ts';
import type { NadFacts } from '../../../model/networks/nad.ts';
import type { ResolvedNetwork } from '../../../model/networks/resolve.ts';
import { brief, cluster, kind, localnet } from './facts.ts';

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
    assert.deepEqual(
      networks.map(({ role, network, kind: on }) => [role, network, on]),
      [['pod', 'ns/blue', 'physnet']],
    );
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
    for (const [title, networks, nads, expected, affinity] of [
      ['a missing network', 'gone', {}, ['ns/gone']],
      ['a network on a physnet that no node reports', 'west', { 'ns/west': localnet('west') }, ['ns/west']],
      [
        'only the doubtful networks of several',
        'east,west,gone,over',
        { 'ns/east': localnet('east'), 'ns/west': localnet('west'), 'ns/over': localnet('', 'layer2') },
        ['ns/gone', 'ns/west'],
      ],
      ['no network that is only preferred', 'west', { 'ns/west': localnet('west') }, [], '{"west":"preferred"}'],
    ] as const) {
      it(title, () => {
        const [doubtful, refs] = reread(networks, nads, affinity);
        assert.deepEqual(doubtful, expected);
        assert.deepEqual(
          refs,
          networks.split(',').map((name) => `ns/${name}`),
        );
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
