import { readMemory } from '../../hardware/memory.ts';
import { readIsolated, readOffline, readSysfs } from '../../hardware/sysfs.ts';
import { createHost } from '../../model/host.ts';
import { describeForKubelet, kubeletContradictions } from '../../model/host-sysfs.ts';
import type { AgentLogger } from '../telemetry/log-messages.ts';

/** Facts that do not change while the agent runs: the kubelet, too, reads the topology once. */
export type HostFacts = Awaited<ReturnType<typeof readHostFacts>>;

/** Reads the host once. It does not cache a failure, so a restarted duty reads again. */
export function createHostFacts(sysfsRoot: string, log: AgentLogger) {
  let current: HostFacts | undefined;
  let reading: Promise<HostFacts> | undefined;
  return {
    current: () => current,
    /** @throws SysfsError, HostError or ParseError if the host cannot be described */
    async read(): Promise<HostFacts> {
      reading ??= readHostFacts(sysfsRoot, log);
      try {
        current = await reading;
        return current;
      } catch (error) {
        reading = undefined;
        throw error;
      }
    },
  };
}

export type HostFactsReader = ReturnType<typeof createHostFacts>;

async function readHostFacts(sysfsRoot: string, log: AgentLogger) {
  const sysfs = await readSysfs(sysfsRoot);
  const description = describeForKubelet(sysfs);
  const host = createHost(description);
  const { cells, online, threadsPerCore } = host;
  const ids = cells.map(({ id }) => id);
  const memory = await readMemory(sysfsRoot, ids);
  const isolated = await readIsolated(sysfsRoot);
  const offline = await readOffline(sysfsRoot);
  const contradictions = kubeletContradictions(sysfs, host);
  const fields = { cpus: online, isolated, offline, numaNodes: ids, threadsPerCore };
  log.info({ ...fields, kubeletDiffers: contradictions }, 'host topology read');
  return {
    /** The host as the kubelet sees it. */
    description,
    host,
    memory,
    /** CPUs that the kernel's scheduler uses only for threads pinned to them (isolcpus). */
    isolated,
    offline,
    contradictions,
  };
}
