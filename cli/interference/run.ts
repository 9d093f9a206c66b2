import type { DisturbedVm, InterferenceStatus } from '../../model/agent-status.ts';
import { type AgentFlags, usingAgent } from '../agent/flags.ts';
import { fetchInterference, sourceText, vmNameOf } from '../agent/interference.ts';
import { EXIT } from '../support/exit-status.ts';
import { ageText, numbersOf, print } from '../support/output.ts';
import { tableLines } from '../support/terminal.ts';
import { planLines } from './plan.ts';

/** Share of the time of a VM's CPUs from which on the command reports it, as the alert does. */
const MAX_SHARE = 0.01;

export interface InterferenceFlags extends AgentFlags {
  readonly plan?: boolean;
}

/** Prints what was taken from the VMs on a node; without a name, on this machine. @throws CliError, KubeError */
export async function run(node: string | undefined, { output, plan, ...flags }: InterferenceFlags): Promise<void> {
  const status = await usingAgent(node, flags, fetchInterference);
  const planned = (wide: boolean) => (plan === true ? planLines(status, wide) : []);
  const text = (_: unknown, wide: boolean) => [...interferenceLines(status, wide), ...planned(wide)];
  await print(output, interferenceData(status), { text });
  process.exitCode = status.vms.some(isDisturbed) ? EXIT.findings : EXIT.ok;
}

/** Output of `plumbline interference -o json`: docs/schemas/interference.json. */
function interferenceData({ vms, ...status }: InterferenceStatus) {
  return { ...status, vms: vms.map((vm) => ({ ...vm, cpus: numbersOf(vm.cpus), disturbed: isDisturbed(vm) })) };
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
function interferenceLines({ vms, problems }: InterferenceStatus, wide = false): string[] {
  const warnings = problems.map((problem) => `! ${problem}`);
  if (vms.length === 0) return ['no VM on this node has dedicated CPUs', ...warnings];
  if (wide) return [...vms.flatMap((vm, i) => [...(i === 0 ? [] : ['']), ...vmLines(vm)]), ...warnings];
  const rows = vms.map((vm) => [
    `${isDisturbed(vm) ? '!' : ' '} ${vmNameOf(vm)}`,
    vm.cpus,
    percentText(vm.share),
    interruptsText(vm.lastMinute),
    secondsText(vm.lastMinute?.runDelay),
    secondsText(vm.lastMinute?.own),
    vm.sources.slice(0, 3).map(sourceText).join(', '),
  ]);
  const head = ['  VM', 'CPUS', 'TAKEN', 'INTERRUPTS', 'RUN DELAY', 'OWN', 'MOST FREQUENT'];
  return [...tableLines(head, rows), ...warnings];
}

function vmLines(vm: DisturbedVm): string[] {
  const { lastMinute, sinceStart, sources } = vm;
  const amounts = (disturbance: DisturbedVm['sinceStart']) => [
    ageText(disturbance.seconds),
    interruptsText(disturbance),
    secondsText(disturbance.runDelay),
    secondsText(disturbance.own),
  ];
  const rows = [...(lastMinute === null ? [] : [['last', ...amounts(lastMinute)]]), ['in all', ...amounts(sinceStart)]];
  return [
    `${isDisturbed(vm) ? '! ' : ''}${vmNameOf(vm)} on CPUs ${vm.cpus}: ${percentText(vm.share)} taken`,
    ...tableLines(['', 'MEASURED', 'INTERRUPTS', 'RUN DELAY', 'OWN'], rows).map((line) => `  ${line}`),
    `  interrupts: ${QUALITIES[vm.quality]}`,
    ...sources.map((source) => `  ${sourceText(source)} in the last minute`),
  ];
}

function percentText(share: number | null): string {
  return share === null ? 'unknown' : `${(share * 100).toFixed(2)} %`;
}

function interruptsText(disturbance: DisturbedVm['lastMinute']): string {
  const error = disturbance?.interruptsError ?? undefined;
  return `${secondsText(disturbance?.interrupts)}${error === undefined ? '' : ` ± ${error.toFixed(3)}`}`;
}

/** A dash for what the kernel does not count. */
function secondsText(seconds: number | null | undefined): string {
  return typeof seconds === 'number' ? `${seconds.toFixed(3)} s` : '-';
}
