import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { readSysfs } from '../../hardware/sysfs.ts';
import { createHost, HostError, MAX_CELL_ID } from '../../model/host.ts';
import { describeForKubelet, kubeletContradictions } from '../../model/host-sysfs.ts';
import { topologyOfHost } from '../../model/kubelet/topology.ts';
import { type RecordedMachine, writeMachine } from '../hardware/machine-fixture.ts';
import { tempDirectories } from '../support/files.ts';
import { vector } from '../support/vectors.ts';

/**
 * What cAdvisor and the kubelet's topology.Discover of 1.36.3 make of each machine. The arrays have an entry for each of
 * `cpus`, ascending. Null: the kubelet has no CPU.
 */
interface Discovered {
  /** CPUs, cores, sockets, NUMA nodes and last-level caches. */
  readonly counts: readonly number[];
  readonly cpus: string;
  readonly core: readonly number[];
  readonly socket: readonly number[];
  readonly numa: readonly number[];
  readonly uncore: readonly number[];
}

const MACHINES = vector<(RecordedMachine & { readonly expected: Discovered | null })[]>('kubelet-discovery.json');

/** Ids that a report cannot have, such as -1, are replaced by their rank: the kubelet only compares ids. */
function reported(ids: readonly number[], maxId: number): readonly number[] {
  if (ids.every((id) => id >= 0 && id <= maxId)) return ids;
  const sorted = [...new Set(ids)].sort((a, b) => a - b);
  return ids.map((id) => sorted.indexOf(id));
}

describe('host as the kubelet sees it', () => {
  const temp = tempDirectories();
  const read = async (machine: RecordedMachine) => {
    const root = temp();
    writeMachine(root, machine);
    const sysfs = await readSysfs(root);
    rmSync(root, { recursive: true });
    return sysfs;
  };

  it(`has the topology that the kubelet discovers, on ${MACHINES.length} machines`, async function () {
    this.timeout(300_000);
    assert.ok(MACHINES.length > 200);
    for (const { expected, ...machine } of MACHINES) {
      const sysfs = await read(machine);
      if (expected === null) {
        assert.throws(() => describeForKubelet(sysfs), HostError, machine.name);
        continue;
      }
      const host = createHost(describeForKubelet(sysfs));
      const { cpus, cores, sockets, cells, uncores } = topologyOfHost(host).counts;
      const actual = {
        counts: [cpus, cores, sockets, cells, uncores],
        cpus: host.online.toString(),
        core: host.cpus.map(({ core }) => core),
        socket: host.cpus.map(({ socket }) => socket),
        numa: host.cpus.map(({ cell }) => cell),
        uncore: host.cpus.map(({ uncore }) => uncore),
      };
      const socket = reported(expected.socket, 65_535);
      const numa = reported(expected.numa, MAX_CELL_ID - 1);
      assert.deepEqual(actual, { ...expected, socket, numa, uncore: reported(expected.uncore, 65_535) }, machine.name);
    }
  });

  const MACHINE_OF_FOUR = { name: '', cpus: '0-3', core: [0, 1, 0, 1], package: [0, 0, 0, 0], nodes: { 0: '0-3' } };
  const contradictions: readonly [string, RecordedMachine, readonly RegExp[]][] = [
    ['none where core ids are unique', { ...MACHINE_OF_FOUR, core: [0, 1, 2, 3] }, []],
    ['none where equal core ids are siblings', { ...MACHINE_OF_FOUR, siblings: ['0,2', '1,3'] }, []],
    [
      'core ids that restart in each cluster',
      { ...MACHINE_OF_FOUR, core: [0, 1, 2, 0] },
      [/takes CPUs 0,3 for one core each.*not the kernel's siblings/, /^it counts 1 CPU for each core$/],
    ],
    ['all cores', MACHINE_OF_FOUR, [/CPUs 0,2 and 1,3 for/, /^it counts 2 CPUs for each core$/]],
    [
      'CPUs without core_id',
      { ...MACHINE_OF_FOUR, core: [0, 1, null, 3] },
      [/^the kubelet ignores CPU 2 without core_id/],
    ],
    [
      'CPUs without a NUMA node',
      { ...MACHINE_OF_FOUR, core: [0, 1, 2, 3], nodes: { 0: '0-2' } },
      [/^the kubelet ignores CPU 3 without/],
    ],
    [
      'offline CPUs of a kernel without NUMA',
      { name: '', cpus: '0-3', offline: '2-3', core: [0, 1, 2, 3], package: [0, 0, 0, 0] },
      [/^without NUMA nodes the kubelet also counts 2 CPUs that it cannot assign$/, /^it counts 2 CPUs for each core$/],
    ],
  ];
  for (const [name, machine, expected] of contradictions) {
    it(`contradicts the kernel: ${name}`, async () => {
      const sysfs = await read(machine);
      const texts = kubeletContradictions(sysfs, createHost(describeForKubelet(sysfs)));
      assert.equal(texts.length, expected.length, texts.join('\n'));
      for (const [i, pattern] of expected.entries()) assert.match(texts[i] ?? '', pattern);
    });
  }
});
