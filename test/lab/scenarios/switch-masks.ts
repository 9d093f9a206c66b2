import assert from 'node:assert/strict';
import { CpuSet, unionOf } from '../../../model/cpu-set.ts';
import type { Scene } from './scenario.ts';

export const RUNDIR = '/var/run/openvswitch';
/** The file by which operators switch OVN-Kubernetes' own duty on, and this one. */
export const ENABLER = '/etc/openvswitch/enable_dynamic_cpu_affinity';

/** Has the agent mind Open vSwitch, until the end of the scenario. */
export async function enableAffinity({ lab, undo }: Scene): Promise<void> {
  undo(() => lab.run(`rm -f ${ENABLER}`));
  await lab.run(`echo 1 >${ENABLER}`);
}

/** Turns it off while the agent runs, which gives the threads their own CPUs back. */
export async function disableAffinity({ lab }: Scene): Promise<void> {
  await lab.run(`rm -f ${ENABLER}`);
}

/** The CPUs of all of Open vSwitch's threads together, as the kernel has them. */
export async function switchCpus({ lab }: Scene): Promise<string> {
  const tasks = ['ovs-vswitchd', 'ovsdb-server'].map((name) => `/proc/$(cat ${RUNDIR}/${name}.pid)/task/*/status`);
  const lists = await lab.run(`grep -h Cpus_allowed_list ${tasks.join(' ')} | cut -f2 | sort -u`);
  return unionOf(lists.trim().split('\n').map(CpuSet.parse)).toString();
}

/** Every thread may run on what no pod owns, and nowhere else. */
export async function assertOff(scene: Scene, owned: string): Promise<void> {
  const { cells } = await scene.report();
  const all = unionOf(cells.map(({ cpus }) => CpuSet.parse(cpus)));
  assert.equal(await switchCpus(scene), all.minus(CpuSet.parse(owned)).toString());
}
