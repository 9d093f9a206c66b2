import { buildStage } from '../../support/stage.ts';
import { type KubernetesObject, namespaceOf, podOf, startControlPlane } from '../control-plane-stage.ts';
import { isSwitchedOn, startWebhook } from '../webhook/installed-stage.ts';
import {
  type CreatedPod,
  type CreatedVmi,
  launcherFor,
  sceneOf,
  type VmiOptions,
  virtualMachineInstance,
} from '../webhook/objects-fixture.ts';
import { createCertificates, kubectlOf, readSecret } from './rendered-fixture.ts';
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
  return buildStage('plumbline-order-', async (directory, undo) => {
    const way = await createWayToTheCluster(directory);
    undo(way.stop);
    const plane = await startControlPlane({ apiServerArgs: way.apiServerArgs });
    undo(plane.stop);
    await plane.create(namespaceOf(TENANT), ...definitions);
    const kubectl = kubectlOf(plane);
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
      certificates: () => createCertificates(plane),
      /** As its pod would: with the content of the Secret, behind the Service. */
      async startWebhook() {
        const secret = await readSecret(plane, 'plumbline-webhook-tls');
        const webhook = await startWebhook(plane, { cert: secret('tls.crt'), key: secret('tls.key') });
        way.port = webhook.port;
        let isStopped = false;
        const stop = async () => {
          if (!isStopped) await webhook.stop();
          isStopped = true;
        };
        undo(stop);
        return { stop };
      },
      async verdict(): Promise<Verdict> {
        return {
          unrelated: await ordinary({}),
          networks: await launcher('networks', { networks: { data: 'data' } }),
          asking: await launcher('asking', { annotations: FULL }),
          aligned: await ordinary({ 'plumbline.dev/align': 'whole-cores' }),
        };
      },
      isSwitchedOn: () => isSwitchedOn(plane),
    };
  });
}
