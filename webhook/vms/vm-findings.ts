import { podNetworks, reachFindings } from '../../model/admission/networks.ts';
import { briefMask } from '../../model/cpu-mask/mask.ts';
import { launcherCpus } from '../../model/launcher/cpus.ts';
import { maskRequestKey, maskRequestOf } from '../../model/launcher/mask-request.ts';
import { selectionKey } from '../../model/launcher/node-selection.ts';
import { CPU_MASK_ANNOTATION, FIX_CPU_MISMATCH_ANNOTATION } from '../../model/names.ts';
import { fitMask } from '../../model/placement/mask-fit.ts';
import { type ClusterFactsOptions, gatherCluster } from '../cluster/cluster-facts.ts';
import type { ClusterView } from '../cluster/cluster-view.ts';
import type { ReadTemplate } from './vm-template.ts';

const ABOUT = `annotation ${CPU_MASK_ANNOTATION}:`;

/** No node could apply the mask, or a running VM keeps the old one. @throws ParseError */
export function maskWarnings(
  current: ReadTemplate,
  previous: ReadTemplate | undefined,
  view: Pick<ClusterView, 'maskHosts'>,
): readonly string[] {
  return [...hostWarnings(current, previous, view), ...runningWarnings(current, previous)];
}

/** Compares the mask with the nodes' reports, without the pods that run there now, because those end. */
function hostWarnings(
  current: ReadTemplate,
  previous: ReadTemplate | undefined,
  view: Pick<ClusterView, 'maskHosts'>,
): string[] {
  const wish = maskRequestOf(current.metadata);
  if (wish === undefined || questionOf(current) === (previous && questionOf(previous))) return [];
  const hosts = view.maskHosts(current.spec);
  if (hosts.length === 0) {
    return [`${ABOUT} no node that this VM may go to reports its CPUs, which a VM with a mask needs`];
  }
  if (hosts.every(({ pinsVMs }) => pinsVMs === false)) {
    return [`${ABOUT} no node that this VM may go to applies CPU masks (--vm-pinning off): it will not start`];
  }
  const fits = hosts.map((host) => fitMask(wish, host)).filter((fit) => fit.fits);
  if (fits.some(({ fellBack }) => !fellBack)) return [];
  const none = `${ABOUT} no node that this VM may go to has the CPUs of ${briefMask(wish.mask)} online and unreserved`;
  if (fits.length > 0) return [`${none}: it will run on all CPUs of a node (${FIX_CPU_MISMATCH_ANNOTATION})`];
  return [`${none}: it will not start (see plumbline verify)`];
}

function questionOf({ metadata, spec }: ReadTemplate): string {
  const wish = maskRequestOf(metadata);
  return `${wish && maskRequestKey(wish)} ${selectionKey(spec)}`;
}

/** A VMI keeps the annotations from its creation: KubeVirt does not copy others to it. */
function runningWarnings(current: ReadTemplate, previous: ReadTemplate | undefined): string[] {
  if (previous === undefined || current.path === undefined || !current.running) return [];
  const [mask, before] = [current, previous].map(({ metadata }) => metadata.annotations?.[CPU_MASK_ANNOTATION]);
  if (mask === before) return [];
  return [
    `${ABOUT} the VM is running; the new value applies when it restarts. Until then it stays pinned as before, and hotplugged vCPUs run on any of its CPUs`,
  ];
}

const DEFINITION_FINDINGS: ReadonlySet<string> = new Set(['refused-network', 'unreadable-network', 'unknown-network']);

/**
 * With an instancetype it is unknown whether the VM has exclusive CPUs: the VMI gets most findings then. An existing
 * object only gets warnings. @throws ParseError
 */
export async function reviewNetworks(
  namespace: string,
  current: ReadTemplate,
  previous: ReadTemplate | undefined,
  options: ClusterFactsOptions,
): Promise<{ readonly warnings: readonly string[]; readonly refusal: string | undefined }> {
  const { metadata, spec } = current;
  const exclusive = !current.instancetype && spec.domain.cpu?.dedicatedCpuPlacement === true;
  const owner = { namespace, vmi: { metadata, spec }, exclusive };
  const cluster = await gatherCluster(owner, spec, options);
  const { networks, required, findings } = podNetworks(owner, cluster.networks);
  if (current.instancetype) {
    const about = findings.filter(({ code }) => DEFINITION_FINDINGS.has(code));
    return { warnings: about.map(({ message }) => message), refusal: undefined };
  }
  const spansCells = spec.domain.cpu?.numa?.guestMappingPassthrough != null;
  const guest = { cpus: required.length > 0 ? launcherCpus({ metadata, spec }).total : 0, spansCells };
  const reach = reachFindings(required, guest, cluster, options.oversized);
  const refusal = previous === undefined ? reach.find(({ severity }) => severity === 'error') : undefined;
  const before = previous && new Set((previous.spec.networks ?? []).map(({ name }) => name));
  const plugged = networks.filter(
    ({ name, role, affinity, kind }) =>
      before?.has(name) === false &&
      role === 'secondary' &&
      affinity === 'required' &&
      (kind === 'physnet' || kind === 'tunnel'),
  );
  const warnings = [
    ...[...findings, ...reach].map(({ message }) => message),
    ...plugged.map(
      ({ name }) =>
        `interface ${name} is plugged into a VM that keeps its CPUs while it runs: its NUMA affinity applies from the next migration or restart`,
    ),
  ];
  return { warnings, refusal: refusal?.message };
}
