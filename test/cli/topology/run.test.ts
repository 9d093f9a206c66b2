import assert from 'node:assert/strict';
import { createCommand } from '../../../cli/topology/command.ts';
import type { topologyData } from '../../../cli/topology/run.ts';
import { type RecordedMachine, writeMachine } from '../../hardware/machine-fixture.ts';
import { tempDirectories } from '../../support/files.ts';
import { parseOutput } from '../../support/output-schema.ts';
import { runCommand } from '../../support/run-command.ts';

const alone = (count: number) => ({
  core: Array.from({ length: count }, (_, id) => id),
  package: Array.from({ length: count }, () => 0),
});
const pairs = { core: [0, 0, 1, 1], package: [0, 0, 0, 0], siblings: ['0-1', '2-3'] };

/** Level, first CPU and CPUs. */
const cacheOf = (text: string): NonNullable<RecordedMachine['caches']>[number] => {
  const [level, id, cpus = ''] = text.split(' ');
  return [Number(level), Number(id), cpus];
};

const machine = (cpus: string, more: Omit<RecordedMachine, 'name' | 'cpus'>): RecordedMachine => {
  return { name: '', cpus, ...more };
};

/** Lines of the output that each machine must have, and texts that it must not contain. */
const CASES: readonly [string, RecordedMachine, readonly string[], RegExp?][] = [
  [
    'a regular machine has no remarks',
    machine('0-3', { ...pairs, nodes: { 0: '0-3' } }),
    ['4 CPUs, 2 cores, 1 NUMA node, 1 socket'],
    /offline|without CPUs/,
  ],
  [
    'NUMA nodes that have only memory',
    machine('0-3', { ...pairs, nodes: { 0: '0-3', 2: '', 9: '' } }),
    [
      '4 CPUs, 2 cores, 3 NUMA nodes (2 without CPUs), 1 socket',
      ...['NUMA node 2  (64 GiB, no CPUs)', 'NUMA node 9  (64 GiB, no CPUs)'],
    ],
  ],
  [
    'an offline thread',
    machine('0-3', { ...pairs, offline: '3', nodes: { 0: '0-3' } }),
    ['3 CPUs, 2 cores, 1 NUMA node, 1 socket', '1 CPU offline: 3'],
  ],
  [
    'caches of performance and efficiency cores',
    machine('0-7', {
      core: [0, 0, 4, 4, 8, 9, 10, 11],
      package: [0, 0, 0, 0, 0, 0, 0, 0],
      siblings: ['0-1', '2-3'],
      nodes: { 0: '0-7' },
      caches: '2 4 4|2 5 5|3 0 0-1|3 1 2-3|3 2 4-7|4 0 0-7'.split('|').map(cacheOf),
    }),
    [
      ...['  L2   2 of 1 MiB, each of 1 CPU', '  L3   2 of 1 MiB, each shared by 2 CPUs'],
      ...['  L3   1 of 1 MiB, shared by 4 CPUs', '  L4   1 of 1 MiB, shared by all CPUs'],
    ],
    /offline/,
  ],
];

describe('the topology of unusual machines', () => {
  const temp = tempDirectories();
  const dataOf = async (root: string) => {
    const { stdout } = await runCommand(createCommand(), ['--sysfs-root', root, '-o', 'json']);
    return parseOutput<ReturnType<typeof topologyData>>('topology', JSON.parse(stdout));
  };
  for (const [name, tree, expected, absent] of CASES) {
    it(name, async () => {
      const root = temp();
      writeMachine(root, tree);
      const { lines } = await runCommand(createCommand(), ['--sysfs-root', root]);
      for (const line of expected) assert.ok(lines.includes(line), `${line}\nis not in\n${lines.join('\n')}`);
      if (absent) assert.doesNotMatch(lines.join('\n'), absent);
      await dataOf(root);
    });
  }

  it('are data: offline CPUs and NUMA nodes without CPUs', async () => {
    const root = temp();
    const nodes = { 0: '0-3', 5: '' };
    writeMachine(root, { name: '', cpus: '0-3', ...alone(4), core: [0, 1, 0, 1], offline: '3', nodes });
    const { numaNodes, offline } = await dataOf(root);
    const texts = numaNodes.map(({ id, cpus, memory }) => `${id}: ${cpus}, ${memory! / 2 ** 30} GiB`);
    assert.deepEqual(texts, ['0: 0,1,2, 64 GiB', '5: , 64 GiB']);
    assert.deepEqual(offline, [3]);
  });
});
