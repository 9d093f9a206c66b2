import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sidecarConfiguration } from '../../../cli/demo/cluster.ts';
import { startDaemon } from '../../../cli/demo/daemons.ts';
import { createCertificateAuthority } from '../../../sandbox/certificates.ts';
import { dist, root } from '../../support/bundles.ts';
import { shippedNodeOptions } from '../../support/shipped.ts';
import { until } from '../../support/until.ts';
import { type ControlPlane, type KubernetesObject, namespaceOf, podOf, startControlPlane } from '../control-plane.ts';
import { objectsOf, render } from '../install/rendered.ts';
import { freePort } from '../processes.ts';
import { readyNode, report, topologyOf } from '../scheduler/stage.ts';
import { createKubeletStandIn, type KubeletStandIn, kubeletFlags } from './kubelet-stand-in.ts';

export const SYSTEM = 'plumbline-system';
/** The pod with the leading kube-scheduler and its extender. */
export const POD = 'plumbline-scheduler-7d9f8-x2x4z';
export const NODE = 'full';
export const MERGE = 'application/merge-patch+json';

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
  const undo: (() => Promise<unknown>)[] = [async () => rmSync(directory, { recursive: true, force: true })];
  const stop = async () => {
    for (const one of undo.toReversed()) await one();
  };
  try {
    const authority = createCertificateAuthority('kubelets');
    const kubelet = await createKubeletStandIn(authority);
    undo.push(kubelet.stop);
    const plane = await startControlPlane({
      apiServerArgs: [
        ...kubeletFlags(directory, authority),
        // Controllers that do not run here would have to remove the second taint.
        '--disable-admission-plugins=ServiceAccount,TaintNodesByCondition',
      ],
    });
    undo.push(plane.stop);
    await plane.create(...schedulerObjects());
    await plane.create(namespaceOf('ovn-kubernetes'));
    await addNodes(plane, kubelet.port);

    const token = await plane.serviceAccountToken(SYSTEM, 'plumbline-scheduler');
    const kubeconfig = await plane.kubeconfig('scheduler', token);
    const extender = startDaemon({
      name: 'extender',
      program: join(dist, 'scheduler-plugin.cjs'),
      args: [
        ...['--port', String(await freePort()), '--probe-host', '127.0.0.1', '--probe-port', '0'],
        ...['--pod-name', POD, '--kubeconfig', kubeconfig],
      ],
      directory,
      env: shippedNodeOptions('scheduler-plugin'),
    });
    undo.push(() => extender.stop());
    const { port, probePort } = await extender.ports();
    kubelet.pods.set(`${SYSTEM}/${POD}`, new Map([[8082, port]]));
    const configuration = await sidecarConfiguration(root, port);
    await plane.startScheduler(configuration, { kubeconfig, hostName: POD });
    const isActive = async () => {
      const metrics = await (await fetch(`http://127.0.0.1:${probePort}/metrics`)).text();
      return metrics.split('\n').includes('plumbline_extender_active 1');
    };
    await until('the extender to be active', isActive);
    return { plane, kubelet, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** The parts of the base that the scheduler needs, and those that the doctor checks. */
function schedulerObjects(): KubernetesObject[] {
  const kinds = ['Namespace', 'CustomResourceDefinition', 'MutatingWebhookConfiguration'];
  const foreign = ['PodDisruptionBudget', 'NetworkPolicy', 'PriorityClass'];
  return objectsOf(render('base')).filter(
    ({ kind, metadata: { name } }) =>
      kinds.includes(kind) || (name.startsWith('plumbline-scheduler') && !foreign.includes(kind)),
  );
}

/** A node without free CPUs, on which the scheduler's pod runs, and one that does not report. */
async function addNodes(plane: ControlPlane, kubeletPort: number): Promise<void> {
  const amounts = { cpu: '64', memory: '256Gi', pods: '500', 'devices.kubevirt.io/kvm': '1k' };
  const status = {
    addresses: [{ type: 'InternalIP', address: '127.0.0.1' }],
    daemonEndpoints: { kubeletEndpoint: { Port: kubeletPort } },
  };
  await plane.create(...[NODE, 'unreported'].map((name) => readyNode(name, amounts, { status })));
  const full = topologyOf({ assignments: [{ podUID: 'x', container: 'compute', cpus: '1-7,9-15' }] });
  // The API server serves a new kind a moment after its definition was created.
  await until('NodeTopologies to be served', async () => {
    await report(plane.client, NODE, full);
    return true;
  });
  await plane.create(podOf({ name: POD, namespace: SYSTEM }, { nodeName: NODE }));
  await plane.client.patch(`/api/v1/namespaces/${SYSTEM}/pods/${POD}/status`, MERGE, { status: { phase: 'Running' } });
}
