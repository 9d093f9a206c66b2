import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CpuSet } from '../../../model/cpu-set.ts';
import { type AssignmentsView, UNKNOWN_VIEW } from '../../../node-agent/assignments/view.ts';
import { type Confirmation, createConfirmation } from '../../../node-agent/ovs-affinity/confirmation.ts';
import { type ContainerCpus, createCgroupTree } from '../../../node-agent/processes/cgroup-tree.ts';
import { needs } from '../../support/parts.ts';
import { tempDirectories } from '../support.ts';
import { containerPath, LAYOUTS } from '../vm-pinning/stage.ts';
import { cpus } from './stage.ts';

const viewOf = (free: string, owned: string, pool?: string): AssignmentsView => ({
  ...UNKNOWN_VIEW,
  free: cpus(free),
  owned: cpus(owned),
  pool: pool === undefined ? undefined : cpus(pool),
});

describe('whether CPUs that the kubelet calls free are', () => {
  let seconds: number;
  let running: ContainerCpus | undefined;
  let confirmation: Confirmation;
  const held = (gain: string, view: AssignmentsView) => confirmation.held(cpus(gain), view).toString();

  beforeEach(() => {
    seconds = 0;
    running = { guaranteed: [], others: [] };
    confirmation = createConfirmation({ containers: () => running, now: () => seconds * 1000 });
  });

  // Sets of running containers of Guaranteed pods, of others; the CPUs to be taken; free, owned, pool; what is held.
  const cases: [string, string[], string[], string, [string, string, string?], string][] = [
    ['no container', [], [], '4-7', ['0-7', ''], ''],
    ['a container on CPUs that were its own', ['4-5'], [], '4-7', ['0-7', ''], '4-5'],
    ['one that has ended, another that has not', ['6-7'], [], '4-7', ['0-7', ''], '6-7'],
    ['a container some of whose CPUs another one owns by now', ['3-4'], [], '4-7', ['0-2,4-7', '3'], '4'],
    ['the old pool, which a container is on until the kubelet writes the new one', ['0-3'], [], '4-7', ['0-7', ''], ''],
    ['the new pool', ['0-7'], [], '4-7', ['0-7', ''], ''],
    ['the first look: the pool without reserved CPUs, by the checkpoint', ['2-7'], [], '0-7', ['0-7', '', '2-7'], ''],
    ['the same without a checkpoint: as a Burstable container has it', ['2-7'], ['2-7'], '0-7', ['0-7', ''], ''],
    ['the first look after the kubelet lost its state', ['4-5'], ['0-3', '0-7'], '0-7', ['0-7', '', '0-7'], '4-5'],
  ];
  for (const [name, guaranteed, others, gain, view, expected] of cases) {
    it(`${name}: ${expected || 'nothing'} held`, () => {
      running = { guaranteed: guaranteed.map(cpus), others: others.map(cpus) };
      assert.equal(held(gain, viewOf(...view)), expected);
    });
  }

  it('held: looked at again after ten seconds, once it is not: no more', () => {
    running = { guaranteed: [cpus('4-5')], others: [] };
    held('4-7', viewOf('0-7', ''));
    assert.equal(confirmation.isDue(), false);
    seconds = 10;
    assert.equal(confirmation.isDue(), true);
    running = { guaranteed: [], others: [] };
    held('4-7', viewOf('0-7', ''));
    seconds = 100;
    assert.equal(confirmation.isDue(), false);
  });

  it('no cgroups: CPUs that had an owner are held for a minute, others are not', () => {
    running = undefined;
    confirmation.see(viewOf('0-3', '4-5'));
    seconds = 100;
    confirmation.see(viewOf('0-7', ''));
    assert.equal(held('4-7', viewOf('0-7', '')), '4-5');
    seconds = 161;
    confirmation.see(viewOf('0-7', ''));
    assert.equal(held('4-7', viewOf('0-7', '')), '');
  });
});

describe('the CPUs of running containers, by their cgroups', () => {
  needs('linux');
  const temp = tempDirectories();
  const uid = (n: number) => `0f7f4f36-7a0c-4c0e-9a4e-3d9d2a1f5b7${n}`;
  const shown = (sets: readonly CpuSet[] | undefined) => sets?.map(String);

  for (const layout of LAYOUTS) {
    it(`${layout}: Guaranteed pods, others; not what has ended or is not confined`, () => {
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
      const found = tree.containers();
      assert.deepEqual(shown(found?.guaranteed)?.sort(), ['0-3', '4-5']);
      assert.deepEqual(shown(found?.others)?.sort(), ['0-3', '0-7']);
    });
  }
});
