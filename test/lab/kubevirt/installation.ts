import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createCertificateAuthority } from '../../../sandbox/certificates.ts';
import { KUBEVIRT, reachable } from '../../kubevirt/install-strategy-fixture.ts';
import type { KubernetesObject } from '../../real/control-plane-stage.ts';
import { isWebhookConfiguration } from '../../real/demo/webhook-configurations-fixture.ts';
import type { LabMachine } from '../lab.ts';
import { applyObjects, deleteObjects } from '../scenarios/guest-agent.ts';
import type { Scene } from '../scenarios/scenario.ts';
import { HANDLER_PORT, startVirtApi, startVirtController } from './control.ts';
import { IMAGES_DISK, LAUNCHER_IMAGE, writeKubeVirtImages } from './images.ts';
import { firstObjects, KUBEVIRT_CR, secretsOf, strategyOf } from './objects.ts';

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

/** All parts except those on nodes. @returns the DaemonSets */
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

/** Why virt-handler is not Ready: the waiting reasons of its containers, and the last lines of their logs. */
async function handlerStates(machines: readonly Scene[]): Promise<string> {
  const logs = `/var/log/pods/${KUBEVIRT}_virt-handler-*/*/*.log`;
  const texts = await Promise.all(machines.map(({ lab }) => lab.run(`tail -qn 4 ${logs} 2>/dev/null || true`)));
  return texts.map((text) => text.slice(-1500)).join('\n');
}
