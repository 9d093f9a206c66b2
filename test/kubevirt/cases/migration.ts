import assert from 'node:assert/strict';
import { until } from '../../../cli/demo/until.ts';
import { plumbline } from '../../cli/run.ts';
import { type Spoken, spoken } from '../../cli/spoken.ts';
import { type Cases, cpusOf, machine, PATIENCE } from '../stage.ts';

const MERGE = 'application/merge-patch+json';
export const migrationCases: Cases = (stage) => {
  describe('migrations', () => {
    it('the target of a migration is padded like the source, is placed on another node and takes over', async () => {
      const { create, launcher, launchers, untilPhase, vmi, remove } = stage();
      const vm = machine('moves');
      await create(vm);
      const source = await launcher('moves');
      await untilPhase('moves', 'Running');
      await create({
        apiVersion: 'kubevirt.io/v1',
        kind: 'VirtualMachineInstanceMigration',
        metadata: { name: 'move', namespace: 'vms' },
        spec: { vmiName: 'moves' },
      });
      const target = await until('the target', PATIENCE, () =>
        launchers('moves').find((pod) => pod.metadata.uid !== source.metadata.uid && pod.spec.nodeName !== undefined),
      );
      assert.deepEqual([cpusOf(source), cpusOf(target)], ['10', '10']);
      assert.ok(target.metadata.labels?.['kubevirt.io/migrationJobUID'] !== undefined);
      await until(
        'the VM to have moved',
        PATIENCE,
        () => vmi('moves')?.status?.nodeName === target.spec.nodeName || undefined,
      );
      assert.notEqual(vmi('moves')?.status?.nodeName, source.spec.nodeName);
      await remove(vm);
    });

    it('the state is migrating while a target waits, running on the source after a cancellation, and on the target at last', async () => {
      const { client, create, launcher, launchers, untilPhase, remove, cluster } = stage();
      const vm = machine('states');
      await create(vm);
      await untilPhase('states', 'Running');
      const source = await launcher('states');
      const home = source.spec.nodeName ?? '';
      const other = home === 'smt2-a' ? 'smt2-b' : 'smt2-a';
      const cordon = (unschedulable: boolean) =>
        client.patch(`/api/v1/nodes/${other}`, MERGE, { spec: { unschedulable } });
      const explained = async () => {
        const args = ['explain', 'vm', 'states', '-n', 'vms', '-o', 'json'];
        return spoken((await plumbline(args, { kubeconfig: cluster.plane.adminKubeconfig })).stdout);
      };
      const untilState = (what: string, holds: (answer: Spoken) => boolean) =>
        until(what, PATIENCE, async () => {
          const answer = await explained();
          return holds(answer) ? answer : undefined;
        });
      const move = {
        apiVersion: 'kubevirt.io/v1',
        kind: 'VirtualMachineInstanceMigration',
        metadata: { name: 'move-states', namespace: 'vms' },
        spec: { vmiName: 'states' },
      };
      await cordon(true);
      await create(move);
      const waits = await untilState('the target to wait', ({ stage: state, migration }) => {
        return state === 'migrating' && migration?.waits !== undefined;
      });
      assert.equal(waits.migration?.source, home);
      assert.match(JSON.stringify(waits), new RegExp(`${other}.*cordoned|cordoned.*${other}`));
      await remove(move);
      const stays = await untilState('the VM to stay', ({ stage: state }) => state === 'running');
      assert.equal(stays.node, home);
      await cordon(false);
      await create({ ...move, metadata: { ...move.metadata, name: 'move-again' } });
      const moved = await untilState('the VM to run elsewhere', ({ stage: state, node }) => {
        return state === 'running' && node === other;
      });
      assert.equal(moved.node, other);
      assert.ok(launchers('states').some(({ spec }) => spec.nodeName === other));
      await remove(vm);
    });

    it('CPU hotplug from 1 to 3 sockets of two cores gives launchers with 4, 6 and 8 CPUs', async () => {
      const { client, create, launcher, launchers, untilPhase, vmi, remove } = stage();
      const cpu = {
        cores: 2,
        sockets: 1,
        threads: 1,
        maxSockets: 4,
        dedicatedCpuPlacement: true,
        isolateEmulatorThread: true,
      };
      const vm = machine('grows', { cpu });
      await create(vm);
      await launcher('grows');
      await untilPhase('grows', 'Running');
      const seen = launchers('grows').map(cpusOf);
      for (const sockets of [2, 3]) {
        const path = '/apis/kubevirt.io/v1/namespaces/vms/virtualmachines/grows';
        await client.patch(path, MERGE, { spec: { template: { spec: { domain: { cpu: { sockets } } } } } });
        await until(`${sockets} sockets to be plugged in`, PATIENCE, () => {
          const topology = vmi('grows')?.status?.['currentCPUTopology'] as { sockets?: number } | undefined;
          return topology?.sockets === sockets || undefined;
        });
        seen.push(cpusOf(launchers('grows').at(-1)!));
      }
      assert.deepEqual(seen, ['4', '6', '8']);
      await remove(vm);
    });
  });

  describe('refused launchers', () => {
    it('a quota denies with KubeVirt’s side containers in the sum, and explain names the owner of each CPU', async () => {
      const { client, create, cluster, remove } = stage();
      await cluster.plane.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'narrow' } });
      await client.create('/api/v1/namespaces/narrow/resourcequotas', {
        apiVersion: 'v1',
        kind: 'ResourceQuota',
        metadata: { name: 'cpus', namespace: 'narrow' },
        spec: { hard: { 'limits.cpu': '6' } },
      });
      const cpu = { cores: 4, dedicatedCpuPlacement: true, isolateEmulatorThread: true };
      const vm = { ...machine('wide', { cpu }), metadata: { name: 'wide', namespace: 'narrow' } };
      await create(vm);
      const text = await until('the denial', PATIENCE, () =>
        stage()
          .events('wide')
          .find((message) => message.includes('exceeded quota')),
      );
      assert.match(text, /requested: limits\.cpu=6015m, used: limits\.cpu=0, limited: limits\.cpu=6/);
      const args = ['explain', 'vm', 'wide', '-n', 'narrow', '-o', 'json'];
      const { stdout } = await plumbline(args, { kubeconfig: cluster.plane.adminKubeconfig });
      const { why, help } = spoken(stdout);
      assert.match(why, /6015m/);
      assert.match(help.join(), /side containers/);
      await remove(vm);
    });
  });
};
