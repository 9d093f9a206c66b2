import { join } from 'node:path';
import { CpuSet } from '../../model/cpu-set.ts';
import { createHost, type Host, type HostDescription } from '../../model/host.ts';
import type { LocalClient } from '../clients/local-client.ts';
import { EmulatedKubelet } from '../kubelet/kubelet.ts';
import type { EmulatedKubeletSettings } from '../kubelet/settings.ts';
import { writeSysfs } from '../kubelet/sysfs.ts';
import type { KubePod } from '../objects.ts';
import { createGuests } from '../qemu/guests.ts';

/** A node; settings of its kubelet that are absent have the defaults in `settingsOf`. */
export interface NodeDescription extends Partial<Omit<EmulatedKubeletSettings, 'version' | 'host' | 'reserved'>> {
  readonly name: string;
  readonly host: HostDescription;
  /** CPU list of the CPUs that no container gets exclusively. Default: the first core. */
  readonly reserved?: string;
  readonly kubeletVersion?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly resources?: Readonly<Record<string, string>>;
  /** The QEMU stand-in for launchers (a JavaScript file). Default: launchers run nothing. */
  readonly guestProgram?: string;
}

export interface PodProcesses {
  isReady(pod: KubePod): boolean;
  /** The port on this machine for a port of the pod; undefined: nothing listens. */
  localPort(pod: KubePod, port: number): number | undefined;
  /** The file with the log of a container; undefined: no process of this machine stands for it. */
  logFile(pod: KubePod, container: string): string | undefined;
}

export type EmulatedNode = ReturnType<typeof createEmulatedNode>;

interface EmulatedNodeDeps {
  readonly directory: string;
  readonly client: LocalClient;
  readonly processes?: PodProcesses | undefined;
  readonly onFault: (error: unknown) => void;
}

/** A sysfs tree, a kubelet stand-in, and processes for the guests of its launchers. @throws HostError, ParseError */
export function createEmulatedNode(description: NodeDescription, deps: EmulatedNodeDeps) {
  const { name, labels, resources } = description;
  const host = createHost(description.host);
  const hostRoot = deps.directory;
  const kubeletDirectory = join(hostRoot, 'var/lib/kubelet');
  const sysfsRoot = join(hostRoot, 'sys');
  const cgroupRoot = join(sysfsRoot, 'fs/cgroup');
  const { guestProgram: program } = description;
  const guests = createGuests({ client: deps.client, cgroupRoot, online: host.online, program });
  const kubelet = new EmulatedKubelet({
    containers: guests,
    name,
    settings: settingsOf(description, host),
    directory: kubeletDirectory,
    client: deps.client,
    onFault: deps.onFault,
    ...(deps.processes && { isReady: (pod) => deps.processes?.isReady(pod) === true }),
    ...(labels && { labels }),
    ...(resources && { resources }),
  });
  return {
    name,
    host,
    /** Has the node's /sys, with the cgroups of launchers that run a guest, and its kubelet's directory. */
    hostRoot,
    /** Config.yaml, cpu_manager_state, the two socket directories. */
    kubeletDirectory,
    guestPids: guests.pidsOf,
    kubelet,
    async start() {
      await writeSysfs(sysfsRoot, host);
      await guests.open();
      await kubelet.start();
    },
    async stop() {
      await kubelet.stop();
      await guests.stopAll();
    },
  };
}

function settingsOf(description: NodeDescription, host: Host): EmulatedKubeletSettings {
  const { kubeletVersion: version = 'v1.36.0', reserved, cpuManagerPolicy = 'static' } = description;
  const { topologyManagerPolicy = 'best-effort', topologyManagerScope = 'container' } = description;
  const fullCores = { 'full-pcpus-only': 'true' };
  return {
    version,
    host,
    reserved: reserved === undefined ? (host.cores[0] ?? CpuSet.EMPTY) : CpuSet.parse(reserved),
    cpuManagerPolicy,
    cpuManagerPolicyOptions: description.cpuManagerPolicyOptions ?? (cpuManagerPolicy === 'static' ? fullCores : {}),
    topologyManagerPolicy,
    topologyManagerScope,
  };
}
