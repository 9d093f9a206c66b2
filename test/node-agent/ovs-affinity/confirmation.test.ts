import assert from 'node:assert/strict';
import { type AssignmentsView, UNKNOWN_VIEW } from '../../../node-agent/assignments/view.ts';
import { createConfirmation } from '../../../node-agent/ovs-affinity/confirmation.ts';
import type { ContainerCpus } from '../../../node-agent/processes/cgroup-tree.ts';
import { cpus } from './stage.ts';

type Confirmation = ReturnType<typeof createConfirmation>;

const viewOf = (free: string, owned: string, pool?: string): AssignmentsView => ({
  ...UNKNOWN_VIEW,
  free: cpus(free),
  owned: cpus(owned),
  pool: pool === undefined ? undefined : cpus(pool),
});

describe('confirmation that free CPUs are free', () => {
  let seconds: number;
  let running: ContainerCpus | undefined;
  let confirmation: Confirmation;
  const stillUsed = (gain: string, view: AssignmentsView) => confirmation.stillUsed(cpus(gain), view).toString();

  beforeEach(() => {
    seconds = 0;
    running = { guaranteed: [], others: [] };
    confirmation = createConfirmation({ containers: () => running, now: () => seconds * 1000 });
  });

  // Sets of running containers of Guaranteed pods, and of others; the CPUs to take; free, owned, pool; the held CPUs.
  const cases: [string, string[], string[], string, [string, string, string?], string][] = [
    ['no container', [], [], '4-7', ['0-7', ''], ''],
    ['a container on CPUs that it owned', ['4-5'], [], '4-7', ['0-7', ''], '4-5'],
    ['one container has ended, another one has not', ['6-7'], [], '4-7', ['0-7', ''], '6-7'],
    ['a container with some CPUs that another one owns now', ['3-4'], [], '4-7', ['0-2,4-7', '3'], '4'],
    ['the old pool, which a container uses until the kubelet writes the new one', ['0-3'], [], '4-7', ['0-7', ''], ''],
    ['the new pool', ['0-7'], [], '4-7', ['0-7', ''], ''],
    ['the first check: the pool without reserved CPUs, by the checkpoint', ['2-7'], [], '0-7', ['0-7', '', '2-7'], ''],
    ['the same without a checkpoint: the pool of a Burstable container', ['2-7'], ['2-7'], '0-7', ['0-7', ''], ''],
    ['the first check after the kubelet lost its state', ['4-5'], ['0-3', '0-7'], '0-7', ['0-7', '', '0-7'], '4-5'],
  ];
  for (const [name, guaranteed, others, gain, view, expected] of cases) {
    it(`${name}: ${expected || 'nothing'} held`, () => {
      running = { guaranteed: guaranteed.map(cpus), others: others.map(cpus) };
      assert.equal(stillUsed(gain, viewOf(...view)), expected);
    });
  }
});
