import { execSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { planLines } from '../../cli/interference/run.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { createAffinity } from '../../native/affinity.ts';
import { KernelFiles } from '../../node-agent/interrupts/kernel-files.ts';
import { createStage } from '../node-agent/interrupts/stage.ts';

/**
 * Runs in a guest with four CPUs, a NIC of four queues and a disk whose interrupts the kernel manages. The agent's duty
 * keeps everything off CPUs 2 and 3; each line says how the kernel's values were after a step.
 */

const affinity = createAffinity();
const WORKQUEUE = '/sys/devices/virtual/workqueue';
const DRIVER = '/sys/bus/virtio/drivers/virtio_net';
const MAX_MILLISECONDS = 20_000;
/** Threads that belong to one CPU, and those that follow an interrupt. */
const BOUND = /^(?:kworker|ksoftirqd|migration|cpuhp|idle_inject|irq)\b/;

const wait = (seconds: number) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return '';
  }
}

const handlers = () =>
  readdirSync('/sys/kernel/irq').filter((number) => read(`/sys/kernel/irq/${number}/actions`) !== '');

function snapshot(): Record<string, string> {
  const irqs = handlers().map((number) => [
    `irq ${read(`/sys/kernel/irq/${number}/actions`)}`,
    read(`/proc/irq/${number}/smp_affinity_list`),
  ]);
  const tids = [2, ...read('/proc/2/task/2/children').split(' ').map(Number)];
  const threads = tids.flatMap((tid) => {
    const name = read(`/proc/${tid}/comm`);
    return name === '' || BOUND.test(name) ? [] : [[`kthread ${name}`, String(CpuSet.fromWords(affinity.get(tid)))]];
  });
  const masks = [
    ['default', String(CpuSet.fromMask(read('/proc/irq/default_smp_affinity')))],
    ['workqueue', String(CpuSet.fromMask(read(`${WORKQUEUE}/cpumask`)))],
  ];
  return Object.fromEntries([...irqs, ...threads, ...masks]);
}

function print(step: string, more: object = {}): void {
  console.log(`@@ ${JSON.stringify({ step, values: snapshot(), ...more })}`);
}

const nicUses = (cpus: CpuSet) =>
  Object.entries(snapshot()).some(
    ([name, list]) => /^irq virtio\d+-(?:in|out)put/.test(name) && CpuSet.parse(list).intersects(cpus),
  );

/** Does a step that makes drivers set their masks, and waits until the NIC is off the CPUs again. */
async function step(name: string, cpus: CpuSet, work: () => void | Promise<void>): Promise<void> {
  await work();
  const begun = performance.now();
  while (nicUses(cpus) && performance.now() - begun < MAX_MILLISECONDS) await wait(0.05);
  const milliseconds = Math.round(performance.now() - begun);
  // Whatever the kernel does later.
  await wait(2);
  print(name, { milliseconds });
}

async function start(isMoving: boolean) {
  const stage = createStage('/tmp/state/interrupts.json');
  await stage.start({
    files: new KernelFiles(),
    affinity,
    isMoving,
    cpus: () => ({ online: CpuSet.parse(read('/sys/devices/system/cpu/online')), quiet: CpuSet.EMPTY, cells: [] }),
    nowSeconds: () => performance.now() / 1000,
  });
  return stage;
}

const shell = (command: string) => void execSync(command, { stdio: 'inherit' });

async function main(): Promise<void> {
  mkdirSync('/tmp/state', { recursive: true });
  const owned = CpuSet.parse('2-3');
  print('before');
  let stage = await start(true);
  await stage.own('2-3');
  const plan = planLines({ ...stage.moves.status(), vms: [] }, true);
  print('owned', { states: stage.states(), plan });
  await step('two queues', owned, () => shell('ethtool -L eth0 combined 2'));
  await step('four queues', owned, () => shell('ethtool -L eth0 combined 4'));
  const device = readdirSync(DRIVER).find((name) => name.startsWith('virtio')) ?? '';
  await step('bound again', owned, () => {
    writeFileSync(`${DRIVER}/unbind`, device);
    writeFileSync(`${DRIVER}/bind`, device);
  });
  await step('CPU 1 offline', owned, () => writeFileSync('/sys/devices/system/cpu/cpu1/online', '0'));
  await step('CPU 1 online', owned, () => writeFileSync('/sys/devices/system/cpu/cpu1/online', '1'));
  const cgroup = '/sys/fs/cgroup/isolated';
  await step('partition of CPU 1', owned, () => {
    shell(
      `mount -t cgroup2 none /sys/fs/cgroup && echo +cpuset >/sys/fs/cgroup/cgroup.subtree_control && mkdir ${cgroup}`,
    );
    shell(`echo 1 >${cgroup}/cpuset.cpus && echo isolated >${cgroup}/cpuset.cpus.partition`);
  });
  await stage.own('3');
  await wait(8);
  print('only CPU 3 owned', { events: stage.events, problems: stage.moves.status().problems });
  shell(`echo member >${cgroup}/cpuset.cpus.partition && rmdir ${cgroup}`);
  await wait(3);
  await stage.end();
  stage = await start(false);
  await wait(4);
  print('switched off');
  process.exit(0);
}

void main();
