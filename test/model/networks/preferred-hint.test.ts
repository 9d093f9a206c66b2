import assert from 'node:assert/strict';
import { CpuSet } from '../../../model/cpu-set.ts';
import { isWholeCores } from '../../../model/host-cores.ts';
import type { DevicePool } from '../../../model/kubelet/devices.ts';
import { podRequestOf } from '../../../model/kubelet/pod-request.ts';
import { type HintingNode, hintCells } from '../../../model/networks/preferred-hint.ts';
import { container, pod, predictable, simpleHost } from '../kubelet/fixture.ts';

const EMPTY = CpuSet.EMPTY;
const NODE: HintingNode = {
  host: simpleHost(2, 8),
  topologyPolicy: 'best-effort',
  givesMemory: false,
  reserved: CpuSet.parse('0-1'),
  owned: EMPTY,
  polled: EMPTY,
};

describe('the NUMA node that a preferred network names to the kubelet', () => {
  const cases: [what: string, node: Partial<HintingNode>, cells: string, named: string][] = [
    ['is the one with the most free CPUs', {}, '1', '1'],
    ['is not named with fewer free CPUs', {}, '0', ''],
    ['is named with as many as the other one', { reserved: CpuSet.parse('0-1,8-9') }, '0', '0'],
    ['is not named with fewer because pods own some', { owned: CpuSet.parse('8-11') }, '1', ''],
    ['is not named if both are full', { owned: CpuSet.parse('2-15') }, '1', ''],
    ['is not named with a core of which one thread is free', { owned: CpuSet.parse('2-5,8') }, '1', ''],
    ['is not named with CPUs on which the switch polls', { polled: CpuSet.parse('14-15') }, '1', ''],
    ['is not affected by reserved polled CPUs', { polled: CpuSet.parse('0-1') }, '1', '1'],
    ['is not named for a network on both', {}, '0-1', ''],
    ['is not named for a network without a known NUMA node', {}, '', ''],
    ['is not named for a NUMA node that the host does not have', {}, '7', ''],
    ['is not named with policy none', { topologyPolicy: 'none' }, '1', ''],
    ['is not named with policy restricted', { topologyPolicy: 'restricted' }, '1', ''],
    ['is not named with policy single-numa-node', { topologyPolicy: 'single-numa-node' }, '1', ''],
    ['is not named if the kubelet assigns memory of NUMA nodes', { givesMemory: true }, '1', ''],
    ['is not named on a host with four NUMA nodes', { host: simpleHost(4, 8) }, '1', ''],
    ['is not named on a host with one', { host: simpleHost(1, 8) }, '0', ''],
  ];
  for (const [what, changes, cells, named] of cases) {
    it(what, () => assert.equal(`${hintCells({ ...NODE, ...changes }, CpuSet.parse(cells))}`, named));
  }

  it('never splits a pod or a core and never causes a refusal, for every load, size and kubelet', () => {
    const near = 'near.plumbline.dev/east';
    let [asked, moved] = [0, 0];
    for (const version of ['v1.35.0', 'v1.36.2']) {
      for (const wholeCores of ['true', 'false']) {
        const cpuManager = { policy: 'static', options: { 'full-pcpus-only': wholeCores } };
        const kubelet = predictable(NODE.host, { version, cpuManager, topologyManager: { policy: 'best-effort' } });
        for (let load = 0; load < 128; load += 3) {
          const cores = NODE.host.cores.filter((_, at) => at > 0 && (load & (1 << (at - 1))) !== 0);
          const owned = cores.reduce((sum, core) => sum.union(core), EMPTY);
          const owner = new Map([['before', new Map([['c', owned]])]]);
          for (const cell of [0, 1]) {
            const nodes = hintCells({ ...NODE, owned }, CpuSet.of([cell])).toArray();
            if (nodes.length === 0) continue;
            const pool: DevicePool = { devices: [{ id: '0', healthy: true, nodes }], endless: true };
            const state = kubelet.initialState(new Map([[near, pool]]), owner);
            for (let cpus = 1; cpus <= 14; cpus++) {
              const given = (devices: Record<string, string>) => {
                const answer = kubelet.admit(state, podRequestOf(pod('p', [container('c', cpus, devices)])));
                return answer.admitted ? (answer.containers[0]?.cpus ?? EMPTY) : undefined;
              };
              const [plain, hinted] = [given({}), given({ [near]: '1' })];
              const where = `${version}, ${wholeCores}, owned ${owned}, ${cpus} CPUs, near ${cell}`;
              assert.equal(hinted === undefined, plain === undefined, where);
              if (plain === undefined || hinted === undefined) continue;
              const touched = (set: CpuSet) => NODE.host.cells.filter((one) => one.cpus.intersects(set));
              assert.ok(touched(hinted).length <= touched(plain).length, `${where}: ${plain} became ${hinted}`);
              if (isWholeCores(NODE.host, plain)) assert.ok(isWholeCores(NODE.host, hinted), `${where}: ${hinted}`);
              if (touched(hinted).length === 1) assert.equal(touched(hinted)[0]?.id, cell, where);
              asked++;
              if (!hinted.equals(plain)) moved++;
            }
          }
        }
      }
    }
    assert.ok(asked > 1000 && moved > 100, `${asked} pods, of which ${moved} were moved`);
  });
});
