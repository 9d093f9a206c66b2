import { wantsFullPcpus } from '../../model/launcher/annotation.ts';
import { recognizeLauncher } from '../../model/launcher/recognize.ts';
import { DECISION_ANNOTATION, PLACED_RESOURCE } from '../../model/names.ts';
import { isExclusive, placementNeedsOf } from '../../model/placement/pod-needs.ts';
import type { ExplainedPod } from './objects.ts';

/** What a pod asks for, in words, with what Plumbline's webhook made of it. */
export function asksOf(pod: ExplainedPod): string[] {
  const { request, networks, wholeCores } = placementNeedsOf(pod);
  const cpus = request.containers.filter((one) => one.cpus > 0);
  const padding = paddingOf(pod);
  const owned = cpus.map(({ name, cpus: count }) => `${count} CPUs of its own for ${name}`).join(', ');
  const asks = [cpus.length === 0 ? 'no CPUs of its own' : owned];
  if (padding > 0) asks[0] += ` (${padding} of them to fill whole cores)`;
  if (wholeCores) asks.push('whole cores');
  for (const { kind, physnet, affinity } of networks) {
    asks.push(`CPUs beside ${kind === 'tunnel' ? 'the tunnel' : `physnet ${physnet}`} (${affinity})`);
  }
  return asks;
}

function paddingOf({ metadata }: ExplainedPod): number {
  try {
    const decision = JSON.parse(metadata.annotations?.[DECISION_ANNOTATION] ?? '{}') as { padding?: unknown };
    return typeof decision.padding === 'number' ? decision.padding : 0;
  } catch {
    return 0;
  }
}

/** What the shipped scheduler configuration has the extender asked about. */
const MANAGED = ['devices.kubevirt.io/kvm', 'devices.kubevirt.io/tun', PLACED_RESOURCE];

export interface Bypass {
  readonly cause: string;
  readonly help: string;
}

/** What shows that a part of Plumbline never saw the pod. */
export function bypassesOf(pod: ExplainedPod): Bypass[] {
  const found: Bypass[] = [];
  const needs = placementNeedsOf(pod);
  const launcher = recognizeLauncher(pod).kind === 'launcher';
  const exclusive = isExclusive(needs);
  if (launcher && exclusive && wantsFullPcpus(pod.metadata)) {
    const decided = pod.metadata.annotations?.[DECISION_ANNOTATION] !== undefined;
    const odd = needs.request.containers.find(({ kind, cpus }) => kind !== 'init' && cpus % 2 !== 0);
    if (!decided || odd) {
      const what = odd ? `${odd.name} asks for ${odd.cpus} CPUs, no whole cores` : 'its decision is not written on it';
      found.push({
        cause: `the webhook did not see this launcher: ${what}`,
        help: 'start the VM anew once the webhook works (plumbline doctor says what is wrong with it)',
      });
    }
  }
  const asked = [...pod.spec.containers, ...(pod.spec.initContainers ?? [])].some(({ resources }) =>
    MANAGED.some((name) => resources?.requests?.[name] !== undefined || resources?.limits?.[name] !== undefined),
  );
  if (exclusive && !asked) {
    found.push({
      cause: 'kube-scheduler does not ask Plumbline about this pod: it requests none of the managed resources',
      help: `have it request ${PLACED_RESOURCE}: 1`,
    });
  }
  if (pod.metadata.labels?.['kubevirt.io'] === 'virt-launcher' && !exclusive) {
    found.push({
      cause: 'this VM has no dedicated CPUs, so Plumbline neither pads nor places it',
      help: 'set dedicatedCpuPlacement, isolateEmulatorThread and equal requests and limits if it should have its own',
    });
  }
  return found;
}
