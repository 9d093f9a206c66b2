import assert from 'node:assert/strict';
import { hexMask, MaskFormError, toLxc, toTaskset, toXen } from '../../../model/cpu-mask/convert.ts';
import { parseMask } from '../../../model/cpu-mask/mask.ts';
import { CpuSet } from '../../../model/cpu-set.ts';

const range = (last: number) => CpuSet.range(0, last);

describe('masks in other formats', () => {
  for (const [cpus, hex] of [
    ['1,3', '0x0000000A'],
    ['', '0x00000000'],
    ['31', '0x80000000'],
    ['32', '0x0000000100000000'],
  ] as const) {
    it(`M7: CPUs ${cpus || 'none'} are ${hex}`, () => assert.equal(hexMask(CpuSet.parse(cpus)), hex));
  }

  it('M7: taskset gets one mask for each vCPU', () => {
    assert.deepEqual(toTaskset(parseMask('1,3'), 2, range(3)), ['0x0000000A', '0x0000000A']);
    assert.deepEqual(toTaskset(parseMask('0:all'), 2, range(3)), ['0x00000001', '0x0000000F']);
    assert.throws(() => toTaskset(parseMask('0:1'), 3, range(3)), MaskFormError);
  });

  for (const [mask, xen] of [
    ['1:2,4-7:0-1', 'cpus = [ "1", "2,4-7", "0-1" ]'],
    ['2-3', 'cpus = "2-3"'],
    ['1:all', 'cpus = [ "1", "all" ]'],
    ['all:all', undefined],
  ] as const) {
    it(`M7: Xen’s form of ${JSON.stringify(mask)} is ${xen ?? 'no entry'}`, () =>
      assert.equal(toXen(parseMask(mask)), xen));
  }

  it('M7: LXC gets one list with as many CPUs as vCPUs', () => {
    assert.equal(toLxc(parseMask('2,1'), 2), '1-2');
    assert.equal(toLxc(parseMask('all'), 2), undefined);
    for (const mask of ['0', '0-3', '0:1', '0:all'])
      assert.throws(() => toLxc(parseMask(mask), 2), MaskFormError, mask);
  });
});
