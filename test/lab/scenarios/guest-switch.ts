import type { Lab } from '../lab.ts';
import type { Scene } from './scenario.ts';

const BRIDGES = ['br-lab-net0', 'br-lab-net1'] as const;
const BOND = 'bond-lab';
const TUNNEL_ADDRESS = '172.31.78.10';

/**
 * The guest's Open vSwitch as an operator configures it: a bridge with a NIC of NUMA node 0 for physnet0, and one with
 * a NIC of node 1 for physnet1, which also has the tunnel's address.
 */
export interface GuestSwitch {
  /** A NIC of NUMA node 0 and one of node 1. */
  readonly nics: readonly [string, string];
  /** Maps physnet0 and physnet1 to the given bridges. */
  map(physnet0: 0 | 1, physnet1: 0 | 1): Promise<void>;
  /** Puts both NICs into one bond of the second bridge. */
  bond(): Promise<void>;
  /** Returns each to its own bridge. */
  unbond(): Promise<void>;
  setLink(nic: string, state: 'up' | 'down'): Promise<void>;
}

/** Applies this configuration; the previous one is restored at the end of the scenario. */
export async function wireSwitch({ lab, undo }: Scene): Promise<GuestSwitch> {
  const nics = [await nicOf(lab, 0), await nicOf(lab, 1)] as const;
  const before = (await lab.run('ovs-vsctl get Open_vSwitch . external_ids')).trim();
  const homes: string[] = [];
  for (const nic of nics) homes.push((await lab.run(`ovs-vsctl port-to-br ${nic} 2>/dev/null || true`)).trim());
  undo(async () => {
    const back = homes.map((home, i) => (home === '' ? '' : `-- --may-exist add-port ${home} ${nics[i]}`));
    await lab.run(`ovs-vsctl ${BRIDGES.map((one) => `-- --if-exists del-br ${one}`).join(' ')} ${back.join(' ')}`);
    await lab.run(`ovs-vsctl set Open_vSwitch . 'external_ids=${before}'`);
  });

  const external = (ids: Readonly<Record<string, string>>) =>
    lab.run(
      `ovs-vsctl set Open_vSwitch . ${Object.entries(ids)
        .map(([key, value]) => `external_ids:${key}=${value}`)
        .join(' ')}`,
    );
  const ports = (verb: string) => nics.map((nic, i) => `-- ${verb} ${BRIDGES[i]} ${nic}`).join(' ');
  const free = nics.map((nic) => `-- --if-exists del-port ${nic}`).join(' ');
  const made: GuestSwitch = {
    nics,
    async map(physnet0, physnet1) {
      await external({ 'ovn-bridge-mappings': `physnet0:${BRIDGES[physnet0]},physnet1:${BRIDGES[physnet1]}` });
    },
    async bond() {
      await lab.run(`ovs-vsctl ${free} -- add-bond ${BRIDGES[1]} ${BOND} ${nics.join(' ')}`);
    },
    async unbond() {
      await lab.run(`ovs-vsctl del-port ${BOND} ${ports('add-port')}`);
    },
    async setLink(nic, state) {
      await lab.run(`ip link set ${nic} ${state}`);
    },
  };
  const bridges = BRIDGES.map((bridge) => `-- --may-exist add-br ${bridge}`).join(' ');
  await lab.run(`ovs-vsctl ${free} ${bridges} ${ports('add-port')}`);
  await lab.run(`ip addr replace ${TUNNEL_ADDRESS}/24 dev ${BRIDGES[1]} && ip link set ${BRIDGES[1]} up`);
  for (const nic of nics) await made.setLink(nic, 'up');
  await made.map(0, 1);
  await external({ 'ovn-encap-ip': TUNNEL_ADDRESS, 'ovn-encap-type': 'geneve' });
  return made;
}

/** The first NIC whose device is on that NUMA node. */
async function nicOf(lab: Lab, node: number): Promise<string> {
  const file = '/sys/class/net/*/device/numa_node';
  const found = (await lab.run(`grep -lx ${node} ${file} | cut -d/ -f5`)).split('\n')[0];
  if (!found) throw new Error(`the guest has no NIC on NUMA node ${node} (${file})`);
  return found;
}
