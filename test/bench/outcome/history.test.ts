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

  it('count rejections per 100 VMs', () => assert.equal(figures.rejections, (3 / 7) * 100));
  it('count VMs of the steady part that ran within 10 s', () => assert.equal(figures.soon, 2 / 4));
  it('use the nearest rank for times; a VM that never ran has none', () => {
    assert.equal(figures.p50, 4);
    assert.equal(figures.p99, null);
    assert.equal(figuresOf({ ...HISTORY, vms: HISTORY.vms.slice(0, 3) }).p99, 12);
  });
  it('count the fill up to the first VM that waits', () => assert.equal(figures.beforeFirst, 1));
  it('have no such number if all of the fill ran, or there is none', () => {
    const ran = HISTORY.vms.filter(({ name }) => name !== 'waits');
    assert.equal(figuresOf({ ...HISTORY, vms: ran }).beforeFirst, null);
  });
  it('count VMs that run at the end, without deleted ones', () => assert.equal(figures.atEnd, 4));
  it('count VMs near their network among those that ran with one', () => assert.equal(figures.near, 1 / 2));
  it('count whole cores for VMs, and the rest as idle', () => {
    // soon 2, odd 2, first 2, fits 3: 9 of 12.
    assert.equal(figures.idleCores, 25);
  });
  it('count CPUs above the request as padding', () => assert.equal(figures.padding, (2 / 16) * 100));
  it('add up the parts of the control plane', () => assert.equal(figures.processor, 4.5));
});
