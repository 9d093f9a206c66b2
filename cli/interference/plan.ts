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
  const rows = [...groups.values()].flatMap((group) => {
    const [first] = group;
    if (first === undefined) return [];
    const { kind, name, original, desired, actual, state, error } = first;
    const who = group.length === 1 ? name : countText(group.length, 'item');
    return [
      [KINDS[kind], who, original, desired ?? 'none is left', actual, error === null ? state : `${state}: ${error}`],
    ];
  });
  const isMoving = mode === 'move';
  const title = isMoving ? 'moved, because the node runs with --interrupts move' : 'would move with --interrupts move';
  return [
    '',
    ...(rows.length === 0 ? ['nothing that can be set runs on owned CPUs'] : [`${title}:`]),
    ...(rows.length === 0 ? [] : tableLines(['KIND', 'NAME', 'ORIGINAL', 'DESIRED', 'NOW', 'STATE'], rows)),
    ...managers.map(({ name, leaves }) => `left to ${name}: ${leaves}`),
    '',
    'cannot move:',
    ...fixedLines(vms, items).map((line) => `  ${line}`),
  ];
}

function fixedLines(vms: InterferenceStatus['vms'], items: readonly MovedItem[]): string[] {
  const managed = items.filter(({ state }) => state === 'managed').length;
  const lines =
    managed === 0
      ? []
      : [`${countText(managed, 'interrupt')} of the kernel: isolcpus=managed_irq,CPUS, for the queues of disks`];
  for (const { ids, what, help } of FIXED) {
    const sources = vms.flatMap((vm) => vm.sources.filter(({ id }) => ids.includes(id)));
    const counted = ids.filter((id) => sources.some((source) => source.id === id));
    const total = sources.reduce((sum, { count }) => sum + count, 0);
    lines.push(`${what}${total === 0 ? '' : ` (${counted.join(', ')}: ${total} in the last minute)`}: ${help}`);
  }
  return [...lines, 'workqueues and kernel threads that belong to one CPU: no option'];
}
