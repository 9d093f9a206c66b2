import type { KubeClient } from '../../kube/client.ts';
import { isDpuHost } from '../../kube/cluster-view/nodes.ts';
import { type DpuDiagnosis, diagnoseDpu, isLongExpired } from '../../model/lease/diagnose.ts';
import { DPU_LEASE_PREFIX } from '../../model/names.ts';
import { type ClusterAccess, type ClusterFlags, usingCluster } from '../support/cluster.ts';
import { EXIT } from '../support/exit-status.ts';
import { undefinedIfForbidden } from '../support/lists.ts';
import { createProgress, type OutputFormat, print } from '../support/output.ts';
import type { Terminal } from '../support/terminal.ts';
import { byCause } from './causes.ts';
import { checkAgents } from './checks/agents.ts';
import { checkCertificates } from './checks/certificates.ts';
import { checkDpus, watchDpus } from './checks/dpu.ts';
import { checkExtender } from './checks/extender.ts';
import { AREAS, type Area, type AreaReport } from './checks/finding.ts';
import { checkInstalled } from './checks/installed.ts';
import { checkInterference } from './checks/interference.ts';
import { checkKubelets } from './checks/kubelet.ts';
import { checkNetworks } from './checks/networks.ts';
import { checkPods } from './checks/pods.ts';
import { checkPreflight } from './checks/preflight.ts';
import { checkWebhook } from './checks/webhook.ts';
import { type DoctorFacts, readFacts } from './facts/facts.ts';
import { readPreflight } from './facts/preflight.ts';
import { areaLines, doctorData, endLines } from './output.ts';

export interface DoctorFlags extends ClusterFlags {
  readonly dpuLeaseNamespace: string;
  readonly watch: number;
  readonly output?: OutputFormat;
}

const APART = ['preflight', 'dpu'] as const;
const isApart = (area: Area): area is (typeof APART)[number] => APART.some((other) => other === area);

const CHECKS: Readonly<Record<Exclude<Area, (typeof APART)[number]>, (facts: DoctorFacts) => AreaReport>> = {
  installed: checkInstalled,
  webhook: checkWebhook,
  certificates: checkCertificates,
  extender: checkExtender,
  agents: checkAgents,
  kubelet: checkKubelets,
  networks: checkNetworks,
  interference: checkInterference,
  pods: checkPods,
};

/** Prints what these areas find; no areas: all except preflight. @throws CliError, KubeError */
export function run(areas: readonly Area[], flags: DoctorFlags): Promise<void> {
  return usingCluster(flags, (cluster) => check(cluster, areas, flags));
}

async function check(cluster: ClusterAccess, areas: readonly Area[], flags: DoctorFlags): Promise<void> {
  const isSelected = (area: Area) => (areas.length === 0 ? area !== 'preflight' : areas.includes(area));
  const reports = isSelected('preflight') ? [checkPreflight(await readPreflight(cluster.client))] : [];
  const facts = AREAS.every((area) => isApart(area) || !isSelected(area))
    ? undefined
    : await readFacts(cluster, Date.now());
  for (const area of AREAS) if (facts && !isApart(area) && isSelected(area)) reports.push(CHECKS[area](facts));
  // What is complete is printed before the Leases are watched for a while.
  const isText = flags.output === undefined || flags.output === 'wide';
  let printed = 0;
  const beforeWatch = async () => {
    if (!isText || reports.length === 0) return;
    printed = reports.length;
    const early = byCause(reports.flatMap((report) => report.findings));
    const text = ({ width }: Terminal, wide: boolean) => areaLines(reports, early, width, wide);
    await print(flags.output, undefined, { text });
  };
  const dpus = isSelected('dpu') ? await lookAtLeases(cluster.client, facts, flags, beforeWatch) : undefined;
  if (isSelected('dpu')) reports.push(checkDpus(dpus, flags.watch));
  const findings = byCause(reports.flatMap((report) => report.findings));
  const late = reports.slice(printed);
  const lateFindings = printed === 0 ? findings : byCause(late.flatMap((report) => report.findings));
  await print(flags.output, doctorData(reports, findings, dpus), {
    text: ({ width }, wide) => [...areaLines(late, lateFindings, width, wide), ...endLines(reports, findings, wide)],
    name: () => [...new Set(findings.flatMap(({ objects }) => objects ?? []))],
  });
  process.exitCode = findings.length === 0 ? EXIT.ok : EXIT.findings;
}

/** All findings except those of watching DPUs, as data. @throws KubeError */
export async function readFindings(cluster: ClusterAccess, now: number) {
  const facts = await readFacts(cluster, now);
  const reports = AREAS.flatMap((area) => (isApart(area) ? [] : [CHECKS[area](facts)]));
  return doctorData(reports, byCause(reports.flatMap((report) => report.findings)), undefined);
}

/** Watches only if there are Leases. Undefined if the user may not read them. */
async function lookAtLeases(
  client: KubeClient,
  facts: DoctorFacts | undefined,
  { dpuLeaseNamespace: namespace, watch }: DoctorFlags,
  beforeWatch: () => Promise<void>,
): Promise<DpuDiagnosis[] | undefined> {
  const progress = createProgress();
  const update = (seconds: number) => progress.update(seconds / watch, 'watching the Leases of DPUs');
  const hosts = facts?.nodes.some(isDpuHost) ?? true;
  try {
    const quick = await watchDpus(client, namespace, 0, update);
    if (quick.length === 0 || (!hosts && quick.every(({ looks }) => looks.length === 0))) return [];
    const isDecided = quick.every(({ looks }) => looks.every(isLongExpired));
    if (watch > 0 && !isDecided) await beforeWatch();
    const leases = watch === 0 || isDecided ? quick : await watchDpus(client, namespace, watch, update);
    return leases.map((lease) => diagnoseDpu(DPU_LEASE_PREFIX + lease.node, lease));
  } catch (error) {
    return undefinedIfForbidden(error);
  } finally {
    progress.end();
  }
}
