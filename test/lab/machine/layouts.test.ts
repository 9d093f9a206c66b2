import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { pathOf, skipWithout } from '../../support/parts.ts';
import { cpuCount, LAYOUTS } from './layouts.ts';
import { placesOf } from './places.ts';
import { qemuArguments } from './qemu.ts';

describe('the layouts of the emulated machine', () => {
  const places = placesOf({ XDG_CACHE_HOME: '/cache' });

  for (const layout of Object.values(LAYOUTS)) {
    const words = qemuArguments(places, layout, 2222, {});
    const numa = words.filter((_, at) => words[at - 1] === '-numa');

    it(`${layout.name}: every CPU is in one NUMA node, in order`, () => {
      const ranges = numa.flatMap((text) => [...text.matchAll(/^node,.*cpus=(\d+)-(\d+)/g)]);
      let next = 0;
      for (const [, first, last] of ranges) {
        assert.equal(Number(first), next);
        next = Number(last) + 1;
      }
      assert.equal(ranges.length, layout.nodes);
      assert.equal(next, cpuCount(layout));
    });

    it(`${layout.name}: every NUMA node has huge pages`, () => {
      const kernel = words.find((_, at) => words[at - 1] === '-append') ?? '';
      const pages = Array.from({ length: layout.nodes }, (_, node) => `${node}:${layout.hugePages}`);
      assert.ok(kernel.split(' ').includes(`hugepages=${pages.join(',')}`), kernel);
    });

    it(`${layout.name}: QEMU accepts the machine`, function () {
      skipWithout('qemu', this);
      const machine = words.slice(0, words.indexOf('-kernel'));
      const { status, stderr } = spawnSync(pathOf('qemu'), [...machine, '-S', '-monitor', 'stdio'], {
        input: 'quit\n',
        encoding: 'utf8',
      });
      assert.deepEqual([status, stderr], [0, '']);
    });

    if (layout.distances)
      it(`${layout.name}: distances are symmetric, and 10 to itself`, () => {
        const { distances = [] } = layout;
        for (const [from, row] of distances.entries()) {
          assert.equal(row.length, layout.nodes);
          for (const [to, distance] of row.entries()) {
            assert.equal(distance, distances[to]?.[from]);
            assert.equal(distance === 10, from === to);
            assert.ok(numa.includes(`dist,src=${from},dst=${to},val=${distance}`));
          }
        }
      });
  }
});
