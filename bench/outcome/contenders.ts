import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { sidecarConfiguration } from '../../cli/demo/cluster.ts';
import { startDaemon } from '../../cli/demo/daemons.ts';
import type { KubeClient } from '../../kube/client.ts';
import { ALIGN_ANNOTATION, ALIGN_WHOLE_CORES, NAMESPACE, SCHEDULER, WEBHOOK } from '../../model/names.ts';
import { createCertificateAuthority } from '../../sandbox/certificates.ts';
import type { ControlPlane } from '../../test/real/control-plane-stage.ts';
import { callOf, isWebhookConfiguration } from '../../test/real/demo/webhook-configurations-fixture.ts';
import { objectsOf, render } from '../../test/real/install/rendered-fixture.ts';
import { dist, root } from '../../test/support/bundles.ts';
import { freePort, startProgram } from '../../test/support/processes.ts';
import { shippedNodeOptions } from '../../test/support/shipped.ts';
import { until } from '../../test/support/until.ts';
import type { Fleet } from './fleets.ts';
import { agentReports, NO_PUBLISHER, type Publisher, resourceTopologies } from './publishers.ts';
import { RESOURCE_TOPOLOGY_DEFINITION } from './resource-topology.ts';
import { EVEN_PARITY } from './stream.ts';

export const CONTENDERS = ['kubevirt', 'even-parity', 'nrt', 'plumbline'] as const;
export type Contender = (typeof CONTENDERS)[number];

export const TITLES: Readonly<Record<Contender, string>> = {
  kubevirt: 'KubeVirt',
  'even-parity': 'KubeVirt, even parity',
  nrt: 'NodeResourceTopologyMatch',
  plumbline: 'Plumbline',
};

/** Environment variable with the directory of a kube-scheduler that has NodeResourceTopologyMatch. */
export const NRT_ASSETS = 'NRT_SCHEDULER_ASSETS';

/** The path of that kube-scheduler; undefined if the variable is not set or the file does not exist. */
export function nrtScheduler(env: NodeJS.ProcessEnv = process.env): string | undefined {
  const directory = env[NRT_ASSETS];
  const path = directory === undefined ? undefined : join(directory, 'kube-scheduler');
  return path !== undefined && existsSync(path) ? path : undefined;
}

/** The components that place VMs, in addition to the API server and the kubelets. */
export interface Placement {
  /** Annotations of every VM's template. */
  readonly annotations: Readonly<Record<string, string>>;
  /** Process ids by part. */
  readonly parts: Readonly<Record<string, number>>;
  stop(): Promise<void>;
}

export interface PlacementOptions {
  readonly plane: ControlPlane;
  readonly fleet: Fleet;
  /** The client with which daemons on the nodes report. */
  readonly reports: KubeClient;
  readonly onFault: (error: unknown) => void;
}

/** A contender before the run. */
export interface Prepared {
  /** Creates the CRDs that are needed before the nodes. */
  define(): Promise<void>;
  /** The reports of daemons on the nodes. */
  readonly publisher: Publisher;
  /** Starts the schedulers after the nodes and their reports exist. */
  start(): Promise<Placement>;
}

const NOTHING = async () => undefined;
const EVEN = { [EVEN_PARITY]: '' };

export function prepare(contender: Contender, options: PlacementOptions): Prepared {
  switch (contender) {
    case 'kubevirt':
      return plain(options, {});
    case 'even-parity':
      return plain(options, EVEN);
    case 'nrt':
      return resourceTopologyMatch(options);
    case 'plumbline':
      return plumbline(options);
  }
}

function plain({ plane }: PlacementOptions, annotations: Placement['annotations']): Prepared {
  return {
    define: NOTHING,
    publisher: NO_PUBLISHER,
    async start() {
      const scheduler = await plane.startScheduler({ profiles: [{ schedulerName: 'default-scheduler' }] });
      return { annotations, parts: { scheduler: scheduler.pid }, stop: NOTHING };
    },
  };
}

/** As configured by the NUMA Resources Operator: the over-reserving cache, resynchronized every 5 s. */
const NRT_PROFILE = {
  schedulerName: 'default-scheduler',
  plugins: { multiPoint: { enabled: [{ name: 'NodeResourceTopologyMatch' }] } },
  pluginConfig: [
    {
      name: 'NodeResourceTopologyMatch',
      args: {
        cacheResyncPeriodSeconds: 5,
        cache: { informerMode: 'Dedicated', resyncMethod: 'Autodetect' },
        scoringStrategy: { type: 'LeastAllocated' },
      },
    },
  ],
};

/** The cluster's kube-scheduler with the plugin; VMs have KubeVirt's even parity. */
function resourceTopologyMatch({ plane, reports, onFault }: PlacementOptions): Prepared {
  const publisher = resourceTopologies(reports, onFault);
  return {
    define: () => plane.create(RESOURCE_TOPOLOGY_DEFINITION),
    publisher,
    async start() {
      const path = nrtScheduler();
      if (path === undefined) throw new Error(`${NRT_ASSETS} names no directory with a kube-scheduler`);
      const config = join(plane.directory, 'nrt-scheduler.yaml');
      await writeFile(
        config,
        stringify({
          apiVersion: 'kubescheduler.config.k8s.io/v1',
          kind: 'KubeSchedulerConfiguration',
          leaderElection: { leaderElect: false },
          clientConnection: { qps: 1000, burst: 2000, kubeconfig: plane.adminKubeconfig },
          profiles: [NRT_PROFILE],
        }),
      );
      const own = ['authentication', 'authorization'].flatMap((what) => [
        `--${what}-kubeconfig`,
        plane.adminKubeconfig,
      ]);
      const port = ['--bind-address', '127.0.0.1', '--secure-port', `${await freePort()}`];
      const log = join(plane.directory, 'nrt-scheduler.log');
      const program = startProgram('nrt-scheduler', path, ['--config', config, ...port, ...own], log);
      return {
        annotations: EVEN,
        parts: { scheduler: program.pid },
        stop: () => program.stop(),
      };
    },
  };
}

/** Kinds of other products, and workloads, which run as processes here. */
const LEFT_OUT = ['Certificate', 'Issuer', 'Deployment', 'DaemonSet'];

/** As shipped, with whole cores for all VMs (`webhook.alignment=auto`), so that they need no annotation. */
function plumbline({ plane, fleet, reports, onFault }: PlacementOptions): Prepared {
  const publisher = agentReports(reports, fleet, onFault);
  const shipped = objectsOf(render('base', ['components/align-all'])).filter(({ kind }) => !LEFT_OUT.includes(kind));
  return {
    async define() {
      await plane.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'ovn-kubernetes' } });
      await plane.create(...shipped.filter((object) => !isWebhookConfiguration(object)));
    },
    publisher,
    async start() {
      const authority = createCertificateAuthority('outcome');
      const directory = join(plane.directory, 'daemons');
      // A directory of its own: the webhook reads its certificate again after each change in it, as of a log.
      const certificate = join(directory, 'webhook-certificate');
      await mkdir(certificate, { recursive: true });
      const { cert, key } = authority.issue([`${WEBHOOK}.${NAMESPACE}.svc`, '127.0.0.1']);
      const [certFile, keyFile] = [join(certificate, 'tls.crt'), join(certificate, 'tls.key')];
      await writeFile(certFile, cert);
      await writeFile(keyFile, key, { mode: 0o600 });
      const daemon = (name: 'webhook' | 'scheduler-plugin', args: readonly string[]) =>
        startDaemon({
          name,
          program: join(dist, `${name}.cjs`),
          args: [
            ...args,
            ...['--port', '0', '--probe-host', '127.0.0.1', '--probe-port', '0'],
            ...['--kubeconfig', plane.adminKubeconfig],
          ],
          directory,
          env: shippedNodeOptions(name),
        });
      const serving = ['--host', '127.0.0.1', '--cert-file', certFile, '--key-file', keyFile];
      const webhook = daemon('webhook', [...serving, '--alignment', 'auto']);
      const extender = daemon('scheduler-plugin', []);
      await Promise.all([webhook.ready(), extender.ready()]);
      const { port } = await webhook.ports();
      await plane.create(...shipped.filter(isWebhookConfiguration).map((one) => callOf(one, port, authority.cert)));
      await untilAsked(plane);
      const configuration = await sidecarConfiguration(root, (await extender.ports()).port);
      const scheduler = await plane.startScheduler(configuration, { kubeconfig: plane.adminKubeconfig });
      return {
        annotations: {},
        parts: { scheduler: scheduler.pid, extender: extender.pid, webhook: webhook.pid },
        async stop() {
          await Promise.all([webhook.stop(), extender.stop()]);
        },
      };
    },
  };
}

/**
 * Waits until a pod that opts in gets its scheduler: the API server loads webhook configurations some time after they
 * are stored.
 */
async function untilAsked({ client }: ControlPlane): Promise<void> {
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { generateName: 'asks-', annotations: { [ALIGN_ANNOTATION]: ALIGN_WHOLE_CORES } },
    spec: { containers: [{ name: 'c', image: 'none', resources: { limits: { cpu: '2', memory: '1Gi' } } }] },
  };
  await until('the webhook to be called', async () => {
    const answer = await client.create('/api/v1/namespaces/default/pods', pod, { query: { dryRun: 'All' } });
    return (answer as { spec: { schedulerName: string } }).spec.schedulerName === SCHEDULER;
  });
}
