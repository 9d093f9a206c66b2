import { isAligned } from '../alignment.ts';
import { MAX_CPUS } from '../cpu-ranges.ts';
import { FULL_PCPUS_ANNOTATION, FULL_PCPUS_ONLY } from '../names.ts';
import { wantsWholeCores } from './annotation.ts';
import { launcherCpus } from './cpus.ts';
import type { NodeKind } from './node-kind.ts';
import type { AlignmentPolicy } from './policy.ts';
import type { VmTemplate } from './template.ts';

/**
 * A warning for a VM whose launcher would be rejected by every full-pcpus-only node that it can run on: its CPUs are
 * not whole cores there, and nothing pads them. Undefined if such a node accepts it, none is known, or the CPUs are not
 * known yet.
 * @param candidates the kinds of the reporting nodes that the VM can run on
 * @throws ParseError as launcherCpus
 */
export function rejectionWarning(
  template: VmTemplate,
  candidates: readonly NodeKind[],
  { gate, policy }: { readonly gate: boolean; readonly policy: AlignmentPolicy },
): string | undefined {
  const { metadata, spec, instancetype } = template;
  const { dedicatedCpuPlacement, isolateEmulatorThread } = spec.domain.cpu ?? {};
  if (instancetype || dedicatedCpuPlacement !== true) return undefined;
  const isolated = isolateEmulatorThread === true;
  if (gate && isolated && (policy !== 'annotated' || wantsWholeCores(metadata))) return undefined;
  const { total } = launcherCpus({ metadata, spec });
  // KubeVirt's own webhook checks sizes that no host has.
  if (!(total >= 1 && total < MAX_CPUS)) return undefined;
  const asking = candidates.filter(({ fullPcpusOnly }) => fullPcpusOnly);
  if (asking.length === 0 || asking.some(({ threadsPerCore }) => isAligned(total, threadsPerCore))) return undefined;
  const kinds = [...new Set(asking.map(({ threadsPerCore }) => threadsPerCore))].sort((a, b) => a - b);
  const where = asking.length === candidates.length ? 'every node it can go to' : 'every full-pcpus-only node';
  const remedy =
    isolated && gate
      ? `annotate the template with ${FULL_PCPUS_ANNOTATION}: ${FULL_PCPUS_ONLY}`
      : 'give it vCPUs that fill whole cores';
  return `the launcher asks for ${total} CPUs: ${where} (${kinds.join(' or ')} threads per core) rejects it, SMTAlignmentError; ${remedy}`;
}
