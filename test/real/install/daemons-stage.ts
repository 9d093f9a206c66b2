import { execFileSync } from 'node:child_process';
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type DaemonProcess, startDaemon } from '../../../cli/demo/daemons.ts';
import type { SwitchProcesses } from '../../../cli/demo/open-vswitch.ts';
import { addSwitch } from '../../../cli/demo/plumbline.ts';
import { root } from '../../support/bundles.ts';
import { freePort } from '../../support/processes.ts';
import { shippedNodeOptions } from '../../support/shipped.ts';
import type { Undo } from '../../support/stage.ts';
import type { ControlPlane, KubernetesObject } from '../control-plane-stage.ts';
import type { NodeStandIn } from './node-stand-in.ts';
import { objectsOf, render } from './rendered-fixture.ts';

export const SYSTEM = 'plumbline-system';
export const DPUS = 'plumbline-dpu';
export const [WORKER, DPU_WORKER] = ['worker', 'worker-dpu'];
/** In seconds. */
export const [INTERVAL, DURATION] = [1, 4];

export interface Images {
  readonly dist: string;
  path(image: string, file: string): string;
}

export function buildImages(directory: string): Images {
  const env = { ...process.env, PLUMBLINE_DIST: join(directory, 'dist') };
  const names = ['webhook', 'scheduler-plugin', 'node-agent', 'console'];
  const out = join(directory, 'images');
  const args = ['run', '--silent', 'build:image', '--', ...names, '--out', out];
  execFileSync('npm', args, { cwd: root, env, stdio: ['ignore', 'ignore', 'pipe'] });
  // The stand-in for Open vSwitch is in no image, and needs koffi.
  symlinkSync(join(root, 'node_modules'), join(env.PLUMBLINE_DIST, 'node_modules'));
  return { dist: env.PLUMBLINE_DIST, path: (image, path) => join(out, image, path) };
}

interface Arguments {
  readonly args?: readonly string[];
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
}

export interface Workload extends KubernetesObject {
  readonly spec: {
    readonly template: {
      readonly spec: { readonly containers: readonly Arguments[]; initContainers?: readonly Arguments[] };
    };
  };
}

function workload(objects: readonly KubernetesObject[], name: string): Workload {
  const found = objects.find(
    ({ kind, metadata }) => ['Deployment', 'DaemonSet'].includes(kind) && metadata.name === name,
  );
  if (found === undefined) throw new Error(`there is no workload ${name}`);
  return found as Workload;
}

export const agentOf = (objects: readonly KubernetesObject[], node: string) =>
  workload(objects, node === DPU_WORKER ? 'plumbline-node-agent-dpu-host' : 'plumbline-node-agent');

export interface Starting {
  readonly plane: ControlPlane;
  readonly objects: readonly KubernetesObject[];
  readonly images: Images;
  readonly directory: string;
  readonly nodes: ReadonlyMap<string, NodeStandIn>;
  readonly ovs: SwitchProcesses;
  readonly undo: Undo;
}

const LOCAL = ['--probe-host', '127.0.0.1', '--probe-port', '0'];
const LEASE = ['--dpu-node-lease-renew-interval', String(INTERVAL), '--dpu-node-lease-duration', String(DURATION)];

/** Starts each daemon with the arguments of its manifest, followed by the paths on this machine. */
export function starter({ plane, objects, images, directory, nodes, ovs, undo }: Starting) {
  let count = 0;
  const start = async (image: string, args: readonly string[]): Promise<DaemonProcess> => {
    const program = images.path(image, `plumbline/${image}.cjs`);
    const daemon = startDaemon({
      name: `${image}-${++count}`,
      program,
      args,
      directory,
      env: { ...shippedNodeOptions(image as Parameters<typeof shippedNodeOptions>[0]), ...settingsOf(image) },
    });
    undo(() => daemon.stop());
    await daemon.ports();
    return daemon;
  };
  const settingsOf = (image: string): Record<string, string> => {
    const found = objects.find(({ kind, metadata }) => kind === 'Deployment' && metadata.name === `plumbline-${image}`);
    const [container] = (found as Workload | undefined)?.spec.template.spec.containers ?? [];
    const settings = (container?.env ?? []).flatMap(({ name, value }) => {
      return name.startsWith('PLUMBLINE_') && value !== undefined ? [[name, value] as const] : [];
    });
    return Object.fromEntries(settings);
  };
  const shipped = ({ spec }: Workload) =>
    (spec.template.spec.containers[0]?.args ?? []).map((arg) => arg.replace('$(PLUMBLINE_HOST_IP)', '127.0.0.1'));
  const secret = async (name: string) => {
    const path = `/api/v1/namespaces/${SYSTEM}/secrets/${name}-tls`;
    const { data } = (await plane.client.get(path)) as { data: Record<string, string> };
    const file = (key: string) => join(directory, `${name}-${key}`);
    for (const key of ['tls.crt', 'tls.key']) {
      writeFileSync(file(key), Buffer.from(data[key] ?? '', 'base64'), { mode: 0o600 });
    }
    return { certFile: file('tls.crt'), keyFile: file('tls.key') };
  };
  const webhookArgs = async (): Promise<string[]> => {
    const name = 'plumbline-webhook';
    const { certFile, keyFile } = await secret(name);
    return [
      ...shipped(workload(objects, name)),
      ...['--host', '127.0.0.1', '--port', String(await freePort()), ...LOCAL],
      ...['--cert-file', certFile, '--key-file', keyFile],
      ...['--kubeconfig', await plane.accountKubeconfig('webhook', SYSTEM, name)],
    ];
  };
  return {
    startWebhook: async () => start('webhook', await webhookArgs()),
    async startSidecar(hostName: string) {
      const { spec } = workload(objects, 'plumbline-scheduler');
      const [extender] = spec.template.spec.initContainers ?? [];
      return start('scheduler-plugin', [
        ...(extender?.args ?? []),
        ...['--port', String(await freePort()), ...LOCAL, '--pod-name', hostName],
        ...['--kubeconfig', await plane.accountKubeconfig(`extender-${hostName}`, SYSTEM, 'plumbline-scheduler')],
      ]);
    },
    async startConsole() {
      const [container] = workload(objects, 'plumbline-console').spec.template.spec.containers;
      const kubeconfig = await plane.accountKubeconfig('console', SYSTEM, 'plumbline-console');
      return start('console', [
        ...(container?.args ?? []),
        ...['--address', '127.0.0.1:0', ...LOCAL, '--kubeconfig', kubeconfig],
      ]);
    },
    async startAgent(name: string, ...more: readonly string[]) {
      const node = nodes.get(name);
      const pod = `agent-${name}`;
      const networkMap = join(directory, name, 'networks.yaml');
      writeFileSync(networkMap, 'physnets: { physnet0: { numaNodes: [0] } }\n');
      return start('node-agent', [
        ...shipped(agentOf(objects, name)),
        ...[
          '--node-name',
          name,
          '--kubeconfig',
          await plane.accountKubeconfig(pod, SYSTEM, 'plumbline-node-agent', pod),
        ],
        ...['--host-root', node?.hostRoot ?? '', '--kubelet-endpoint', node?.endpoint ?? ''],
        ...['--network-map', networkMap],
        ...LOCAL,
        ...LEASE,
        ...more,
      ]);
    },
    async startDpu(rundir = ovs.rundir) {
      const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: DPU_WORKER, namespace: DPUS } };
      await plane.create(account);
      const hostRoot = join(directory, `${DPU_WORKER}-dpu`);
      await addSwitch(hostRoot, rundir);
      const kubeconfig = await plane.kubeconfig('dpu', 'none');
      const tokenFile = join(directory, 'dpu.token');
      // As in docs/reference/dpu.md: the kubeconfig names a file, which the agent replaces.
      writeFileSync(kubeconfig, readFileSync(kubeconfig, 'utf8').replace('token: none', `tokenFile: ${tokenFile}`));
      writeFileSync(tokenFile, await plane.serviceAccountToken(DPUS, DPU_WORKER), { mode: 0o600 });
      return start('node-agent', [
        ...shipped(workload(objectsOf(render('overlays/dpu')), 'plumbline-node-agent-dpu')),
        ...['--node-name', DPU_WORKER, '--kubeconfig', kubeconfig],
        ...['--host-root', hostRoot, ...LOCAL, ...LEASE],
      ]);
    },
  };
}
