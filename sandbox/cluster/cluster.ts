import { randomBytes } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Components } from '../api-server/schema-check.ts';
import { ApiServer } from '../api-server/server.ts';
import type { Endpoint } from '../api-server/webhook-client.ts';
import { createCertificateAuthority } from '../certificates.ts';
import { createLocalClient } from '../clients/local-client.ts';
import { parseSchedulerConfiguration } from '../scheduler/configuration.ts';
import { Scheduler } from '../scheduler/scheduler.ts';
import type { MigrationSettings } from '../virt-controller/migrations.ts';
import { VirtController } from '../virt-controller/virt-controller.ts';
import { createEmulatedNode, type EmulatedNode, type NodeDescription, type PodProcesses } from './emulated-node.ts';
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
  const { directory, onFault = () => {} } = options;
  const routes = new Map<string, Endpoint>();
  const resolveService = (namespace: string, name: string) => routes.get(`${namespace}/${name}`);
  const kubelets = new Map<string, EmulatedNode['kubelet']>();
  const server = new ApiServer({
    resolveService,
    onFault,
    localPort: (pod, port) => options.processes?.localPort(pod, port),
    logFile: (pod, container) => options.processes?.logFile(pod, container),
    configz: (name) => kubelets.get(name)?.configz(),
    ...(options.port !== undefined && { port: options.port }),
    ...(options.components !== undefined && { components: options.components }),
  });
  const clientOf = (username: string) => createLocalClient(server, { username, groups: ['system:authenticated'] });
  const nodes = options.nodes.map((description) =>
    createEmulatedNode(description, {
      directory: join(directory, description.name),
      client: clientOf(`system:node:${description.name}`),
      processes: options.processes,
      onFault,
    }),
  );
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
