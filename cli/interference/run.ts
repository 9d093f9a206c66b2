import type { DisturbedVm, InterferenceStatus } from '../../model/agent-status.ts';
import { type AgentFlags, usingAgent } from '../agent/flags.ts';
import { fetchInterference, sourceText, vmNameOf } from '../agent/interference.ts';
import { numbersOf } from '../support/cpus.ts';
import { EXIT } from '../support/exit-status.ts';
import { ageText, print } from '../support/output.ts';
import { tableLines } from '../support/terminal.ts';
import { planLines } from './plan.ts';

/** Share of the time of a VM's CPUs from which on the command reports it, as the alert does. */
const MAX_SHARE = 0.01;
const AMOUNTS = ['INTERRUPTS', 'RUN DELAY', 'OWN'];

export interface InterferenceFlags extends AgentFlags {
  readonly plan?: boolean;
}

/** Prints what was taken from the VMs on a node; without a name, on this machine. @throws CliError, KubeError */
export async function run(node: string | undefined, { output, plan = false, ...flags }: InterferenceFlags) {
  const status = await usingAgent(node, flags, fetchInterference);
  const text = (_: unknown, wide: boolean) => [
    ...interferenceLines(status, wide),
    ...(plan ? planLines(status, wide) : []),
  ];
  // Output of -o json: docs/schemas/interference.json.
  const vms = status.vms.map((vm) => ({ ...vm, cpus: numbersOf(vm.cpus), disturbed: isDisturbed(vm) }));
  await print(output, { ...status, vms }, { text });
  process.exitCode = status.vms.some(isDisturbed) ? EXIT.findings : EXIT.ok;
}

function isDisturbed({ share }: DisturbedVm): boolean {
  return (share ?? 0) > MAX_SHARE;
}

const QUALITIES: Readonly<Record<DisturbedVm['quality'], string>> = {
  exact: 'exact (irq.pressure)',
  sampled: 'sampled (/proc/stat), also while the VM is idle',
  'softirqs-sampled': 'softirqs sampled (/proc/stat); this kernel does not count hardware interrupts’ time',
  counts: 'this kernel does not count the time of interrupts',
};

/** @param wide also since the start of each VM, how it was measured, and a line for each source */
function interferenceLines({ vms, problems }: InterferenceStatus, wide: boolean): string[] {
  const warnings = problems.map((problem) => `! ${problem}`);
  if (vms.length === 0) return ['no VM on this node has dedicated CPUs', ...warnings];
  if (wide) return [...vms.flatMap((vm, i) => [...(i === 0 ? [] : ['']), ...vmLines(vm)]), ...warnings];
  const rows = vms.map((vm) => [
    `${isDisturbed(vm) ? '!' : ' '} ${vmNameOf(vm)}`,
    vm.cpus,
    percentText(vm.share),
    ...amounts(vm.lastMinute),
    vm.sources.slice(0, 3).map(sourceText).join(', '),
  ]);
  return [...tableLines(['  VM', 'CPUS', 'TAKEN', ...AMOUNTS, 'MOST FREQUENT'], rows), ...warnings];
}

function vmLines(vm: DisturbedVm): string[] {
  const { lastMinute, sinceStart, sources } = vm;
  const rows = [
    ...(lastMinute === null ? [] : [['last', ageText(lastMinute.seconds), ...amounts(lastMinute)]]),
    ['in all', ageText(sinceStart.seconds), ...amounts(sinceStart)],
  ];
  return [
    `${isDisturbed(vm) ? '! ' : ''}${vmNameOf(vm)} on CPUs ${vm.cpus}: ${percentText(vm.share)} taken`,
    ...tableLines(['', 'MEASURED', ...AMOUNTS], rows).map((line) => `  ${line}`),
    `  interrupts: ${QUALITIES[vm.quality]}`,
    ...sources.map((source) => `  ${sourceText(source)} in the last minute`),
  ];
}

function percentText(share: number | null): string {
  return share === null ? 'unknown' : `${(share * 100).toFixed(2)} %`;
}

/** A dash for what the kernel does not count. */
function amounts(disturbance: DisturbedVm['lastMinute']): string[] {
  const { interrupts = null, interruptsError = null, runDelay = null, own = null } = disturbance ?? {};
  const [text = '', ...others] = [interrupts, runDelay, own].map((seconds) =>
    seconds === null ? '-' : `${seconds.toFixed(3)} s`,
  );
  return [interruptsError === null ? text : `${text} ± ${interruptsError.toFixed(3)}`, ...others];
}
