import { mkdir } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { createCertificateAuthority } from '../../sandbox/certificates.ts';
import { writeCertificate } from '../real/certificates-fixture.ts';
import { type ControlPlane, type KubernetesObject, namespaceOf } from '../real/control-plane-stage.ts';
import type { KubeVirt } from '../real/demo/kubevirt-stand-in.ts';
import { isWebhookConfiguration } from '../real/install/rendered-fixture.ts';
import { FOREIGN_DEFINITIONS } from '../real/webhook/crds-fixture.ts';
import { pathOf } from '../support/parts.ts';
import { freePort, type Program, startProgram } from '../support/processes.ts';
import { until } from '../support/until.ts';
import { definitionOfTheCr, KUBEVIRT, kubeVirtCr, reachable, strategyOf } from './install-strategy-fixture.ts';
import { createVirtHandler } from './virt-handler-stand-in.ts';

const HANDLER_CLIENT = 'kubevirt.io:system:client:virt-handler';
const READY_SECONDS = 180;
const CONFIGURATION = {
  developerConfiguration: {
    featureGates: [
      'CPUManager',
      'AlignCPUs',
      'Sidecar',
      'HostDevices',
      'WorkloadEncryptionSEV',
      'WorkloadEncryptionTDX',
      'ContainerPathVolumes',
      'EnableVirtioFsStorageVolumes',
      'EnableVirtioFsConfigVolumes',
      'ImageVolume',
    ],
    logVerbosity: { virtAPI: 2, virtController: 2 },
  },
  permittedHostDevices: {
    pciHostDevices: [
      { pciVendorSelector: '10DE:1EB8', resourceName: 'example.com/gpu', externalResourceProvider: true },
    ],
  },
  network: {
    binding: {
      slirpish: { sidecarImage: 'registry.example/slirpish:1', networkAttachmentDefinition: 'vms/dataplane0' },
    },
  },
  vmRolloutStrategy: 'LiveUpdate',
};
const SPEC = {
  configuration: CONFIGURATION,
  workloadUpdateStrategy: { workloadUpdateMethods: ['LiveMigrate'] },
};
export function createRealKubeVirt(): KubeVirt {
  let objects: readonly KubernetesObject[] = [];
  return {
    async define(plane) {
      await plane.create(
        namespaceOf(KUBEVIRT),
        ...FOREIGN_DEFINITIONS.filter(({ metadata }) => metadata.name.endsWith('.k8s.cni.cncf.io')),
        ...definitionOfTheCr(),
      );
      objects = await strategyOf(plane);
      await plane.create(...objects.filter(({ kind }) => kind === 'CustomResourceDefinition'));
    },
    async start({ plane, client, nodes, onFault }) {
      const serving = createCertificateAuthority('kubevirt-ca');
      const directory = join(plane.directory, KUBEVIRT);
      // Separate from the logs: KubeVirt reads its certificates again whenever a file changes in their folder.
      const certificates = join(directory, 'certificates');
      await mkdir(certificates, { recursive: true });
      const later = objects.filter(({ kind }) => !['CustomResourceDefinition', 'APIService', 'Service'].includes(kind));
      const [ca] = later.filter(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === 'kubevirt-ca');
      if (ca !== undefined) Object.assign(ca, { data: { 'ca-bundle': serving.cert } });
      await plane.create(...later.filter((object) => !isWebhookConfiguration(object)));
      const { status, ...cr } = kubeVirtCr(SPEC);
      await plane.create(cr);
      const path = `/apis/kubevirt.io/v1/namespaces/${KUBEVIRT}/kubevirts/kubevirt/status`;
      await plane.client.patch(path, 'application/merge-patch+json', { status });

      const names = ['localhost', '127.0.0.1', 'virt-api.kubevirt.svc'];
      const [apiCert, apiKey] = await writeCertificate(certificates, 'virt-api', serving, names);
      const [clientCert, clientKey] = await writeCertificate(certificates, 'client', serving, [HANDLER_CLIENT]);
      const virtHandler = await createVirtHandler({ plane, client, nodes, onFault });
      const run = async (name: string, account: string, args: readonly string[]): Promise<Program> => {
        const kubeconfig = await plane.accountKubeconfig(name, KUBEVIRT, account);
        const all = ['--kubeconfig', kubeconfig, '--listen', '127.0.0.1', ...args];
        return startProgram(name, join(pathOf('kubevirt'), name), all, join(directory, `${name}.log`));
      };
      const apiPort = await freePort();
      const virtApi = await run('virt-api', 'kubevirt-apiserver', [
        ...['--port', String(apiPort), '--tls-cert-file', apiCert, '--tls-key-file', apiKey],
        ...['--handler-cert-file', clientCert, '--handler-key-file', clientKey],
      ]);
      await plane.create(...reachable(objects, apiPort, serving.cert));
      const virtController = await run('virt-controller', 'kubevirt-controller', [
        ...['--port', String(await freePort()), '--launcher-image', 'registry.example/virt-launcher:v1.9.0'],
        ...['--exporter-image', 'registry.example/virt-exportserver:v1.9.0'],
        ...['--prom-cert-file', apiCert, '--prom-key-file', apiKey],
      ]);
      await untilServed(plane, [virtApi, virtController]);
      return {
        async stop() {
          await virtHandler.stop();
          // virt-api waits for ten seconds before it ends.
          await Promise.all([virtController.stop('SIGKILL'), virtApi.stop('SIGKILL')]);
        },
      };
    },
  };
}
async function untilServed(plane: ControlPlane, programs: readonly Program[]): Promise<void> {
  const vmi = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name: 'asks', namespace: 'default' },
    spec: { domain: { devices: {}, memory: { guest: '1Gi' } } },
  };
  const parts: Readonly<Record<string, () => Promise<boolean>>> = {
    'its aggregated API': () => plane.client.get('/apis/subresources.kubevirt.io/v1').then(() => true),
    'defaults of new VMIs': () =>
      plane.client
        .create('/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances', vmi, { query: { dryRun: 'All' } })
        .then((made) => (made as { spec: { architecture?: string } }).spec.architecture !== undefined),
    'a leading virt-controller': () =>
      plane.client
        .get(`/apis/coordination.k8s.io/v1/namespaces/${KUBEVIRT}/leases/virt-controller`)
        .then((lease) => (lease as { spec: { holderIdentity?: string } }).spec.holderIdentity === hostname()),
  };
  for (const [what, isThere] of Object.entries(parts)) {
    const check = async () => {
      for (const program of programs) program.assertAlive();
      return isThere();
    };
    await until(what, check, READY_SECONDS);
  }
}
