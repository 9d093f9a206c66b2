import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createCertificateAuthority } from '../../../sandbox/certificates.ts';
import { until } from '../../support/until.ts';
import { type ControlPlane, podOf } from '../control-plane.ts';
import { objectsOf, render } from '../install/rendered.ts';
import { fullTopology, readyNode, report, startStage } from '../scheduler/stage.ts';
import { createKubeletStandIn, type KubeletStandIn, kubeletFlags } from './kubelet-stand-in.ts';

export const SYSTEM = 'plumbline-system';
/** The pod with the leading kube-scheduler and its extender. */
export const POD = 'plumbline-scheduler-7d9f8-x2x4z';
export const NODE = 'full';
const MERGE = 'application/merge-patch+json';

/**
 * A real API server with the scheduler of the base: a real kube-scheduler and the extender's real daemon, as in one pod
 * of the Deployment, on a node with a stand-in kubelet for port-forwards.
 */
export interface SidecarStage {
  readonly plane: ControlPlane;
  readonly kubelet: KubeletStandIn;
  stop(): Promise<void>;
}

export async function startSidecarStage(): Promise<SidecarStage> {
  const directory = mkdtempSync(join(tmpdir(), 'plumbline-sidecar-'));
  const authority = createCertificateAuthority('kubelets');
  const kubelet = await createKubeletStandIn(authority);
  const stage = await startStage({ apiServerArgs: kubeletFlags(directory, authority) });
  const { plane } = stage;
  const stop = async () => {
    await stage.stop();
    await kubelet.stop();
    rmSync(directory, { recursive: true });
  };
  try {
    // The doctor checks it.
    await plane.create(...objectsOf(render('base')).filter(({ kind }) => kind === 'MutatingWebhookConfiguration'));
    await addNodes(plane, kubelet.port);
    const { extender } = await stage.startPair(POD);
    kubelet.pods.set(`${SYSTEM}/${POD}`, new Map([[8082, extender.port]]));
    await until('the extender to be active', () => extender.isActive());
    return { plane, kubelet, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** A node without free CPUs, on which the scheduler's pod runs, and one that does not report. */
async function addNodes(plane: ControlPlane, kubeletPort: number): Promise<void> {
  const amounts = { cpu: '64', memory: '256Gi', pods: '500', 'devices.kubevirt.io/kvm': '1k' };
  const status = {
    addresses: [{ type: 'InternalIP', address: '127.0.0.1' }],
    daemonEndpoints: { kubeletEndpoint: { Port: kubeletPort } },
  };
  await plane.create(...[NODE, 'unreported'].map((name) => readyNode(name, amounts, { status })));
  await report(plane.client, NODE, fullTopology());
  await plane.create(podOf({ name: POD, namespace: SYSTEM }, { nodeName: NODE }));
  await plane.client.patch(`/api/v1/namespaces/${SYSTEM}/pods/${POD}/status`, MERGE, { status: { phase: 'Running' } });
}
