import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DaemonPods } from '../../../cli/demo/daemons.ts';
import { DEMO_NODES } from '../../../cli/demo/nodes.ts';
import { NAMESPACE } from '../../../model/names.ts';
import { PODS } from '../../../sandbox/api-server/built-in-types.ts';
import { createCertificateAuthority } from '../../../sandbox/certificates.ts';
import { testOutages } from '../../demo/outages/run.ts';
import { type OutageStage, startOutageStage } from '../../demo/outages/stage.ts';
import { needs } from '../../support/parts.ts';
import { createKubeletStandIn, type KubeletStandIn, kubeletFlags } from '../cli/kubelet-stand-in.ts';
import { createRealCluster, type RealCluster } from './real-cluster.ts';

/** Ports of the pods that the command asks. */
const PORTS = [8081, 8082];

describe('a killed part of Plumbline on a real control plane', function () {
  needs('linux');
  needs('controlPlane');
  needs('root');
  this.timeout(300_000);
  let stage: OutageStage;
  let kubelet: KubeletStandIn;
  let directory: string;

  before(async () => {
    directory = mkdtempSync(join(tmpdir(), 'plumbline-kubelets-'));
    const authority = createCertificateAuthority('kubelets');
    kubelet = await createKubeletStandIn('127.0.0.1', authority);
    const apiServerArgs = kubeletFlags(directory, authority);
    let cluster: RealCluster;
    stage = await startOutageStage(
      (options) => {
        cluster = createRealCluster(options, { apiServerArgs, inPod: true });
        return cluster;
      },
      async (_, pods) => serveKubelets(cluster, kubelet, pods),
    );
  });
  after(async () => {
    await stage.stop();
    await kubelet.stop();
    rmSync(directory, { recursive: true });
  });
  testOutages(() => stage);
});

/** Makes the API server reach the ports of the daemons' pods, which all run on this machine. */
async function serveKubelets({ plane, client }: RealCluster, kubelet: KubeletStandIn, pods: DaemonPods) {
  const addresses = [{ type: 'InternalIP', address: '127.0.0.1' }];
  const status = { addresses, daemonEndpoints: { kubeletEndpoint: { Port: kubelet.port } } };
  for (const { name } of DEMO_NODES) {
    await plane.client.patch(`/api/v1/nodes/${name}/status`, 'application/merge-patch+json', { status });
  }
  for (const pod of client.list(PODS).filter(({ metadata }) => metadata.namespace === NAMESPACE)) {
    const ports = PORTS.flatMap((port) => {
      const local = pods.localPort(pod, port);
      return local === undefined ? [] : [[port, local] as const];
    });
    kubelet.pods.set(`${NAMESPACE}/${pod.metadata.name}`, new Map(ports));
  }
}
