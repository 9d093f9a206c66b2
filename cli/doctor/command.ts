import { Argument, Command, InvalidArgumentError } from 'commander';
import type { KubeClient } from '../../kube/client.ts';
import { KubeError } from '../../kube/errors.ts';
import { type DpuDiagnosis, diagnoseDpu } from '../../model/lease/diagnose.ts';
import { DPU_HOST_LABEL, DPU_LEASE_NAMESPACE, DPU_LEASE_PREFIX } from '../../model/names.ts';
import { type ClusterAccess, type ClusterFlags, usingCluster, withCluster } from '../support/cluster.ts';
import { EXIT } from '../support/exit-status.ts';
import { type OutputFormat, print, withOutput } from '../support/output.ts';
import { createProgress } from '../support/progress.ts';
import { terminalOf } from '../support/terminal.ts';
import { byCause } from './causes.ts';
import { checkAgents } from './checks/agents.ts';
import { checkCertificates } from './checks/certificates.ts';
import { checkDpus } from './checks/dpu.ts';
import { checkExtender } from './checks/extender.ts';
import { AREAS, type Area, type AreaReport, type Finding } from './checks/finding.ts';
import { checkInstalled } from './checks/installed.ts';
import { checkKubelets } from './checks/kubelet.ts';
import { checkNetworks } from './checks/networks.ts';
import { checkPods } from './checks/pods.ts';
import { checkPreflight } from './checks/preflight.ts';
import { checkWebhook } from './checks/webhook.ts';
import { type Facts, readFacts } from './facts/facts.ts';
import { readPreflight } from './facts/preflight.ts';
import { doctorLines } from './lines.ts';
import { lookAtDpus } from './look.ts';

/** Two and a half of the usual renewal intervals, so that it includes at least two renewals of every DPU. */
const WATCH = 25;

interface DoctorFlags extends ClusterFlags {
  readonly dpuLeaseNamespace: string;
  readonly watch: number;
  readonly json?: true;
  readonly output?: OutputFormat;
}

/** Areas with separate facts; all others share one set. */
const APART = ['preflight', 'dpu'] as const;
const isApart = (area: Area): area is (typeof APART)[number] => APART.some((one) => one === area);

const CHECKS: Readonly<Record<Exclude<Area, (typeof APART)[number]>, (facts: Facts) => AreaReport>> = {
  installed: checkInstalled,
  webhook: checkWebhook,
  certificates: checkCertificates,
  extender: checkExtender,
  agents: checkAgents,
  kubelet: checkKubelets,
  networks: checkNetworks,
  pods: checkPods,
};

const EXAMPLES = `
Areas: ${AREAS.join(', ')}.

Examples:
  plumbline doctor preflight           # before an installation: what is missing, and what you may not create
  plumbline doctor                     # everything else; takes ${WATCH} s where there are DPUs
  plumbline doctor webhook extender    # only these
  plumbline doctor dpu --watch 60      # the Leases of DPUs, and who writes them
  plumbline doctor -o wide             # every object of each finding by name
  plumbline doctor -o json

Reads only. Exit status: 0 nothing wrong, 1 something wrong, 2 wrong flags, 3 the cluster cannot be queried.`;

/** `plumbline doctor` */
export function doctorCommand(): Command {
  const command = new Command('doctor')
    .description(
      'Find what fails silently, its impact and its fix: missing parts, kubelet ' +
        'options, certificates, webhooks, an extender that no scheduler calls, networks, Leases and their writers, pods that ' +
        'Plumbline never saw.',
    )
    .addArgument(new Argument('[areas...]', 'what to check; default: all except preflight').choices(AREAS))
    .option('--dpu-lease-namespace <name>', 'namespace of the Leases of DPUs', DPU_LEASE_NAMESPACE)
    .option('--watch <seconds>', 'how long to watch the Leases of DPUs', wholeSeconds, WATCH)
    .option('--json', 'the same as -o json')
    .addHelpText('after', EXAMPLES)
    .action((areas: readonly Area[], flags: DoctorFlags) =>
      usingCluster(flags, (cluster) => run(cluster, areas, flags)),
    );
  return withOutput(withCluster(command), ['json', 'yaml', 'wide', 'name']);
}

async function run(cluster: ClusterAccess, areas: readonly Area[], flags: DoctorFlags): Promise<void> {
  const wanted = (area: Area) => (areas.length === 0 ? area !== 'preflight' : areas.includes(area));
  const reports = wanted('preflight') ? [checkPreflight(await readPreflight(cluster.client))] : [];
  const facts = AREAS.every((area) => isApart(area) || !wanted(area))
    ? undefined
    : await readFacts(cluster, Date.now());
  for (const area of AREAS) if (facts && !isApart(area) && wanted(area)) reports.push(CHECKS[area](facts));
  const dpus = wanted('dpu') ? await lookAtLeases(cluster.client, facts, flags) : undefined;
  if (wanted('dpu')) reports.push(checkDpus(dpus, flags.watch));
  const findings = byCause(reports.flatMap((report) => report.findings));
  await print(flags.json ? 'json' : flags.output, doctorData(reports, findings, dpus), {
    text: () => doctorLines(reports, findings, terminalOf(process.stdout)),
    wide: () => doctorLines(reports, findings, terminalOf(process.stdout), true),
    name: () => [...new Set(findings.flatMap(({ objects }) => objects ?? []))],
  });
  process.exitCode = findings.length === 0 ? EXIT.ok : EXIT.findings;
}

/** The data in docs/schemas/doctor.json. */
export function doctorData(
  reports: readonly AreaReport[],
  findings: readonly Finding[],
  dpus: readonly DpuDiagnosis[] | undefined,
) {
  return { ok: findings.length === 0, findings, areas: reports.map(({ findings: _, ...rest }) => rest), dpus };
}

/** Watches only if there are Leases. Undefined if the user may not read them. */
async function lookAtLeases(
  client: KubeClient,
  facts: Facts | undefined,
  { dpuLeaseNamespace: namespace, watch }: DoctorFlags,
): Promise<DpuDiagnosis[] | undefined> {
  const progress = createProgress();
  const begun = Date.now();
  const sleep = (seconds: number) => new Promise<void>((resolve) => setTimeout(resolve, seconds * 1000));
  const hosts = facts?.nodes.some(({ metadata }) => metadata.labels?.[DPU_HOST_LABEL] !== undefined) ?? true;
  const tick = async (seconds: number) => {
    progress.update((Date.now() - begun) / 1000 / watch, 'watching the Leases of DPUs');
    await sleep(seconds);
  };
  try {
    const options = { client, namespace, wallClock: Date.now, sleep: tick };
    const quick = await lookAtDpus({ ...options, seconds: 0 });
    if (quick.length === 0 || (!hosts && quick.every(({ looks }) => looks.length === 0))) return [];
    const seen = watch === 0 ? quick : await lookAtDpus({ ...options, seconds: watch });
    return seen.map((one) => diagnoseDpu(DPU_LEASE_PREFIX + one.node, one));
  } catch (error) {
    if (error instanceof KubeError && error.status === 403) return undefined;
    throw error;
  } finally {
    progress.end();
  }
}

function wholeSeconds(text: string): number {
  const seconds = Number(text);
  if (!Number.isInteger(seconds) || seconds < 0 || seconds > 3600)
    throw new InvalidArgumentError('expected 0 to 3600 whole seconds');
  return seconds;
}
