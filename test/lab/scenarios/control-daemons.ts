import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { createCertificateAuthority } from '../../../sandbox/certificates.ts';
import { kubeconfig } from '../../../sandbox/cluster/identities.ts';
import { serverOf } from '../../faults/world/api-gate.ts';
import { writeCertificate } from '../../real/certificates-fixture.ts';
import { binary, type KubernetesObject } from '../../real/control-plane-stage.ts';
import { callOf, isWebhookConfiguration, objectsOf, render, untilCalled } from '../../real/install/rendered-fixture.ts';
import { configurationAt } from '../../real/scheduler/stage.ts';
import { FOREIGN_DEFINITIONS } from '../../real/webhook/crds-fixture.ts';
import { dist } from '../../support/bundles.ts';
import { freePort, startProgram } from '../../support/processes.ts';
import { applyObjects, deleteObjects } from './guest-agent.ts';
import type { Scene } from './scenario.ts';

export const SCHEDULER = 'plumbline-lab';
const SYSTEM = 'plumbline-system';
const LEFT_OUT = ['Deployment', 'DaemonSet', 'Certificate', 'Issuer'];

/**
 * Starts webhook and extender as processes of this machine, next to the API server, with the shipped RBAC, policies and
 * configurations, which point to loopback instead of Services. They are removed at the end of the scenario.
 * @param definitions of other products that need not be installed
 */
export async function startControlDaemons(
  scene: Scene,
  definitions: readonly KubernetesObject[] = FOREIGN_DEFINITIONS,
): Promise<void> {
  const { lab, cluster, holds, undo } = scene;
  const directory = await mkdtemp(join(tmpdir(), 'plumbline-lab-'));
  undo(() => rm(directory, { recursive: true }));
  const authority = createCertificateAuthority('plumbline-lab');
  const [certFile, keyFile] = await writeCertificate(directory, 'tls', authority, ['127.0.0.1']);
  const base = baseObjects();
  undo(async () =>
    deleteObjects(
      lab,
      base.filter(({ apiVersion }) => apiVersion.startsWith('admissionregistration.k8s.io/')),
    ),
  );
  applyObjects(lab, definitions);
  applyObjects(
    lab,
    base.filter((one) => !isWebhookConfiguration(one)),
  );

  /** @returns its serving and probe addresses */
  const start = async (name: string, ...args: readonly string[]) => {
    const file = await accountConfig(scene, directory, `plumbline-${name}`, SYSTEM);
    const [port, probePort] = [await freePort(), await freePort()];
    const command = [
      join(dist, `${name}.cjs`),
      ...['--host', '127.0.0.1', '--port', String(port), '--kubeconfig', file],
      ...['--probe-host', '127.0.0.1', '--probe-port', String(probePort)],
      ...args,
    ];
    const program = startProgram(name, process.execPath, command, join(directory, `${name}.log`));
    undo(() => program.stop());
    await holds(`the ${name} is ready with its own service account`, async () => {
      program.assertAlive();
      if (!(await fetch(`http://127.0.0.1:${probePort}/readyz`)).ok) throw new Error('not ready');
    });
    return { port, probePort };
  };
  const webhook = await start('webhook', '--cert-file', certFile, '--key-file', keyFile);
  applyObjects(
    lab,
    base.filter(isWebhookConfiguration).map((one) => callOf(one, webhook.port, authority.cert)),
  );
  await untilCalled(cluster);
  const extender = await start('scheduler-plugin', '--scheduler-lease', `${SYSTEM}/${SCHEDULER}`);
  await startScheduler(scene, directory, extender.port);
}

function baseObjects(): KubernetesObject[] {
  return objectsOf(render('base', ['scheduler/loopback'])).filter(({ kind }) => !LEFT_OUT.includes(kind));
}

export async function accountConfig(
  { lab, cluster }: Scene,
  directory: string,
  account: string,
  namespace: string,
): Promise<string> {
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`;
  const request = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 86_400 } };
  const { status } = (await cluster.client.create(path, request)) as { status: { token: string } };
  const { url: server, ca } = await serverOf(lab.kubeconfig());
  const file = join(directory, `${account}.kubeconfig`);
  await writeFile(file, kubeconfig({ server, ca, token: status.token }), { mode: 0o600 });
  return file;
}

async function startScheduler({ lab, undo }: Scene, directory: string, port: number): Promise<void> {
  const admin = lab.kubeconfig();
  const { extenders } = await configurationAt('loopback', port);
  const config = join(directory, 'scheduler.yaml');
  const settings = {
    apiVersion: 'kubescheduler.config.k8s.io/v1',
    kind: 'KubeSchedulerConfiguration',
    leaderElection: { leaderElect: true, resourceNamespace: SYSTEM, resourceName: SCHEDULER },
    clientConnection: { kubeconfig: admin },
    podMaxBackoffSeconds: 5,
    profiles: [{ schedulerName: SCHEDULER, percentageOfNodesToScore: 100 }],
    extenders,
  };
  await writeFile(config, stringify(settings));
  const args = [
    ...['--config', config, '--authentication-kubeconfig', admin, '--authorization-kubeconfig', admin],
    ...['--bind-address', '127.0.0.1', '--secure-port', String(await freePort())],
  ];
  const program = startProgram('kube-scheduler', binary('kube-scheduler'), args, join(directory, 'scheduler.log'));
  undo(() => program.stop());
}
