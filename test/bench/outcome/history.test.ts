import assert from 'node:assert/strict';
import { figuresOf, type History, type VmHistory } from '../../../bench/outcome/history.ts';

const vm = (name: string, more: Partial<VmHistory>): VmHistory => ({
  name,
  phase: 'steady',
  need: 4,
  created: 0,
  rejected: [],
  ...more,
});

/** Four VMs of the steady part and three of the fill, on twelve cores of two threads. */
const HISTORY: History = {
  allocatable: 24,
  threads: 2,
  processor: { 'kube-apiserver': 3, scheduler: 1.5 },
  vms: [
    vm('soon', { ran: 1, cpus: 4, physnet: 'physnet0', near: true }),
    vm('odd', { need: 3, created: 1, ran: 5, cpus: 4, physnet: 'physnet1', near: false }),
    vm('late', { created: 2, ran: 14, rejected: ['SMTAlignmentError', 'TopologyAffinityError'], deleted: 20, cpus: 4 }),
    vm('never', { physnet: 'physnet0', rejected: ['SMTAlignmentError'] }),
    vm('first', { phase: 'fill', created: 30, ran: 31, cpus: 4 }),
    vm('waits', { phase: 'fill', created: 31 }),
    vm('fits', { phase: 'fill', created: 32, ran: 32.5, need: 5, cpus: 6 }),
  ],
};

describe('the figures of the outcome bench', () => {
  const figures = figuresOf(HISTORY);
  const without = (name: string) => figuresOf({ ...HISTORY, vms: HISTORY.vms.filter((each) => each.name !== name) });

  for (const [what, figure, expected] of [
    ['rejections per 100 VMs', figures.rejections, (3 / 7) * 100],
    ['VMs of the steady part that ran within 10 s', figures.soon, 2 / 4],
    ['times by the nearest rank', figures.p50, 4],
    ['a VM that never ran, without a time', figures.p99, null],
    ['all VMs, if each ran', figuresOf({ ...HISTORY, vms: HISTORY.vms.slice(0, 3) }).p99, 12],
    ['the fill up to the first VM that waits', figures.beforeFirst, 1],
    ['no such number, if all of the fill ran', without('waits').beforeFirst, null],
    ['VMs that run at the end, without deleted ones', figures.atEnd, 4],
    ['VMs near their network among those that ran with one', figures.near, 1 / 2],
    ['idle cores: nine of twelve are VMs’', figures.idleCores, 25],
    ['CPUs above the request as padding', figures.padding, (2 / 16) * 100],
    ['the parts of the control plane', figures.processor, 4.5],
  ] as const) {
    it(`count ${what}`, () => assert.equal(figure, expected));
  }
});
