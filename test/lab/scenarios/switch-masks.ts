import assert from 'node:assert/strict';
import { type OvsStatus, ovsStatus } from '../../../model/agent-status.ts';
import { CpuSet, unionOf } from '../../../model/cpu-set.ts';
import type { Scene } from './scenario.ts';

export const RUNDIR = '/var/run/openvswitch';
/** The file with which operators enable OVN-Kubernetes' own affinity, and Plumbline's. */
const ENABLER = '/etc/openvswitch/enable_dynamic_cpu_affinity';

/** Enables OVS affinity until the end of the scenario. */
export async function enableAffinity({ lab, undo }: Scene): Promise<void> {
  undo(() => lab.run(`rm -f ${ENABLER}`));
  await lab.run(`echo 1 >${ENABLER}`);
}

/** The CPUs of all of Open vSwitch's threads together, from the kernel. */
export async function switchCpus({ lab }: Scene): Promise<string> {
  const tasks = ['ovs-vswitchd', 'ovsdb-server'].map((name) => `/proc/$(cat ${RUNDIR}/${name}.pid)/task/*/status`);
  const lists = await lab.run(`grep -h Cpus_allowed_list ${tasks.join(' ')} | cut -f2 | sort -u`);
  return unionOf(
    lists
      .trim()
      .split('\n')
      .map((list) => CpuSet.parse(list)),
  ).toString();
}

/** Every thread may run only on CPUs without an owner. */
export async function assertOff(scene: Scene, owned: string): Promise<void> {
  const { cells } = await scene.report();
  const all = unionOf(cells.map(({ cpus }) => CpuSet.parse(cpus)));
  assert.equal(await switchCpus(scene), all.minus(CpuSet.parse(owned)).toString());
}

/** The agent's own status of Open vSwitch. */
export async function switchStatus({ lab }: Scene): Promise<OvsStatus> {
  const ask = 'fetch("http://127.0.0.1:8082/ovs").then((r) => r.text()).then(console.log)';
  return ovsStatus.parse(JSON.parse(await lab.run(`node -e '${ask}'`)));
}
