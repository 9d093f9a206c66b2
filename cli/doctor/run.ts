import { remedyLines } from '../../diagnosis/remedies.ts';
import type { KubeClient } from '../../kube/client.ts';
import { isDpuHost } from '../../kube/cluster-view/nodes.ts';
import { countText } from '../../model/amounts.ts';
import { type DpuDiagnosis, diagnoseDpu, isLongExpired } from '../../model/lease/diagnose.ts';
import { DPU_LEASE_PREFIX } from '../../model/names.ts';
import { type ClusterAccess, type ClusterFlags, usingCluster } from '../support/cluster.ts';
import { EXIT } from '../support/exit-status.ts';
import { undefinedIfForbidden } from '../support/lists.ts';
import { createProgress, type OutputFormat, print } from '../support/output.ts';
import { joinParts, type Line, paint, remedyParagraph, type Terminal, wrap } from '../support/terminal.ts';
import { byCause } from './causes.ts';
import { checkAgents, checkInterference } from './checks/agents.ts';
import { checkCertificates } from './checks/certificates.ts';
import { checkDpus, watchDpus } from './checks/dpu.ts';
import { checkExtender } from './checks/extender.ts';
import { AREAS, type Area, type AreaReport, type DoctorFinding } from './checks/finding.ts';
import { checkInstalled } from './checks/installed.ts';
import { checkKubelets } from './checks/kubelet.ts';
import { checkNetworks } from './checks/networks.ts';
import { checkPods } from './checks/pods.ts';
import { checkPreflight } from './checks/preflight.ts';
import { checkWebhook } from './checks/webhook.ts';
import { type DoctorFacts, readFacts } from './facts/facts.ts';
import { readPreflight } from './facts/preflight.ts';

interface DoctorFlags extends ClusterFlags {
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

/** The data in docs/schemas/doctor.json. */
export function doctorData(
  reports: readonly AreaReport[],
  findings: readonly DoctorFinding[],
  dpus: readonly DpuDiagnosis[] | undefined,
) {
  return { ok: findings.length === 0, findings, areas: reports.map(({ findings: _, ...rest }) => rest), dpus };
}

const MARKS = { error: { mark: '✘', style: 'red' }, warning: { mark: '!', style: 'yellow' } } as const;

const isChecked = ({ findings, unseen }: AreaReport) => findings.length === 0 && unseen.length === 0;

/** Findings, then a line for each area without a fault. */
export function areaLines(
  reports: readonly AreaReport[],
  findings: readonly DoctorFinding[],
  width: number,
  wide: boolean,
): Line[] {
  const columns = Math.max(40, Math.min(width, 120));
  const lines = findings.flatMap((finding): Line[] => {
    const { mark, style } = MARKS[finding.severity];
    const [first = '', ...more] = wrap(`${finding.area}: ${finding.what}`, columns - 2, '');
    return [
      [paint(style, mark), ` ${first}`],
      ...more.map((line) => `  ${line}`),
      ...wrap(`impact: ${finding.impact}`, columns, '    '),
      ...(wide && finding.objects?.length ? [['    objects: ', ...joinParts(finding.objects, ' ')]] : []),
      ...(finding.consequences ?? []).flatMap((consequence) => wrap(`also: ${consequence}`, columns, '    ')),
      ...remedyParagraph(remedyLines(finding.fix), columns, '    fix: '),
      ...(finding.meanwhile === undefined
        ? []
        : remedyParagraph(remedyLines(finding.meanwhile), columns, '    meanwhile: ')),
      '',
    ];
  });
  for (const report of reports) {
    const { area, findings: areaFindings, seen, unseen } = report;
    if ((wide || areaFindings.length === 0) && seen.length > 0) {
      const mark = paint(areaFindings.length > 0 ? undefined : 'green', isChecked(report) ? '✔' : '·');
      const [first = '', ...more] = wrap(`${area}: ${seen.join('; ')}`, columns, '  ');
      lines.push([mark, first.slice(1)], ...more);
    }
    if (unseen.length > 0) {
      const text = `${area}: not checked: ${[...new Set(unseen)].join(', ')}`;
      lines.push(...wrap(text, columns, '? ').map((line) => [paint('dim', line)]));
    }
  }
  if (lines.length > 0 && lines.at(-1) !== '') lines.push('');
  return lines;
}

export function endLines(reports: readonly AreaReport[], findings: readonly DoctorFinding[], wide: boolean): Line[] {
  return [...legendLines(reports, wide), summaryLine(reports, findings)];
}

function legendLines(reports: readonly AreaReport[], wide: boolean): Line[] {
  const isPartial = (report: AreaReport) =>
    !isChecked(report) && report.seen.length > 0 && (wide || report.findings.length === 0);
  const signs = [
    ...(reports.some(isPartial) ? ['· these checks of the area found nothing'] : []),
    ...(reports.some(({ unseen }) => unseen.length > 0) ? ['? skipped'] : []),
  ];
  return signs.length === 0 ? [] : [[paint('dim', signs.join('   '))]];
}

function summaryLine(reports: readonly AreaReport[], findings: readonly DoctorFinding[]): string {
  const errors = findings.filter(({ severity }) => severity === 'error').length;
  const counts = `${countText(errors, 'error')}, ${countText(findings.length - errors, 'warning')}`;
  const skipped = reports.reduce((sum, { unseen }) => sum + new Set(unseen).size, 0);
  const skippedText = skipped === 0 ? '' : `; ${countText(skipped, 'check')} skipped`;
  return `${findings.length === 0 ? 'no problems found' : counts}${skippedText}`;
}
