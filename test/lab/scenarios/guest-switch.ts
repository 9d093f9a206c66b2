import assert from 'node:assert/strict';
import { type OvsStatus, ovsStatus } from '../../../model/agent-status.ts';
import { CpuSet, unionOf } from '../../../model/cpu-set.ts';
import type { LabMachine } from '../lab.ts';
import type { Scene } from './scenario.ts';

const BRIDGES = ['br-lab-net0', 'br-lab-net1'] as const;
const TUNNEL_ADDRESS = '172.31.78.10';

/**
 * Configures the guest's Open vSwitch as an operator does: a bridge with a NIC of NUMA node 0 for physnet0, and one with
 * a NIC of node 1 for physnet1, which also has the tunnel's address. The previous configuration is restored at the end
 * of the scenario.
 */
export async function wireSwitch({ lab, undo }: Scene): Promise<void> {
  const nics = [await nicOf(lab, 0), await nicOf(lab, 1)] as const;
  const before = (await lab.run('ovs-vsctl get Open_vSwitch . external_ids')).trim();
  const homes: string[] = [];
  for (const nic of nics) homes.push((await lab.run(`ovs-vsctl port-to-br ${nic} 2>/dev/null || true`)).trim());
  undo(async () => {
    const back = homes.map((home, i) => (home === '' ? '' : `-- --may-exist add-port ${home} ${nics[i]}`));
    await lab.run(`ovs-vsctl ${BRIDGES.map((one) => `-- --if-exists del-br ${one}`).join(' ')} ${back.join(' ')}`);
    await lab.run(`ovs-vsctl set Open_vSwitch . 'external_ids=${before}'`);
  });

  const ports = nics.map((nic, i) => `-- add-port ${BRIDGES[i]} ${nic}`).join(' ');
  const free = nics.map((nic) => `-- --if-exists del-port ${nic}`).join(' ');
  const bridges = BRIDGES.map((bridge) => `-- --may-exist add-br ${bridge}`).join(' ');
  await lab.run(`ovs-vsctl ${free} ${bridges} ${ports}`);
  await lab.run(`ip addr replace ${TUNNEL_ADDRESS}/24 dev ${BRIDGES[1]} && ip link set ${BRIDGES[1]} up`);
  for (const nic of nics) await lab.run(`ip link set ${nic} up`);
  const ids = [
    `ovn-bridge-mappings=physnet0:${BRIDGES[0]},physnet1:${BRIDGES[1]}`,
    ...[`ovn-encap-ip=${TUNNEL_ADDRESS}`, 'ovn-encap-type=geneve'],
  ];
  await lab.run(`ovs-vsctl set Open_vSwitch . ${ids.map((id) => `external_ids:${id}`).join(' ')}`);
}

export async function nicOf(lab: LabMachine, node: number): Promise<string> {
  const file = '/sys/class/net/*/device/numa_node';
  const found = (await lab.run(`grep -lx ${node} ${file} | cut -d/ -f5`)).split('\n')[0];
  if (!found) throw new Error(`the guest has no NIC on NUMA node ${node} (${file})`);
  return found;
}

export const RUNDIR = '/var/run/openvswitch';
/** The file with which operators enable OVN-Kubernetes' own affinity, and Plumbline's. */
const ENABLER = '/etc/openvswitch/enable_dynamic_cpu_affinity';

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

export async function assertOff(scene: Scene, owned: string): Promise<void> {
  const { cells } = await scene.report();
  const all = unionOf(cells.map(({ cpus }) => CpuSet.parse(cpus)));
  assert.equal(await switchCpus(scene), all.minus(CpuSet.parse(owned)).toString());
}

export async function switchStatus({ lab }: Scene): Promise<OvsStatus> {
  const ask = 'fetch("http://127.0.0.1:8082/ovs").then((r) => r.text()).then(console.log)';
  return ovsStatus.parse(JSON.parse(await lab.run(`node -e '${ask}'`)));
}
