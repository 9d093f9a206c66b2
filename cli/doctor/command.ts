import { Command, InvalidArgumentError } from 'commander';
import { createKubeClient } from '../../kube/client.ts';
import { type DpuDiagnosis, diagnoseDpu } from '../../model/lease/diagnose.ts';
import { DPU_LEASE_NAMESPACE, DPU_LEASE_PREFIX } from '../../model/names.ts';
import packageJson from '../../package.json' with { type: 'json' };
import { lookAtDpus } from './look.ts';

/** Two and a half of the usual renewals: whoever renews is met at least twice. */
const WATCH = 25;

interface DoctorFlags {
  readonly kubeconfig?: string;
  readonly dpuLeaseNamespace: string;
  readonly watch: number;
  readonly json?: true;
}

/** `plumbline doctor` */
export function doctorCommand(): Command {
  return new Command('doctor')
    .description(
      'Looks for what goes wrong without a word: a DPU’s lease that two write, that nobody renews or that belongs to a ' +
        'node of the past, and pods that a DPU has not connected. Reads nodes, pods and leases, writes nothing. Ends ' +
        'with status 0 only if it found nothing wrong.',
    )
    .option('--kubeconfig <path>', 'kubeconfig; default: KUBECONFIG, else ~/.kube/config')
    .option('--dpu-lease-namespace <name>', 'namespace of the DPUs’ leases', DPU_LEASE_NAMESPACE)
    .option('--watch <seconds>', 'how long the leases are looked at', wholeSeconds, WATCH)
    .option('--json', 'print what was found as one JSON document')
    .action(async ({ kubeconfig, dpuLeaseNamespace: namespace, watch: seconds, json }: DoctorFlags) => {
      const client = createKubeClient({ kubeconfig, userAgent: `plumbline/${packageJson.version}` });
      const sleep = (wait: number) => new Promise<void>((resolve) => setTimeout(resolve, wait * 1000));
      try {
        const seen = await lookAtDpus({ client, namespace, seconds, wallClock: Date.now, sleep });
        const found = seen.map((one) => diagnoseDpu(DPU_LEASE_PREFIX + one.node, one));
        const text = json === true ? JSON.stringify(found, null, 2) : doctorLines(found, seconds).join('\n');
        process.stdout.write(`${text}\n`);
        process.exitCode = found.every(({ problems }) => problems.length === 0) ? 0 : 1;
      } finally {
        await client.close();
      }
    });
}

/** The diagnoses for people: a line for each node, and below it what is wrong and what is worth knowing. */
export function doctorLines(found: readonly DpuDiagnosis[], seconds: number): string[] {
  if (found.length === 0) return ['no node’s network runs on a DPU, and there is no lease of one: nothing to look at'];
  return found.flatMap(({ node, renewals, writers, problems, notes }) => {
    const by = writers.length === 0 ? '' : ` by ${writers.join(' and ')}`;
    const times = renewals === 1 ? 'once' : `${renewals} times`;
    return [
      `${problems.length === 0 ? 'ok' : '! '}  ${node}: its DPU’s lease was renewed ${times} in ${seconds} s${by}`,
      ...problems.map((problem) => `      ${problem}`),
      ...notes.map((note) => `      (${note})`),
    ];
  });
}

function wholeSeconds(text: string): number {
  const seconds = Number(text);
  if (!Number.isInteger(seconds) || seconds < 0 || seconds > 3600)
    throw new InvalidArgumentError('expected 0 to 3600 whole seconds');
  return seconds;
}
