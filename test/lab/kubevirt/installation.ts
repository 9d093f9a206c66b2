import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type CertificateAuthority, createCertificateAuthority } from '../../../sandbox/certificates.ts';
import { KUBEVIRT, reachable } from '../../kubevirt/install-strategy-fixture.ts';
import { writeCertificate } from '../../real/certificates-fixture.ts';
import type { KubernetesObject } from '../../real/control-plane-stage.ts';
import { isWebhookConfiguration } from '../../real/install/rendered-fixture.ts';
import { httpCall } from '../../support/http-call.ts';
import { freePort, startProgram } from '../../support/processes.ts';
import type { LabMachine } from '../lab.ts';
import { accountConfig } from '../scenarios/control-daemons.ts';
import { applyObjects, deleteObjects } from '../scenarios/guest-agent.ts';
import type { Scene } from '../scenarios/scenario.ts';
import { kubeVirtAsset } from './assets.ts';
import { IMAGES_DISK, LAUNCHER_IMAGE, writeKubeVirtImages } from './images.ts';
import { firstObjects, HANDLER_CLIENT, KUBEVIRT_CR, secretsOf, strategyOf } from './objects.ts';

/** The disk with the images' archive, and its place in a machine that was started without it. */
const DISK = `/dev/disk/by-id/virtio-${IMAGES_DISK}`;
const COPIED = '/opt/plumbline-lab/kubevirt-images.tar';
const VIRT_CLIENT = `/apis/kubevirt.io/v1/namespaces/${KUBEVIRT}/kubevirts/kubevirt`;
/** Seconds: gigabytes through the emulated disk, and a libvirt that reads QEMU's capabilities. */
const IMPORTED = 900;
const HANDLER_READY = 900;

/**
 * Installs the real KubeVirt: virt-handler as its DaemonSet on the lab's nodes, virt-api and virt-controller as programs
 * of the API server's machine. At the end of the scenario its webhooks, API and DaemonSet are removed; the definitions
 * stay.
 */
export async function installKubeVirt(scene: Scene): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'plumbline-lab-'));
  scene.undo(() => rm(directory, { recursive: true }));
  const daemonSets = await installControl(scene, directory);
  await importImages(scene.machines);
  await installOnNode(scene, daemonSets);
}

export async function installControl(scene: Scene, directory: string): Promise<readonly KubernetesObject[]> {
  const { lab, cluster, holds, undo } = scene;
  applyObjects(lab, firstObjects());
  const strategy = await strategyOf(cluster.client, lab.kubeconfig());
  const authority = createCertificateAuthority('kubevirt-ca');
  await installObjects(scene, strategy, authority.cert, secretsOf(authority));

  const port = await startVirtApi(scene, directory, authority);
  const reached = reachable(strategy, port, authority.cert);
  undo(async () => deleteObjects(lab, reached));
  applyObjects(lab, reached);
  await holds('the API server serves KubeVirt’s API', async () => {
    await cluster.client.get('/apis/subresources.kubevirt.io/v1');
  });
  await startVirtController(scene, directory, authority);
  return strategy.filter(({ kind }) => kind === 'DaemonSet');
}

async function installOnNode(scene: Scene, daemonSets: readonly KubernetesObject[]): Promise<void> {
  const { lab, cluster, holds, undo, machines } = scene;
  undo(async () => deleteObjects(lab, daemonSets));
  applyObjects(lab, daemonSets);
  await holds(
    'virt-handler, of the DaemonSet that virt-operator makes, is Ready',
    async () => {
      const path = `/apis/apps/v1/namespaces/${KUBEVIRT}/daemonsets/virt-handler`;
      const { status } = (await cluster.client.get(path)) as { status: { numberReady: number } };
      assert.equal(status.numberReady, machines.length, await handlerStates(machines));
    },
    HANDLER_READY,
  );
  await reachHandlers(scene);
  for (const { node } of machines) {
    await holds(`it labels ${node.name}: schedulable, with a static CPU manager`, async () => {
      const { metadata } = (await cluster.client.get(`/api/v1/nodes/${node.name}`)) as {
        metadata: { labels: Record<string, string> };
      };
      assert.equal(metadata.labels['kubevirt.io/schedulable'], 'true');
      assert.equal(metadata.labels['cpumanager'], 'true');
      const models = Object.keys(metadata.labels).filter((name) => name.startsWith('cpu-model.node.kubevirt.io/'));
      return `${models.length} CPU models`;
    });
  }
}

/** virt-api calls virt-handler at its pod's address in the guest's network. */
async function reachHandlers({ cluster, undo, machines }: Scene): Promise<void> {
  const path = `/api/v1/namespaces/${KUBEVIRT}/pods`;
  const { items } = (await cluster.client.get(path, { query: { labelSelector: 'kubevirt.io=virt-handler' } })) as {
    items: { spec: { nodeName: string }; status: { podIP: string } }[];
  };
  for (const { spec, status } of items) {
    const machine = machines.find(({ node }) => node.name === spec.nodeName);
    if (machine !== undefined) undo(await machine.lab.reach(status.podIP, HANDLER_PORT));
  }
}

async function importImages(machines: readonly Scene[]): Promise<void> {
  const [{ holds }] = machines as [Scene];
  await holds(
    'containerd takes the images of virt-launcher and virt-handler, with libvirt and QEMU of Debian',
    async () => {
      await Promise.all(machines.map(({ lab }) => importInto(lab)));
    },
    IMPORTED,
  );
}

async function importInto(lab: LabMachine): Promise<void> {
  if ((await lab.run('ctr -n k8s.io images ls -q')).includes(LAUNCHER_IMAGE)) return;
  const hasDisk = (await lab.run(`test -e ${DISK} && echo there || true`)).includes('there');
  if (!hasDisk) await lab.copy(await writeKubeVirtImages(lab.places, console.error), COPIED);
  await lab.run(`ctr -n k8s.io images import --local ${hasDisk ? DISK : COPIED} && rm -f ${COPIED}`);
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
  const { status, ...cr } = KUBEVIRT_CR;
  applyObjects(lab, [cr]);
  await cluster.client.patch(`${VIRT_CLIENT}/status`, 'application/merge-patch+json', { status });
}

async function handlerStates(machines: readonly Scene[]): Promise<string> {
  const logs = `/var/log/pods/${KUBEVIRT}_virt-handler-*/*/*.log`;
  const texts = await Promise.all(machines.map(({ lab }) => lab.run(`tail -qn 4 ${logs} 2>/dev/null || true`)));
  return texts.map((text) => text.slice(-1500)).join('\n');
}

const HANDLER_PORT = 8186;

/** Starts virt-api on this machine, because it would take five minutes to start in the emulation. @returns its port */
async function startVirtApi(scene: Scene, directory: string, authority: CertificateAuthority): Promise<number> {
  const { lab, holds, undo } = scene;
  const port = await freePort();
  const names = ['localhost', '127.0.0.1', 'virt-api.kubevirt.svc'];
  const [certFile, keyFile] = await writeCertificate(directory, 'virt-api', authority, names);
  const [clientCert, clientKey] = await writeCertificate(directory, 'virt-api-client', authority, [HANDLER_CLIENT]);
  const args = [
    ...['--kubeconfig', await accountConfig(scene, directory, 'kubevirt-apiserver', KUBEVIRT)],
    ...['--listen', '127.0.0.1', '--port', String(port), '--tls-cert-file', certFile, '--tls-key-file', keyFile],
    ...['--handler-cert-file', clientCert, '--handler-key-file', clientKey],
    ...['--console-server-port', String(HANDLER_PORT)],
  ];
  const log = join(lab.places.run, 'virt-api.log');
  const program = startProgram('virt-api', kubeVirtAsset('virt-api'), args, log);
  undo(() => program.stop('SIGKILL'));
  await holds('virt-api answers', async () => {
    program.assertAlive();
    const health = { port, path: '/healthz', trust: authority.cert, signal: AbortSignal.timeout(10_000) };
    assert.match((await httpCall(health)).text, /apiserver/);
  });
  return port;
}

async function startVirtController(scene: Scene, directory: string, authority: CertificateAuthority): Promise<void> {
  const { lab, undo, holds, cluster } = scene;
  const [certFile, keyFile] = await writeCertificate(directory, 'virt-controller', authority, [
    'localhost',
    '127.0.0.1',
  ]);
  const args = [
    ...['--kubeconfig', await accountConfig(scene, directory, 'kubevirt-controller', KUBEVIRT)],
    ...['--listen', '127.0.0.1', '--port', String(await freePort())],
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
