import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CpuSet } from '../../../model/cpu-set.ts';
import { type AssignmentsView, UNKNOWN_VIEW } from '../../../node-agent/assignments/view.ts';
import { createConfirmation } from '../../../node-agent/ovs-affinity/confirmation.ts';
import { type ContainerCpus, createCgroupTree } from '../../../node-agent/processes/cgroup-tree.ts';
import { needs } from '../../support/parts.ts';
import { tempDirectories } from '../support.ts';
import { containerPath, LAYOUTS } from '../vm-pinning/stage.ts';
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

  it('checks held CPUs again after ten seconds, until they are free', () => {
    running = { guaranteed: [cpus('4-5')], others: [] };
    stillUsed('4-7', viewOf('0-7', ''));
    seconds = 9.999;
    assert.equal(confirmation.isDue(), false);
    seconds = 10;
    assert.equal(confirmation.isDue(), true);
    running = { guaranteed: [], others: [] };
    stillUsed('4-7', viewOf('0-7', ''));
    seconds = 100;
    assert.equal(confirmation.isDue(), false);
  });

  it('holds CPUs that had an owner for a minute if there are no cgroups, but not others', () => {
    running = undefined;
    confirmation.see(viewOf('0-3', '4-5'));
    seconds = 100;
    confirmation.see(viewOf('0-7', ''));
    assert.equal(stillUsed('4-7', viewOf('0-7', '')), '4-5');
    seconds = 159.999;
    confirmation.see(viewOf('0-6', '7'));
    assert.equal(stillUsed('4-7', viewOf('0-7', '')), '4-5');
    seconds = 160;
    confirmation.see(viewOf('0-6', '7'));
    assert.equal(stillUsed('4-7', viewOf('0-7', '')), '');
  });
});

describe('the CPUs of running containers, from their cgroups', () => {
  needs('linux');
  const temp = tempDirectories();
  const uid = (n: number) => `0f7f4f36-7a0c-4c0e-9a4e-3d9d2a1f5b7${n}`;
  const displayed = (sets: readonly CpuSet[] | undefined) => sets?.map(String);

  for (const layout of LAYOUTS) {
    it(`${layout}: lists Guaranteed and other pods, but not ended or unconfined ones`, () => {
      const root = temp();
      if (layout.startsWith('v2')) writeFileSync(join(root, 'cgroup.controllers'), 'cpuset cpu\n');
      const container = (n: number, of: '' | 'burstable' | 'besteffort', list: string, runs = true) => {
        const path = join(root, containerPath(layout, uid(n), `c0ffee${n}`, of));
        mkdirSync(path, { recursive: true });
        writeFileSync(join(path, 'cpuset.cpus'), `${list}\n`);
        if (layout.startsWith('v2'))
          writeFileSync(join(path, 'cgroup.events'), `populated ${runs ? 1 : 0}\nfrozen 0\n`);
        writeFileSync(join(path, 'cgroup.procs'), runs ? '17\n' : '');
      };
      const tree = createCgroupTree(root);
      assert.equal(tree.containers(), undefined, 'before there is a kubelet');
      container(1, '', '4-5');
      container(2, '', '0-3');
      container(3, '', '6', false);
      container(4, '', '');
      container(5, 'burstable', '0-3');
      container(6, 'besteffort', '0-3');
      container(7, 'besteffort', '0-7');
      const result = tree.containers();
      assert.deepEqual(displayed(result?.guaranteed)?.sort(), ['0-3', '4-5']);
      assert.deepEqual(displayed(result?.others)?.sort(), ['0-3', '0-7']);
    });
  }
});
