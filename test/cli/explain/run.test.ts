import assert from 'node:assert/strict';
import { nearestLines } from '../../../cli/explain/run.ts';
import { lineText } from '../../../cli/support/terminal.ts';
import { preparedHost } from '../../../model/placement/needs.ts';
import { REPORT } from '../cluster-fixture.ts';

/** Owned: all of NUMA node 0 except cores 6 and 7 and one thread of core 5. NUMA node 1 is free. */
const ASSIGNMENTS = [
  { podUID: 'x', container: 'compute', cpus: '1-4,17-20' },
  { podUID: 'y', container: 'compute', cpus: '5' },
];

describe('the node closest to fitting a VM', () => {
  const asks = {
    cpus: 6,
    wholeCores: true,
    networks: [{ kind: 'physnet' as const, physnet: 'physnet0', affinity: 'required' as const }],
  };
  const host = preparedHost({ ...REPORT, pmdCPUs: '8,24', assignments: ASSIGNMENTS });

  it('is drawn with the owners of CPUs and the usable and unusable free CPUs', () => {
    assert.deepEqual(
      nearestLines({ node: 'worker-1', host, asks }, 80).map((line) => lineText(line)),
      [
        '',
        'The closest node: worker-1',
        '  2 whole cores free near physnet0, 4 CPUs; it needs 6',
        '  NUMA node 0  (physnet0)',
        '     0 16  │  1 17  │  2 18  │  3 19  │  4 20  │  5 21  │  6 22  │  7 23',
        '     R  R  │  #  #  │  #  #  │  #  #  │  #  #  │  #  -  │  +  +  │  +  +',
        '  NUMA node 1',
        '     8 24  │  9 25  │ 10 26  │ 11 27  │ 12 28  │ 13 29  │ 14 30  │ 15 31',
        '     P  P  │  ·  ·  │  ·  ·  │  ·  ·  │  ·  ·  │  ·  ·  │  ·  ·  │  ·  ·',
        '  R reserved   P Open vSwitch polls   # owned   + could serve   - free, but only half a core   · free',
      ],
    );
  });

  it('counts every free CPU as usable without whole cores or networks', () => {
    const lines = nearestLines({ node: 'n', host, asks: { ...asks, wholeCores: false, networks: [] } }, 80);
    assert.match(lines.map((line) => lineText(line)).join('\n'), /19 CPUs free; it needs 6/);
  });
});
