import type { InterferenceStatus, MovedItem } from '../../model/agent-status.ts';
import { countText } from '../../model/amounts.ts';
import { groupBy } from '../../model/lists.ts';
import { tableLines } from '../support/terminal.ts';

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
  const groups = groupBy(items, ({ kind, name, original, desired, state, error }) =>
    [kind, wide ? name : '', original, desired, state, error].join(),
  );
  const rows = [...groups.values()].flatMap(([first, ...others]) => {
    if (first === undefined) return [];
    const { kind, name, original, desired, actual, state, error } = first;
    const who = others.length === 0 ? name : countText(others.length + 1, 'item');
    const stateText = error === null ? state : `${state}: ${error}`;
    return [[KINDS[kind], who, original, desired ?? 'none is left', actual, stateText]];
  });
  const title =
    mode === 'move' ? 'moved, because the node runs with --interrupts move:' : 'would move with --interrupts move:';
  const table = [title, ...tableLines(['KIND', 'NAME', 'ORIGINAL', 'DESIRED', 'NOW', 'STATE'], rows)];
  const managed = items.filter(({ state }) => state === 'managed').length;
  return [
    '',
    ...(rows.length === 0 ? ['nothing that can be set runs on owned CPUs'] : table),
    ...managers.map(({ name, leaves }) => `left to ${name}: ${leaves}`),
    '',
    'cannot move:',
    ...(managed === 0
      ? []
      : [`  ${countText(managed, 'interrupt')} of the kernel: isolcpus=managed_irq,CPUS, for the queues of disks`]),
    ...FIXED.map(({ ids, what, help }) => {
      const sources = vms.flatMap((vm) => vm.sources.filter(({ id }) => ids.includes(id)));
      const counted = ids.filter((id) => sources.some((source) => source.id === id));
      const total = sources.reduce((sum, { count }) => sum + count, 0);
      return `  ${what}${total === 0 ? '' : ` (${counted.join(', ')}: ${total} in the last minute)`}: ${help}`;
    }),
    '  workqueues and kernel threads that belong to one CPU: no option',
  ];
}
