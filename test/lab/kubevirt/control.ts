import assert from 'node:assert/strict';
import { request } from 'node:https';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { CertificateAuthority } from '../../../sandbox/certificates.ts';
import { KUBEVIRT } from '../../kubevirt/install-strategy-fixture.ts';
import { writeCertificate } from '../../real/certificates-fixture.ts';
import { freePort, startProgram } from '../../support/processes.ts';
import { accountConfig } from '../scenarios/control-daemons.ts';
import type { Scene } from '../scenarios/scenario.ts';
import { kubeVirtAsset } from './assets.ts';
import { LAUNCHER_IMAGE } from './images.ts';
import { HANDLER_CLIENT } from './objects.ts';

/** The port where virt-handler serves `pause` and `unpause` to virt-api. */
export const HANDLER_PORT = 8186;

/** Starts virt-api on this machine, because it would take five minutes to start in the emulation. @returns its port */
export async function startVirtApi(scene: Scene, directory: string, authority: CertificateAuthority): Promise<number> {
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
    assert.match(await health(port, authority.cert), /apiserver/);
  });
  return port;
}

function health(port: number, ca: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const asked = request({ host: '127.0.0.1', port, path: '/healthz', ca, timeout: 10_000 }, (response) => {
      text(response).then(resolve, reject);
    });
    asked.once('timeout', () => asked.destroy(new Error('virt-api did not answer in 10 s')));
    asked.once('error', reject);
    asked.end();
  });
}

/** Starts virt-controller on this machine, and waits until it leads. */
export async function startVirtController(
  scene: Scene,
  directory: string,
  authority: CertificateAuthority,
): Promise<void> {
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
