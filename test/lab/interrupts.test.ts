import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { CpuSet } from '../../model/cpu-set.ts';
import { bundleProgram } from '../support/bundle-program.ts';
import { root } from '../support/bundles.ts';
import { needs, skipFor } from '../support/parts.ts';
import { isMade } from './machine/base.ts';
import { placesOf } from './machine/places.ts';

const places = placesOf(process.env);
/** QEMU's emulation on a busy machine takes minutes. */
const MAX_SECONDS = 600;
/** The emulation of several CPUs sometimes panics a kernel that starts; only the start is lost. */
const BOOTS = 3;
/** In the order of loading. */
const MODULES = [
  ...['net/core/failover', 'drivers/net/net_failover', 'drivers/net/virtio_net', 'drivers/block/virtio_blk'],
  ...['drivers/nvme/common/nvme-auth', 'drivers/nvme/host/nvme-core', 'drivers/nvme/host/nvme'],
];
const INIT = `#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
${MODULES.map((name) => `insmod /modules/${basename(name)}.ko`).join('\n')}
until [ -d /sys/class/net/eth0 ] && [ -d /sys/block/nvme0n1 ]; do sleep 0.1; done
ip link set eth0 up
node /app/guest.mjs
poweroff -f
`;

interface Step {
  readonly step: string;
  readonly values: Readonly<Record<string, string>>;
  readonly milliseconds?: number;
  readonly states?: readonly string[];
  readonly plan?: readonly string[];
  readonly events?: readonly string[];
  readonly problems?: readonly string[];
}

const run = (program: string, ...args: string[]) => execFileSync(program, args, { encoding: 'utf8', stdio: 'pipe' });

async function makeInitramfs(directory: string): Promise<string> {
  const guest = join(directory, 'root');
  for (const name of ['bin', 'proc', 'sys', 'dev', 'tmp', 'modules', 'app/node_modules'])
    mkdirSync(join(guest, name), { recursive: true });
  const release = /version (\S+)/.exec(run('file', '-b', places.kernel))?.[1] ?? '';
  for (const name of MODULES) {
    const file = `/usr/lib/modules/${release}/kernel/${name}.ko`;
    run('debugfs', '-R', `dump ${file} ${join(guest, 'modules', basename(file))}`, places.disk);
  }
  copyFileSync(places.busybox, join(guest, 'bin/busybox'));
  const programs = [process.execPath, run('which', 'ethtool').trim()].map((path) => realpathSync(path));
  for (const program of programs) {
    copyFileSync(program, join(guest, 'bin', basename(program)));
    for (const [library = ''] of run('ldd', program).matchAll(/\/\S+\.so\S*/g)) {
      mkdirSync(join(guest, dirname(library)), { recursive: true });
      copyFileSync(realpathSync(library), join(guest, library));
    }
  }
  for (const name of ['koffi', '@koromix']) {
    cpSync(join(root, 'node_modules', name), join(guest, 'app/node_modules', name), {
      recursive: true,
      dereference: true,
    });
  }
  await bundleProgram('test/lab/interrupts-guest.ts', join(guest, 'app/guest.mjs'), {
    format: 'esm',
    banner: { js: "import { createRequire } from 'node:module'; const require = createRequire('/app/guest.mjs');" },
  });
  writeFileSync(join(guest, 'init'), INIT);
  chmodSync(join(guest, 'init'), 0o755);
  const initramfs = join(directory, 'initramfs.gz');
  run('sh', '-c', `cd ${guest} && find . | cpio --quiet -o -H newc | gzip -1 >${initramfs}`);
  return initramfs;
}

async function runGuest(directory: string): Promise<Step[]> {
  const initramfs = await makeInitramfs(directory);
  for (let boot = 1; ; boot++) {
    const text = await bootGuest(directory, initramfs);
    const steps = [...text.matchAll(/^@@ (.*?)\r?$/gm)].map(([, json = '']) => JSON.parse(json) as Step);
    if (steps.length === 0 && boot < BOOTS) continue;
    const isWhole = steps.some(({ step }) => step === 'switched off');
    assert.ok(isWhole, `boot ${boot}, after ${steps.at(-1)?.step ?? 'no step'}: ${text.slice(-2000)}`);
    return steps;
  }
}

/** @returns what it wrote to its serial port until it ended */
async function bootGuest(directory: string, initramfs: string): Promise<string> {
  const serial = join(directory, 'serial.log');
  const [disk, nvme] = ['disk.img', 'nvme.img'].map((name) => join(directory, name)) as [string, string];
  for (const file of [disk, nvme]) {
    writeFileSync(file, '');
    truncateSync(file, 16 * 1024 * 1024);
  }
  const parameters = 'console=ttyS0 quiet panic=-1 mitigations=off nowatchdog rcupdate.rcu_cpu_stall_suppress=1';
  const qemu = [
    ...['qemu-system-x86_64', '-M', 'q35', '-accel', 'tcg,thread=multi', '-cpu', 'Nehalem', '-smp', '4', '-m', '1500'],
    ...['-display', 'none', '-no-reboot', '-nodefaults', '-kernel', places.kernel, '-initrd', initramfs],
    ...['-append', parameters, '-serial', `file:${serial}`, '-drive', `if=none,id=disk,format=raw,file=${disk}`],
    ...['-device', 'virtio-blk-pci,drive=disk,num-queues=4'],
    ...['-drive', `if=none,id=nvme,format=raw,file=${nvme}`, '-device', 'nvme,drive=nvme,serial=nvme,max_ioqpairs=4'],
    ...['-netdev', 'tap,id=nic,ifname=tap0,script=no,downscript=no,queues=4'],
    ...['-device', 'virtio-net-pci,netdev=nic,mq=on,vectors=10'],
  ];
  const script = `ip tuntap add dev tap0 mode tap multi_queue && ip link set tap0 up && exec "$@"`;
  const child = spawn('unshare', ['--net', 'sh', '-c', script, 'sh', ...qemu], { stdio: 'ignore' });
  const timer = setTimeout(() => child.kill('SIGKILL'), MAX_SECONDS * 1000);
  await once(child, 'exit');
  clearTimeout(timer);
  return readFileSync(serial, 'utf8');
}

describe('interrupts and kernel threads of an emulated machine', function () {
  needs('qemu');
  needs('root');
  needs('ethtool');
  this.timeout((BOOTS * MAX_SECONDS + 60) * 1000);
  const directory = mkdtempSync(join(tmpdir(), 'plumbline-'));
  let steps: readonly Step[];
  before(async function () {
    // The lab makes its kernel and disk at its first run (npm run test:lab).
    if (!(await isMade(places))) return skipFor({ name: 'the lab’s disk', install: 'npm run test:lab' }, this);
    steps = await runGuest(directory);
  });
  after(() => rmSync(directory, { recursive: true }));

  const at = (name: string) => {
    const step = steps.find((one) => one.step === name);
    assert.ok(step, name);
    return step;
  };
  /** What may run on these CPUs, besides interrupts that only the kernel sets. */
  const on = (values: Step['values'], cpus: string) =>
    Object.entries(values).flatMap(([name, list]) => {
      const isFixed = /^irq (?:timer|virtio\d+-req|nvme0q[1-9])/.test(name);
      return !isFixed && CpuSet.parse(list).intersects(CpuSet.parse(cpus)) ? [`${name}: ${list}`] : [];
    });

  it('leave owned CPUs', () => {
    assert.ok(on(at('before').values, '2-3').length > 10);
    assert.deepEqual(on(at('owned').values, '2-3'), []);
  });

  for (const [label, queue, expected] of [
    ['virtio-blk', /virtio\d+-req\.\d/, ['managed', 'managed']],
    ['NVMe, one for each CPU', /nvme0q[1-9]/, ['managed', 'managed']],
    ['the queue of NVMe’s administration, which is not one of them', /nvme0q0/, ['moved']],
  ] as const) {
    it(`are managed by the kernel for the queues of a disk: ${label}`, () => {
      const { states = [] } = at('owned');
      const of = states.filter((state) => queue.test(state)).map((state) => state.split(': ')[1]);
      assert.deepEqual(of, expected, states.join('\n'));
    });
  }

  it('that only the kernel sets are in the plan, with the boot option', () => {
    const { plan = [] } = at('owned');
    assert.match(plan.join('\n'), /interrupt +\d+ nvme0q3 .* managed$/m);
    assert.match(
      plan.join('\n'),
      /^ {2}5 interrupts of the kernel: isolcpus=managed_irq,CPUS, for the queues of disks$/m,
    );
  });

  for (const name of [
    'two queues',
    'four queues',
    'bound again',
    'CPU 1 offline',
    'CPU 1 online',
    'partition of CPU 1',
  ]) {
    it(`leave them again: ${name}`, () => {
      const { values, milliseconds = 0 } = at(name);
      assert.deepEqual(on(values, '2-3'), []);
      assert.ok(milliseconds < 5000, `${milliseconds} ms`);
    });
  }

  it('get released CPUs, and not those of a cpuset partition', () => {
    const { values, events, problems } = at('only CPU 3 owned');
    assert.deepEqual([values['workqueue'], values['default']], ['0,2', '0-2']);
    assert.deepEqual([events, problems], [[], []]);
  });

  it('have their originals when it is switched off', () => {
    const { values } = at('before');
    const after = at('switched off').values;
    const names = Object.keys(values).filter((name) => name in after);
    assert.ok(names.length > 30);
    assert.deepEqual(
      names.flatMap((name) =>
        values[name] === after[name] ? [] : [`${name}: ${values[name]} before, ${after[name]} after`],
      ),
      [],
    );
  });
});
