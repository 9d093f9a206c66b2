import { NODE_TOPOLOGIES, NODES } from '../../sandbox/api-server/built-in-types.ts';
import type { DemoContext } from './context.ts';
import { DEMO_NODES } from './nodes.ts';
import { DPU_LEASE_DURATION } from './plumbline.ts';
import { until } from './until.ts';

/** Starts the daemons and waits until every node has a report and advertises its networks. */
export async function installPlumbline({ cluster, printer, ovs, install }: DemoContext) {
  printer.lines(DEMO_NODES.map(({ name, about }) => `${name.padEnd(8)} ${about}`));
  const installed = await install();
  printer.progress('the daemons start');
  await installed.ready();
  await installed.wire();
  for (const { name, physnets } of DEMO_NODES) {
    await until(`the report of node ${name}`, 10, () => {
      const report = cluster.client.get(NODE_TOPOLOGIES, undefined, name);
      return report?.status === undefined ? undefined : report;
    });
    for (const physnet of Object.keys(physnets)) {
      const resource = `physnet.plumbline.dev/${physnet}`;
      await until(`node ${name} to advertise ${resource}`, 10, () => {
        const allocatable = cluster.client.get(NODES, undefined, name)?.status?.allocatable?.[resource];
        return allocatable !== undefined && allocatable !== '0' ? allocatable : undefined;
      });
    }
  }
  const processes = installed.daemons().map(({ name, pid }) => ({ name, pid }));
  printer.lines([
    processes.map(({ name, pid }) => `${name} (pid ${pid})`).join(', '),
    `Open vSwitch of node numa1: ${ovs.kind}, pids ${ovs.pids.join(' and ')}`,
    `DPU of node dpu: its lease counts for ${DPU_LEASE_DURATION} s`,
  ]);
  return { processes, openVswitch: ovs.kind };
}
