import type { Host, HostDescription } from '../../model/host.ts';
import { groupCpus } from '../../model/host-sysfs.ts';

export function describeHost(host: Host): HostDescription {
  return {
    cells: host.cells.map(({ id, cpus }) => ({ id, cpus: cpus.toString() })),
    cores: host.cores.map((core) => core.toString()),
    sockets: groupCpus(host.cpus, ({ socket }) => socket),
    uncores: groupCpus(host.cpus, ({ uncore }) => uncore),
  };
}
