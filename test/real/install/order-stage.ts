import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from '../../support/bundles.ts';
import { pathOf } from '../../support/parts.ts';
import { type KubernetesObject, namespaceOf, podOf, startControlPlane } from '../control-plane-stage.ts';
import { startWebhook } from '../webhook/installed-stage.ts';
import {
  type CreatedPod,
  type CreatedVmi,
  launcherFor,
  sceneOf,
  type VmiOptions,
  virtualMachineInstance,
} from '../webhook/objects-fixture.ts';
import { SYSTEM } from './daemons-stage.ts';
import { kubectlEnvironment } from './rendered-fixture.ts';
import { createWayToTheCluster } from './services-stage.ts';

const TENANT = 'tenant';
const FULL = { 'kubevirt.io/CPUManagerPolicyBetaOptions': 'full-pcpus-only' };

export interface Verdict {
  readonly unrelated: string;
  /** A launcher with networks, of a VM that requests nothing. */
  readonly networks: string;
  /** The launcher of a VM that requests whole cores. */
  readonly asking: string;
  readonly aligned: string;
}

export const UNTOUCHED: Verdict = {
  unrelated: '3 CPUs',
  networks: '9 CPUs',
  asking: '9 CPUs',
  aligned: '3 CPUs',
};

export type OrderStage = Awaited<ReturnType<typeof startOrderStage>>;

export async function startOrderStage(definitions: readonly KubernetesObject[]) {
  const directory = mkdtempSync(join(tmpdir(), 'plumbline-order-'));
  const way = await createWayToTheCluster(directory);
  writeFileSync(join(directory, 'egress.yaml'), way.configuration);
  const plane = await startControlPlane({
    apiServerArgs: ['--egress-selector-config-file', join(directory, 'egress.yaml')],
  });
  await plane.create(namespaceOf(TENANT), ...definitions);
  const env = kubectlEnvironment(plane.adminKubeconfig);
  let stopWebhook = async () => {};
  const kubectl = (args: readonly string[], input = '') => {
    const { status, stderr } = spawnSync(pathOf('kubectl'), args, { input, env, encoding: 'utf8' });
    return { status: status ?? 1, said: stderr.trim() };
  };
  const scene = sceneOf(plane.client);
  const hasVms = definitions.some(({ metadata }) => metadata.name === 'virtualmachineinstances.kubevirt.io');
  const pods = `/api/v1/namespaces/${TENANT}/pods`;
  const outcome = async (pod: object) =>
    plane.client.create(pods, pod, { query: { dryRun: 'All' } }).then(
      (created) => `${(created as CreatedPod).spec.containers[0]?.resources.limits['cpu']} CPUs`,
      (error: Error) => error.message,
    );
  const launcher = async (name: string, options: VmiOptions) => {
    const { metadata, ...missing } = virtualMachineInstance(name, options);
    const unknown = { ...missing, metadata: { ...metadata, uid: name } } as CreatedVmi;
    return outcome(launcherFor(hasVms ? await scene.vmi(name, options) : unknown, { cpu: '9' }));
  };
  const ordinary = (annotations: object) => {
    const amounts = { cpu: '3', memory: '1Gi' };
    const containers = [{ name: 'main', image: 'none', resources: { requests: amounts, limits: amounts } }];
    return outcome(podOf({ generateName: 'web-', namespace: TENANT, annotations }, { containers }));
  };

  return {
    plane,
    kubectl,
    /** Server-side, as in docs/tasks/install.md. */
    apply: (yaml: string, ...flags: readonly string[]) =>
      kubectl(['apply', '--server-side', ...flags, '-f', '-'], yaml),
    certificates() {
      const script = join(root, 'manifests/overlays/development/certificates.sh');
      const { status, stderr } = spawnSync(script, [], { env, encoding: 'utf8' });
      if (status !== 0) throw new Error(`certificates.sh: ${stderr}`);
    },
    /** As its pod would: with the content of the Secret, behind the Service. */
    async startWebhook() {
      const { data } = (await plane.client.get(`/api/v1/namespaces/${SYSTEM}/secrets/plumbline-webhook-tls`)) as {
        data: Record<string, string>;
      };
      const text = (name: string) => Buffer.from(data[name] ?? '', 'base64').toString();
      const webhook = await startWebhook(plane, { cert: text('tls.crt'), key: text('tls.key') });
      way.port = webhook.port;
      stopWebhook = webhook.stop;
      return {
        async stop() {
          stopWebhook = async () => {};
          await webhook.stop();
        },
      };
    },
    async verdict(): Promise<Verdict> {
      return {
        unrelated: await ordinary({}),
        networks: await launcher('networks', { networks: { data: 'data' } }),
        asking: await launcher('asking', { annotations: FULL }),
        aligned: await ordinary({ 'plumbline.dev/align': 'whole-cores' }),
      };
    },
    async isSwitchedOn() {
      const path = `/apis/rbac.authorization.k8s.io/v1/namespaces/${SYSTEM}/rolebindings/plumbline-webhook-required`;
      const { subjects = [] } = (await plane.client.get(path)) as { subjects?: readonly object[] };
      return subjects.length > 0;
    },
    async stop() {
      await stopWebhook();
      await plane.stop();
      await way.stop();
      rmSync(directory, { recursive: true });
    },
  };
}
