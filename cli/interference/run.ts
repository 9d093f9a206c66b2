import type { DisturbedVm, InterferenceStatus, MovedItem } from '../../model/agent-status.ts';
import { countText } from '../../model/amounts.ts';
import { groupBy } from '../../model/lists.ts';
import { fetchInterference, sourceText, vmNameOf } from '../agent/ask.ts';
import { type AgentFlags, usingAgent } from '../agent/flags.ts';
import { numbersOf } from '../support/cpus.ts';
import { EXIT } from '../support/exit-status.ts';
import { ageText, print } from '../support/output.ts';
import { someNames, tableLines } from '../support/terminal.ts';

/** Share of the time of a VM's CPUs from which on the command reports it, as the alert does. */
const MAX_SHARE = 0.01;

interface InterferenceFlags extends AgentFlags {
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
  exact: 'exactly (irq.pressure)',
  sampled: 'by samples (/proc/stat), also while the VM is idle',
  'softirqs-sampled': 'by samples (/proc/stat), softirqs only',
  counts: 'not by this kernel',
};
const AMOUNTS = ['INTERRUPTS', 'RUN DELAY', 'OWN'];

/** @param wide also since the start of each VM, how it was measured, and all sources */
function interferenceLines({ vms, problems }: InterferenceStatus, wide: boolean): string[] {
  const warnings = problems.map((problem) => `! ${problem}`);
  if (vms.length === 0) return ['no VM on this node has dedicated CPUs', ...warnings];
  const sinceStart = ['FOR', ...AMOUNTS.map((amount) => `${amount} IN ALL`), 'COUNTED'];
  const rows = vms.map((vm) => [
    `${isDisturbed(vm) ? '!' : ' '} ${vmNameOf(vm)}`,
    vm.cpus,
    vm.share === null ? 'unknown' : `${(vm.share * 100).toFixed(2)} %`,
    ...amounts(vm.lastMinute),
    ...(wide ? [ageText(vm.sinceStart.seconds), ...amounts(vm.sinceStart), QUALITIES[vm.quality]] : []),
    (wide ? vm.sources : vm.sources.slice(0, 3)).map(sourceText).join(', '),
  ]);
  const header = ['  VM', 'CPUS', 'TAKEN', ...AMOUNTS, ...(wide ? sinceStart : []), 'MOST FREQUENT'];
  return [...tableLines(header, rows), ...warnings];
}

/** A dash for what the kernel does not count. */
function amounts(disturbance: DisturbedVm['lastMinute']): string[] {
  const { interrupts = null, runDelay = null, own = null } = disturbance ?? {};
  return [interrupts, runDelay, own].map((seconds) => (seconds === null ? '-' : `${seconds.toFixed(3)} s`));
}

const KINDS: Readonly<Record<MovedItem['kind'], string>> = {
  irq: 'interrupt',
  rps: 'packet steering',
  workqueue: 'workqueue',
  kthread: 'kernel thread',
  default: 'new interrupts',
};

/** What stays on a VM's CPUs, and the boot option that would help. By the names in /proc/interrupts and /proc/softirqs. */
const FIXED: readonly { readonly ids: readonly string[]; readonly what: string; readonly help: string }[] = [
  { ids: ['LOC', 'TIMER', 'HRTIMER'], what: 'the tick and timers', help: 'nohz_full=CPUS' },
  { ids: ['RCU'], what: 'RCU callbacks', help: 'rcu_nocbs=CPUS' },
  {
    ids: ['RES', 'CAL', 'TLB', 'IWI', 'SCHED'],
    what: 'interrupts between CPUs',
    help: 'no option; fewer with isolcpus=domain,CPUS',
  },
];

/** @param wide a line for each item; otherwise items with the same values share one */
export function planLines({ mode, vms, items, managers }: InterferenceStatus, wide: boolean): string[] {
  const groups = groupBy(items, ({ kind, name, original, desired, actual, state, error }) =>
    [kind, wide ? name : '', original, desired, actual, state, error].join(),
  );
  const rows = [...groups.values()].flatMap((group) =>
    group.slice(0, 1).map(({ kind, original, desired, actual, state, error }) => {
      const names = someNames(group.map(({ name }) => name));
      const stateText = error === null ? state : `${state}: ${error}`;
      return [KINDS[kind], names, original, desired ?? 'none is left', actual, stateText];
    }),
  );
  const title =
    mode === 'move' ? 'moved, because the node runs with --interrupts move:' : 'would move with --interrupts move:';
  const table = [title, ...tableLines(['KIND', 'NAME', 'ORIGINAL', 'DESIRED', 'NOW', 'STATE'], rows)];
  const managed = items.filter(({ state }) => state === 'managed').length;
  const managedText = `  ${countText(managed, 'interrupt')} of the kernel: isolcpus=managed_irq,CPUS, for the queues of disks`;
  return [
    '',
    ...(rows.length === 0 ? ['nothing that can be set runs on owned CPUs'] : table),
    ...managers.map(({ name, leaves }) => `left to ${name}: ${leaves}`),
    '',
    'cannot move:',
    ...(managed === 0 ? [] : [managedText]),
    ...FIXED.map(({ ids, what, help }) => {
      const sources = vms.flatMap((vm) => vm.sources.filter(({ id }) => ids.includes(id)));
      const counted = ids.filter((id) => sources.some((source) => source.id === id));
      const total = sources.reduce((sum, { count }) => sum + count, 0);
      return `  ${what}${total === 0 ? '' : ` (${counted.join(', ')}: ${total} in the last minute)`}: ${help}`;
    }),
    '  workqueues and kernel threads that belong to one CPU: no option',
  ];
}
