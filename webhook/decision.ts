import type { VirtualMachineInstance } from '../kube/resources.ts';
import { launcherCpus } from '../model/launcher/cpus.ts';
import type { ResolvedNetwork } from '../model/networks/resolve.ts';

/**
 * The text of the decision annotation, for people who look at the pod. It describes the pod as it ends up, never the
 * change: so a second pass writes the same. Undefined where Plumbline gave the pod nothing, so that a value a tenant
 * put there is removed.
 *
 * @param cpus the CPUs of `compute` as they end up, where Plumbline answers for their alignment
 */
export function decisionText(
  vmi: VirtualMachineInstance,
  cpus: number | undefined,
  networks: readonly ResolvedNetwork[],
  resources: readonly string[],
): string | undefined {
  const rendered = launcherCpus(vmi).total;
  const padded = cpus !== undefined && cpus > rendered;
  if (!padded && resources.length === 0) return undefined;
  return JSON.stringify({
    ...(padded ? { cpus, padding: cpus - rendered } : {}),
    ...(resources.length === 0 ? {} : { networks: networks.filter(isRequired).map(describe), resources }),
  });
}

function isRequired({ affinity }: ResolvedNetwork): boolean {
  return affinity === 'required';
}

function describe(one: ResolvedNetwork): Record<string, string> {
  return {
    interface: one.name,
    network: one.network,
    on: one.kind === 'physnet' ? `physnet ${one.physnet}` : one.kind,
  };
}
