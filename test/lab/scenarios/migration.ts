import assert from 'node:assert/strict';
import { ALIGNED, runsAligned } from '../kubevirt/aligned.ts';
import { countsOf } from '../kubevirt/counting-guest.ts';
import { migrate, migrationPhase, watchStates } from '../kubevirt/migrations.ts';
import { portsOf } from '../kubevirt/switch-network.ts';
import { createMachine, type Machine, machineOn } from '../kubevirt/virtual-machine.ts';
import { installWithKubeVirt, REAL_KUBEVIRT } from './kubevirt.ts';
import type { Scenario, Scene } from './scenario.ts';
import { assertOff } from './switch-masks.ts';

const VM = 'moves';

/** A VM that moves between two machines with the real KubeVirt. */
export const MIGRATION: Scenario = {
  name: 'migration',
  about: 'two machines with the real KubeVirt: a VM on whole cores near its network migrates live',
  machines: 2,
  ...REAL_KUBEVIRT,
  async play(scene) {
    await linked(scene);
    await installWithKubeVirt(scene);
    const machine = await createMachine(scene, VM, {
      ...ALIGNED,
      cpu: { ...ALIGNED.cpu, model: 'Nehalem' },
      counts: true,
    });
    const source = await startedOn(scene, machine);
    const target = otherThan(source);
    await runsAligned(source, machineOn(source, VM));
    await moves(source, target);
  },
};

async function linked({ machines, holds }: Scene): Promise<void> {
  await holds('the machines reach each other', async () => {
    for (const { lab } of machines)
      await lab.run('busybox ping -c 1 -W 5 10.245.0.1 && busybox ping -c 1 -W 5 10.245.0.2');
  });
}

const otherThan = (scene: Scene): Scene => scene.machines.find((one) => one.node.name !== scene.node.name)!;

/** The scene of the machine that it runs on. */
async function startedOn({ holds, machines }: Scene, machine: Machine): Promise<Scene> {
  let source: Scene | undefined;
  await holds('KubeVirt runs the VM on a node, and can migrate it', async () => {
    const { status } = await machine.vmi();
    source = machines.find(({ node }) => node.name === status?.nodeName);
    assert.equal(status?.phase, 'Running', await machine.state());
    const migratable = status.conditions?.find(({ type }) => type === 'LiveMigratable');
    assert.equal(migratable?.status, 'True', migratable?.message);
    return status.nodeName;
  });
  return source!;
}

async function moves(source: Scene, target: Scene): Promise<void> {
  const { holds } = source;
  const [leaving, arriving] = [machineOn(source, VM), machineOn(target, VM)];
  const states = watchStates(source, VM);
  let last = 0;
  await holds('its guest counts', async () => {
    last = Math.max(...countsOf(await leaving.console()));
    assert.ok(last > 0);
    return String(last);
  });
  await migrate(source, VM, 'first');
  await holds('KubeVirt migrates it', async () => {
    assert.equal(await migrationPhase(source, 'first'), 'Succeeded', states.lines().join('; '));
    const { status } = await arriving.vmi();
    assert.equal(status?.nodeName, target.node.name);
    return `${source.node.name} to ${target.node.name}`;
  });
  await holds('its guest goes on counting there', async () => {
    const counts = countsOf(await arriving.console());
    assert.ok(Math.min(...counts) >= last, counts.join());
    return `from ${counts[0]}`;
  });
  await runsAligned(target, arriving);
  await holds('the source is left: no port, and Open vSwitch uses its CPUs', async () => {
    assert.deepEqual(await portsOf(source, 'physnet1'), []);
    await assertOff(source, '');
  });
  const seen = await states.stop();
  for (const line of seen) console.log(`       ${line}`);
}
