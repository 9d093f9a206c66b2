import assert from 'node:assert/strict';
import type { PodItem } from '../../../console/data/store.ts';
import { findWaiting, type WaitingQuery } from '../../../console/data/waiting-list.ts';

const pod = (name: string, more: Partial<PodItem>): PodItem => ({
  uid: name,
  key: name,
  namespace: 'east',
  name: `virt-launcher-${name}`,
  vm: name,
  cpus: 4,
  wholeCores: true,
  networks: [],
  ...more,
});

describe('the list of waiting pods', () => {
  const pods = [
    pod('vm-10', { since: '2026-11-01T10:00:00Z', verdict: 'broken', reason: 'DPUNotReady', text: 'its DPU is dead' }),
    pod('vm-9', { since: '2026-11-01T09:00:00Z', nominated: 'worker-3' }),
    pod('dpdk', {
      vm: undefined,
      name: 'dpdk',
      namespace: 'west',
      networks: [['physnet0', 'required']],
      since: '2026-11-01T11:00:00Z',
    }),
  ];
  const all: WaitingQuery = { text: '', sort: 'name', descending: false, filter: 'all' };
  const queries: readonly [what: string, query: Partial<WaitingQuery>, expected: string][] = [
    ['everything by namespace and name, 9 before 10', {}, 'vm-9 vm-10 dpdk'],
    ['those that waited longest', { sort: 'since', descending: true }, 'vm-9 vm-10 dpdk'],
    ['those that waited for the shortest time', { sort: 'since' }, 'dpdk vm-10 vm-9'],
    ['the most urgent', { sort: 'verdict', descending: true }, 'vm-10 vm-9 dpdk'],
    ['what needs attention', { filter: 'broken' }, 'vm-10'],
    ['VMs only', { filter: 'vms' }, 'vm-9 vm-10'],
    ['a reason', { text: 'dpunotready' }, 'vm-10'],
    ['a nominated node', { text: 'worker-3' }, 'vm-9'],
    ['a network and a namespace', { text: 'PHYSNET0 west/' }, 'dpdk'],
  ];
  it('finds a pod without a time as the one that waits for the shortest time', () => {
    const matches = findWaiting([...pods, pod('new', { since: undefined })], { ...all, sort: 'since' });
    assert.equal(matches[0]?.name, 'virt-launcher-new');
  });
  for (const [what, query, expected] of queries) {
    it(`finds ${what}`, () => {
      const matches = findWaiting(pods, { ...all, ...query }).map(({ vm, name }) => vm ?? name);
      assert.equal(matches.join(' '), expected);
    });
  }
});
