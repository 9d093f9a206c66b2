import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { convertMask, type Form } from '../../cli/cpu-mask/command.ts';
import { explainMask, maskLines } from '../../cli/cpu-mask/explain.ts';
import { parseMask } from '../../model/cpu-mask/mask.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { assertFails } from './run.ts';

const MAIN = new URL('../../cli/main.ts', import.meta.url).pathname;

describe('plumbline cpu-mask convert', () => {
  const forms: [Form, string, { vcpus?: number; online?: string }, string[] | RegExp][] = [
    ['canonical', '2,0-1:all:4,6-8', {}, ['0-2:all:4,6-8']],
    ['list', '1-2:all', {}, ['1-2', 'all']],
    ['list', '1-2:all', { online: '0-3,8' }, ['1-2', '0-3,8']],
    ['list', '0-3', { vcpus: 2 }, ['0-3', '0-3']],
    ['taskset', '1:3', {}, ['0x00000002', '0x00000008']],
    ['taskset', '63:64', {}, ['0x8000000000000000', '0x000000010000000000000000']],
    ['taskset', 'all:0', { online: '0-127' }, [`0x${'F'.repeat(32)}`, '0x00000001']],
    ['taskset', 'all', {}, /contains "all": list those CPUs with --online/],
    ['xen', '1:2,4-7:0-1', {}, ['cpus = [ "1", "2,4-7", "0-1" ]']],
    ['xen', 'all', {}, []],
    ['lxc', '2-3', { vcpus: 2 }, ['2-3']],
    ['lxc', '2-3', {}, /with --vcpus/],
  ];
  for (const [form, mask, { vcpus, online }, outcome] of forms) {
    const given = [vcpus && `${vcpus} vCPUs`, online && `CPUs ${online}`].filter(Boolean).join(', ');
    it(`${JSON.stringify(mask)} to ${form}${given && `, with ${given}`}: ${outcome}`, () => {
      const cpus = online === undefined ? undefined : CpuSet.parse(online);
      const convert = () => convertMask({ mask: parseMask(mask), form, vcpus, online: cpus });
      if (outcome instanceof RegExp) assert.throws(convert, outcome);
      else assert.deepEqual(convert(), outcome);
    });
  }
});

describe('plumbline cpu-mask explain', () => {
  const explain = (mask: string, options: { vcpus?: number; online?: string; reserved?: string; fix?: true } = {}) =>
    explainMask({
      mask: parseMask(mask),
      vcpus: options.vcpus,
      online: options.online === undefined ? undefined : CpuSet.parse(options.online),
      reserved: CpuSet.parse(options.reserved ?? ''),
      fixMismatch: options.fix ?? false,
    });

  it('shows the allowed CPUs of each vCPU', () => {
    assert.deepEqual(maskLines(explain('1-2:all')), ['mask 1-2:all', '        CPUS', 'vCPU 0  1-2', 'vCPU 1  any']);
    assert.deepEqual(maskLines(explain('all')).slice(0, 1), ['mask all: nothing is pinned']);
  });
  it('shows the remaining CPUs on a host with gaps and reserved CPUs', () => {
    const { vcpus, problems, fellBack } = explain('0-1,8:all', { online: '0-3,8', reserved: '0' });
    assert.deepEqual([problems, fellBack], [[], false]);
    assert.deepEqual(vcpus, [
      { vcpu: 0, cpus: '0-1,8', effective: '1,8' },
      { vcpu: 1, cpus: 'all', effective: '1-3,8' },
    ]);
  });
  it('names the fault: the vCPUs, a missing CPU, a CPU that no VM may use', () => {
    assert.match(explain('0:1', { vcpus: 3 }).problems.join(), /entries for 2 vCPUs, but the VM has 3/);
    assert.match(explain('0:4', { online: '0-3' }).problems.join(), /names CPU 4, which is not online/);
    assert.match(explain('0:1', { online: '0-3', reserved: '1' }).problems.join(), /leaves vCPU 1 without a CPU/);
  });
  it('reports that a host that is too small uses all', () => {
    const { fellBack, vcpus, problems } = explain('0:4', { online: '0-3', fix: true });
    assert.deepEqual([fellBack, problems, vcpus.map(({ effective }) => effective)], [true, [], ['0-3', '0-3']]);
  });
});

describe('plumbline cpu-mask', function () {
  this.timeout(300_000);
  const run = (...args: string[]) => {
    const words = ['--import', 'tsx', MAIN, 'cpu-mask', ...args];
    const { status, stdout, stderr } = spawnSync(process.execPath, words, { encoding: 'utf8' });
    return { status: status ?? 1, stdout, stderr };
  };
  it('prints the canonical form, and the parsed mask as data', () => {
    assert.deepEqual(run('parse', '3,1,2'), { status: 0, stdout: '1-3\n', stderr: '' });
    const { stdout } = run('parse', '1:all', '-o', 'json');
    assert.deepEqual(JSON.parse(stdout), { mask: '1:all', entries: ['1', 'all'], pinsNothing: false });
  });
  const wrong: [string[], number, RegExp][] = [
    [['parse', '1::2'], 2, /^plumbline: .*CPU mask "1::2": entry 2 \(for vCPU 1\) is empty; .*\n$/],
    [['parse', '0-999999999'], 2, /^plumbline: .*CPU list "0-999999999": CPU ids end at 65535/],
    [['explain', '0', '--vcpus', '0'], 2, /expected 1 to 4096 vCPUs/],
    [['explain', '0', '--online', 'x'], 2, /CPU list "x"/],
    [['convert', '0', '--to', 'vmware'], 2, /unknown form 'vmware': use canonical, list, taskset, xen, lxc/],
    [['convert', '0:1', '--to', 'lxc', '--vcpus', '2'], 1, /a container has no vCPUs/],
  ];
  for (const [args, status, line] of wrong) {
    it(`${args.join(' ')} exits with ${status} and one line`, () => assertFails(run(...args), status, line));
  }
  it('exits with 1 and the reason if the mask cannot be satisfied', () => {
    const { status, stdout } = run('explain', '8', '--online', '0-7');
    assert.equal(status, 1);
    assert.match(stdout, /^! the CPU mask 8 names CPU 8, which is not online on this host \(it has 0-7\)$/m);
  });
});
