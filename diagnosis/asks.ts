import { type Decided, type DecidedKind, decidedOf, paddingOf } from '../model/admission/decision-annotation.ts';
import { countText, cpusText } from '../model/amounts.ts';
import { briefMask } from '../model/cpu-mask/mask.ts';
import { podCpus } from '../model/kubelet/pod-request.ts';
import { hasAsked } from '../model/launcher/annotation.ts';
import { startsRunning } from '../model/launcher/paused-start.ts';
import { recognizeLauncher } from '../model/launcher/recognize.ts';
import { CPU_MASK_START_ANNOTATION } from '../model/names.ts';
import { placementNeedsOf } from '../model/placement/preferences.ts';
import type { ExplainedPod, ExplainedVmi } from './objects.ts';

export type Asks = ReturnType<typeof asksOf>;

/** What the CPUs of a VM's main container consist of, if the VMI says so. */
function compositionOf(vmi: ExplainedVmi | undefined, cpus: number, padding: number): string | undefined {
  const cpu = vmi?.spec.domain.cpu;
  if (cpu?.dedicatedCpuPlacement !== true) return undefined;
  const vcpus = (cpu.sockets || 1) * (cpu.cores || 1) * (cpu.threads || 1);
  const emulator = cpus - padding - vcpus;
  if (emulator < 0 || (emulator === 0 && padding === 0)) return undefined;
  const parts = [countText(vcpus, 'vCPU')];
  if (emulator > 0) parts.push(`${emulator} for the emulator${vmi?.spec.domain.ioThreads ? ' and I/O threads' : ''}`);
  if (padding > 0) parts.push(`${padding} to complete whole cores`);
  return parts.join(' + ');
}

export function asksOf(pod: ExplainedPod, vmi?: ExplainedVmi) {
  const { request, mask, networks, wholeCores = false } = placementNeedsOf(pod);
  const containers = request.containers.filter(({ cpus }) => cpus > 0).map(({ name, cpus }) => ({ name, cpus }));
  const padding = paddingOf(pod.metadata);
  const owned = containers.map(({ name, cpus }) => `${countText(cpus, 'dedicated CPU')} for ${name}`).join(', ');
  const without =
    vmi?.spec.domain.cpu?.dra === undefined ? 'no dedicated CPUs' : 'the CPUs of a claim (domain.cpu.dra)';
  const text = [containers.length === 0 ? without : owned];
  const compute = containers.find(({ name }) => name === 'compute');
  const composition = compute && compositionOf(vmi, compute.cpus, padding);
  if (composition !== undefined) text[0] += ` (${composition})`;
  else if (padding > 0) text[0] += ` (including ${padding} to complete whole cores)`;
  else if (wholeCores) text.push('whole cores');
  if (mask) {
    const otherwise = mask.fixMismatch ? ', or all CPUs on a node that lacks some of them' : '';
    const late = startsRunning(pod.metadata) ? `, applied once it runs (${CPU_MASK_START_ANNOTATION}: running)` : '';
    text.push(`the CPU mask ${briefMask(mask.mask)}${otherwise}${late}`);
  }
  for (const { kind, physnet, affinity } of networks) {
    text.push(`CPUs near ${kind === 'tunnel' ? 'the tunnel' : `physnet ${physnet}`} (${affinity})`);
  }
  return {
    text,
    containers,
    cpus: podCpus(request),
    padding,
    wholeCores,
    webhook: webhookOf(pod),
    mask: mask && briefMask(mask.mask),
    networks: networks.map(({ kind, physnet, affinity }) => ({ kind, physnet, affinity })),
  };
}

function webhookOf(pod: ExplainedPod): { decision: DecidedKind | 'none'; text: string } | undefined {
  const decided = decidedOf(pod.metadata);
  if (decided !== undefined) return { decision: decided.kind, text: `the webhook saw it, and ${decidedText(decided)}` };
  if (recognizeLauncher(pod).kind !== 'launcher') return undefined;
  const text = hasAsked(pod.metadata)
    ? 'the webhook did not see it: it has no decision annotation'
    : 'it asks for no alignment, so it has no decision annotation';
  return { decision: 'none', text };
}

function decidedText(decided: Decided): string {
  if (decided.kind === 'padded') return `added ${cpusText(decided.padding)} to complete whole cores`;
  return decided.kind === 'nothing-to-pad' ? 'it needs no padding' : `did not pad it: ${decided.why}`;
}
