import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { kubeconfig } from '../../../sandbox/api-server/kubeconfig.ts';
import { createCertificateAuthority } from '../../../sandbox/certificates.ts';
import { KUBEVIRT, reachable } from '../../kubevirt/install-strategy.ts';
import type { KubernetesObject } from '../../real/control-plane.ts';
import { isWebhookConfiguration } from '../../real/demo/webhook-configurations.ts';
import { freePort, startProgram } from '../../real/processes.ts';
import { serverOf } from '../scenarios/control-daemons.ts';
import { applyObjects, deleteObjects } from '../scenarios/guest-agent.ts';
import type { Scene } from '../scenarios/scenario.ts';
import { kubeVirtAsset } from './assets.ts';
import { LAUNCHER_IMAGE, writeKubeVirtImages } from './images.ts';
import { firstObjects, HANDLER_CLIENT, KUBEVIRT_CR, KUBEVIRT_STATUS, secretsOf, strategyOf } from './objects.ts';

/** Of the guest, where virt-api runs: it calls virt-handler's pod. */
const API_HOME = '/opt/plumbline-lab/kubevirt';
const API_UNIT = 'plumbline-lab-virt-api';
const API_PORT = 8443;
const ARCHIVE = `${API_HOME}/images.tar`;
const VIRT_CLIENT = `/apis/kubevirt.io/v1/namespaces/${KUBEVIRT}/kubevirts/kubevirt`;
/** Seconds: gigabytes through the emulated disk, and a libvirt that asks QEMU what it can do. */
const IMPORTED = 900;
const HANDLER_READY = 900;

/**
 * Installs the real KubeVirt: virt-handler as its DaemonSet on the lab's node, virt-api as a program of the guest,
 * virt-controller on the machine of the API server. At the end of the scenario its webhooks, its API and its DaemonSet are taken away;
 * the definitions stay.
 */
export async function installKubeVirt(scene: Scene): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'plumbline-lab-'));
  scene.undo(() => rm(directory, { recursive: true }));
  const daemonSets = await installControl(scene, directory);
  await importImages(scene, directory);
  await installOnNode(scene, daemonSets);
}

/** All but what runs on nodes. @returns the DaemonSets */
export async function installControl(scene: Scene, directory: string): Promise<readonly KubernetesObject[]> {
  const { lab, cluster, holds, undo } = scene;
  applyObjects(lab, firstObjects());
  const strategy = await strategyOf(cluster.client, lab.kubeconfig());
  const authority = createCertificateAuthority('kubevirt-ca');
  await installObjects(scene, strategy, authority.cert, secretsOf(authority));

  await startVirtApi(scene, directory, authority);
  const { port, program } = await lab.forward(API_PORT);
  undo(() => program.stop());
  const reached = reachable(strategy, port, authority.cert);
  undo(async () => deleteObjects(lab, reached));
  await holds('virt-api answers', async () => {
    program.assertAlive();
    assert.match(await lab.run(ASK_HEALTH), /apiserver/);
  });
  applyObjects(lab, reached);
  await holds('the API server serves KubeVirt’s API', async () => {
    await cluster.client.get('/apis/subresources.kubevirt.io/v1');
  });
  await startVirtController(scene, directory, authority);
  return strategy.filter(({ kind }) => kind === 'DaemonSet');
}

async function installOnNode(scene: Scene, daemonSets: readonly KubernetesObject[]): Promise<void> {
  const { lab, cluster, holds, undo, node } = scene;
  undo(async () => deleteObjects(lab, daemonSets));
  applyObjects(lab, daemonSets);
  await holds(
    'virt-handler, of the DaemonSet that virt-operator makes, is Ready',
    async () => {
      const path = `/apis/apps/v1/namespaces/${KUBEVIRT}/daemonsets/virt-handler`;
      const { status } = (await cluster.client.get(path)) as { status: { numberReady: number } };
      assert.equal(status.numberReady, 1, await handlerState(scene));
    },
    HANDLER_READY,
  );
  await holds('it labels the node: schedulable, with a static CPU manager', async () => {
    const { metadata } = (await cluster.client.get(`/api/v1/nodes/${node.name}`)) as {
      metadata: { labels: Record<string, string> };
    };
    assert.equal(metadata.labels['kubevirt.io/schedulable'], 'true');
    assert.equal(metadata.labels['cpumanager'], 'true');
    const models = Object.keys(metadata.labels).filter((name) => name.startsWith('cpu-model.node.kubevirt.io/'));
    return `${models.length} CPU models`;
  });
}

/** Its certificate is of an authority that the guest does not know. */
const ASK_HEALTH = `NODE_TLS_REJECT_UNAUTHORIZED=0 node -e 'fetch("https://127.0.0.1:${API_PORT}/healthz").then((r) => r.text()).then(console.log)' 2>/dev/null`;

async function importImages({ lab, holds }: Scene, directory: string): Promise<void> {
  const present = async () => (await lab.run('ctr -n k8s.io images ls -q')).includes(LAUNCHER_IMAGE);
  if (await present()) return;
  const archive = join(directory, 'images.tar');
  await writeKubeVirtImages(lab.places, directory, archive, console.error);
  await lab.copy(archive, ARCHIVE);
  await holds(
    'containerd takes the images of virt-launcher and virt-handler, with libvirt and QEMU of Debian',
    async () => {
      await lab.run(`ctr -n k8s.io images import --local ${ARCHIVE} && rm ${ARCHIVE}`);
    },
    IMPORTED,
  );
}

async function installObjects(
  { lab, cluster }: Scene,
  strategy: readonly KubernetesObject[],
  ca: string,
  secrets: readonly KubernetesObject[],
): Promise<void> {
  const definitions = strategy.filter(({ kind }) => kind === 'CustomResourceDefinition');
  applyObjects(lab, definitions);
  for (const object of strategy) {
    if (object.kind === 'ConfigMap' && object.metadata.name === 'kubevirt-ca')
      Object.assign(object, { data: { 'ca-bundle': ca } });
  }
  const later = ['CustomResourceDefinition', 'APIService', 'Service', 'DaemonSet'];
  const rest = strategy.filter((one) => !later.includes(one.kind) && !isWebhookConfiguration(one));
  applyObjects(lab, [...secrets, ...rest]);
  applyObjects(lab, [KUBEVIRT_CR]);
  await cluster.client.patch(`${VIRT_CLIENT}/status`, 'application/merge-patch+json', { status: KUBEVIRT_STATUS });
}

type Authority = ReturnType<typeof createCertificateAuthority>;

async function tokenOf({ cluster }: Scene, account: string): Promise<string> {
  const path = `/api/v1/namespaces/${KUBEVIRT}/serviceaccounts/${account}/token`;
  const request = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 86_400 } };
  const { status } = (await cluster.client.create(path, request)) as { status: { token: string } };
  return status.token;
}

async function startVirtApi(scene: Scene, directory: string, authority: Authority): Promise<void> {
  const { lab, undo } = scene;
  undo(() => lab.run(`systemctl stop ${API_UNIT} 2>/dev/null || true`));
  await lab.run(`systemctl stop ${API_UNIT} 2>/dev/null || true; mkdir -p ${API_HOME}`);
  await lab.copy(kubeVirtAsset('virt-api'), `${API_HOME}/virt-api`);
  const serving = authority.issue(['localhost', '127.0.0.1', 'virt-api.kubevirt.svc']);
  const client = authority.issue([HANDLER_CLIENT]);
  const { ca } = await serverOf(lab.kubeconfig());
  const config = kubeconfig({ server: 'https://10.0.0.1:443', ca, token: await tokenOf(scene, 'kubevirt-apiserver') });
  const files = {
    'tls.crt': serving.cert,
    'tls.key': serving.key,
    'client.crt': client.cert,
    'client.key': client.key,
  };
  for (const [name, text] of Object.entries({ ...files, kubeconfig: config })) {
    const file = join(directory, `virt-api-${name}`);
    await writeFile(file, text, { mode: 0o600 });
    await lab.copy(file, `${API_HOME}/${name}`);
  }
  const flags = [
    ...['--kubeconfig', `${API_HOME}/kubeconfig`, '--listen', '127.0.0.1', '--port', String(API_PORT)],
    ...['--tls-cert-file', `${API_HOME}/tls.crt`, '--tls-key-file', `${API_HOME}/tls.key`],
    ...['--handler-cert-file', `${API_HOME}/client.crt`, '--handler-key-file', `${API_HOME}/client.key`],
    ...['--console-server-port', '8186'],
  ];
  const log = '-p StandardOutput=truncate:/run/virt-api.log -p StandardError=append:/run/virt-api.log';
  await lab.run(`systemd-run --quiet --collect --unit=${API_UNIT} ${log} ${API_HOME}/virt-api ${flags.join(' ')}`);
}

async function startVirtController(scene: Scene, directory: string, authority: Authority): Promise<void> {
  const { lab, undo, holds, cluster } = scene;
  const { cert, key } = authority.issue(['localhost', '127.0.0.1']);
  const [certFile, keyFile] = [join(directory, 'controller.crt'), join(directory, 'controller.key')];
  await writeFile(certFile, cert);
  await writeFile(keyFile, key, { mode: 0o600 });
  const config = join(directory, 'virt-controller.kubeconfig');
  const token = await tokenOf(scene, 'kubevirt-controller');
  await writeFile(config, kubeconfig({ ...(await serverOf(lab.kubeconfig())), token }), { mode: 0o600 });
  const args = [
    ...['--kubeconfig', config, '--listen', '127.0.0.1', '--port', String(await freePort())],
    ...['--launcher-image', LAUNCHER_IMAGE, '--exporter-image', 'lab/virt-exportserver:1'],
    ...['--prom-cert-file', certFile, '--prom-key-file', keyFile],
  ];
  const log = join(lab.places.run, 'virt-controller.log');
  const program = startProgram('virt-controller', kubeVirtAsset('virt-controller'), args, log);
  undo(() => program.stop('SIGKILL'));
  await holds('virt-controller leads', async () => {
    program.assertAlive();
    const lease = (await cluster.client.get(
      `/apis/coordination.k8s.io/v1/namespaces/${KUBEVIRT}/leases/virt-controller`,
    )) as { spec: { holderIdentity?: string; renewTime: string } };
    assert.ok(lease.spec.holderIdentity);
    assert.ok(Date.now() - Date.parse(lease.spec.renewTime) < 15_000, 'an earlier one’s lease');
  });
}

/** Why virt-handler is not Ready: what its containers wait for, and the last lines of their logs. */
async function handlerState({ lab }: Scene): Promise<string> {
  const logs = `/var/log/pods/${KUBEVIRT}_virt-handler-*/*/*.log`;
  return (await lab.run(`tail -qn 4 ${logs} 2>/dev/null || true`)).slice(-1500);
}
