import { randomBytes } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CpuSet } from '../../model/cpu-set.ts';
import { createHost, type Host, type HostDescription } from '../../model/host.ts';
import type { ContainerProcesses } from '../api-server/requests.ts';
import type { Components } from '../api-server/schema-check.ts';
import { ApiServer } from '../api-server/server.ts';
import type { Endpoint } from '../api-server/webhook-client.ts';
import { createCertificateAuthority } from '../certificates.ts';
import { createLocalClient, type LocalClient } from '../clients/local-client.ts';
import { EmulatedKubelet } from '../kubelet/kubelet.ts';
import type { EmulatedKubeletSettings } from '../kubelet/managers.ts';
import { writeSysfs } from '../kubelet/sysfs.ts';
import type { KubePod } from '../objects.ts';
import { createGuests } from '../qemu/guests.ts';
import { parseSchedulerConfiguration } from '../scheduler/extender.ts';
import { Scheduler } from '../scheduler/scheduler.ts';
import type { MigrationSettings } from '../virt-controller/migrations.ts';
import { VirtController } from '../virt-controller/virt-controller.ts';
import { type Identity, identityUser, kubeconfig, nameOf } from './identities.ts';

interface SandboxOptions {
  /** An empty directory for all files. Keep the path short: Unix socket paths are limited to 107 bytes. */
  readonly directory: string;
  readonly nodes: readonly NodeDescription[];
  readonly port?: number;
  readonly components?: Components;
  readonly migrations?: Partial<MigrationSettings>;
  /** Processes that stand for containers. Default: every container is ready, and no port of a pod has a listener. */
  readonly processes?: PodProcesses;
  readonly onFault?: (error: unknown) => void;
}

/** With a kubelet for each node. @throws HostError, ParseError, SchedulerConfigurationError */
export function createSandbox(options: SandboxOptions) {
  const { directory, processes, port, components, onFault = () => {} } = options;
  const routes = new Map<string, Endpoint>();
  const resolveService = (namespace: string, name: string) => routes.get(`${namespace}/${name}`);
  const kubelets = new Map<string, EmulatedNode['kubelet']>();
  const server = new ApiServer({
    resolveService,
    onFault,
    port,
    components,
    processes,
    configz: (name) => kubelets.get(name)?.configz(),
  });
  const clientOf = (username: string) => createLocalClient(server, { username, groups: ['system:authenticated'] });
  const nodes = options.nodes.map((description) => {
    const { name } = description;
    const client = clientOf(`system:node:${name}`);
    return createEmulatedNode(description, { directory: join(directory, name), client, processes, onFault });
  });
  for (const { name, kubelet } of nodes) kubelets.set(name, kubelet);
  const virtController = new VirtController({
    client: clientOf('system:serviceaccount:kubevirt:kubevirt-controller'),
    migrations: options.migrations,
    exit: async ({ metadata: { uid = '' }, spec: { nodeName = '' } }) => kubelets.get(nodeName)?.exit(uid),
    onFault,
  });
  const schedulerClient = clientOf('system:kube-scheduler');
  /** The first is the cluster's own, without extenders. */
  const schedulers: Scheduler[] = [new Scheduler({ client: schedulerClient, onFault })];
  let running = false;

  return {
    server,
    client: createLocalClient(server, identityUser({ kind: 'admin' })),
    /** Issues serving certificates for daemons; its own certificate is for caBundle and caData. */
    authority: createCertificateAuthority('plumbline-sandbox-services'),
    nodes,
    node(name: string) {
      const match = nodes.find((node) => node.name === name);
      if (!match) throw new RangeError(`no node ${name}; there are ${nodes.map((node) => node.name).join(', ')}`);
      return match;
    },
    async kubeconfig(identity: Identity) {
      const token = randomBytes(16).toString('hex');
      server.addToken(token, identityUser(identity));
      const path = join(directory, `${nameOf(identity)}.kubeconfig`);
      await mkdir(directory, { recursive: true });
      await writeFile(path, kubeconfig({ server: server.url, ca: server.ca, token }), { mode: 0o600 });
      return path;
    },
    /** Sets the endpoint of a Service, for webhooks that use it. Undefined removes it. */
    route(namespace: string, service: string, endpoint: Endpoint | undefined) {
      if (endpoint) routes.set(`${namespace}/${service}`, endpoint);
      else routes.delete(`${namespace}/${service}`);
    },
    /** Another scheduler. @param hostName its name in its Lease @throws SchedulerConfigurationError */
    async addScheduler(text: unknown, hostName?: string) {
      const configuration = parseSchedulerConfiguration(text);
      const added = new Scheduler({ client: schedulerClient, configuration, hostName, onFault });
      schedulers.push(added);
      if (running) await added.start();
    },
    async start() {
      await server.start();
      running = true;
      for (const node of nodes) await node.start();
      virtController.start();
      for (const scheduler of schedulers) await scheduler.start();
    },
    async stop() {
      running = false;
      await Promise.all(schedulers.map((scheduler) => scheduler.stop()));
      await virtController.stop();
      await Promise.all(nodes.map((node) => node.stop()));
      await server.stop();
    },
  };
}

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

export interface PodProcesses extends ContainerProcesses {
  isReady(pod: KubePod): boolean;
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
  const { name, labels, resources, guestProgram: program } = description;
  const { client, onFault, processes, directory: hostRoot } = deps;
  const host = createHost(description.host);
  const kubeletDirectory = join(hostRoot, 'var/lib/kubelet');
  const sysfsRoot = join(hostRoot, 'sys');
  const guests = createGuests({ client, cgroupRoot: join(sysfsRoot, 'fs/cgroup'), online: host.online, program });
  const kubelet = new EmulatedKubelet({
    containers: guests,
    name,
    labels,
    resources,
    client,
    onFault,
    settings: settingsOf(description, host),
    directory: kubeletDirectory,
    isReady: processes && ((pod) => processes.isReady(pod)),
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
  const { reserved, cpuManagerPolicy = 'static' } = description;
  const { cpuManagerPolicyOptions = cpuManagerPolicy === 'static' ? { 'full-pcpus-only': 'true' } : {} } = description;
  return {
    version: description.kubeletVersion ?? 'v1.36.0',
    host,
    reserved: reserved === undefined ? (host.cores[0] ?? CpuSet.EMPTY) : CpuSet.parse(reserved),
    cpuManagerPolicy,
    cpuManagerPolicyOptions,
    topologyManagerPolicy: description.topologyManagerPolicy ?? 'best-effort',
    topologyManagerScope: description.topologyManagerScope ?? 'container',
  };
}
