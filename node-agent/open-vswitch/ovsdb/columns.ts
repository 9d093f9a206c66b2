import type { Columns } from './replica.ts';

/** The monitored columns: none that change all the time, such as statistics. */
export const COLUMNS: Columns = {
  Open_vSwitch: ['external_ids', 'other_config'],
  Bridge: ['name', 'ports', 'datapath_type'],
  Port: ['interfaces'],
  Interface: ['name', 'type', 'options', 'status', 'link_state'],
};

/** The monitored rows: neither tunnels to other nodes nor VMs' ports, which are no uplinks. */
const CONDITIONS: Readonly<Record<string, readonly unknown[]>> = {
  Interface: ['', 'system', 'internal', 'dpdk', 'patch', 'afxdp', 'afxdp-nonpmd'].map((type) => ['type', '==', type]),
};

export function monitorRequests() {
  const requests = Object.entries(COLUMNS).map(([table, columns]) => {
    return [table, [{ columns, where: CONDITIONS[table] ?? [true] }]];
  });
  return Object.fromEntries(requests);
}
