import assert from 'node:assert/strict';
import { ALIGNED, runsAligned } from '../kubevirt/aligned.ts';
import { countsOf } from '../kubevirt/guest-kernel.ts';
import {
  assertStates,
  cancelMigration,
  explained,
  limitBandwidth,
  migrate,
  migrationPhase,
  stateLine,
  watchStates,
} from '../kubevirt/migrations.ts';
import { portsOf } from '../kubevirt/switch-network.ts';
import { createMachine, type Machine, machineOn } from '../kubevirt/virtual-machine.ts';
import { assertOff } from './guest-switch.ts';
import { installWithKubeVirt, REAL_KUBEVIRT } from './kubevirt.ts';
import type { Scenario, Scene } from './scenario.ts';

const VM = 'moves';

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
    await refused(target, source);
    await cancelled(target, source);
  },
};

async function linked({ machines, holds }: Scene): Promise<void> {
  await holds('the machines reach each other', async () => {
    for (const { lab } of machines)
      await lab.run('busybox ping -c 1 -W 5 10.245.0.1 && busybox ping -c 1 -W 5 10.245.0.2');
  });
}

const otherThan = (scene: Scene): Scene => scene.machines.find((one) => one.node.name !== scene.node.name)!;

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

async function counts(scene: Scene): Promise<number> {
  let last = 0;
  await scene.holds('its guest counts', async () => {
    last = countsOf(await machineOn(scene, VM).serial()).at(-1) ?? 0;
    assert.ok(last > 0);
    return String(last);
  });
  return last;
}

async function moves(source: Scene, target: Scene): Promise<void> {
  const { holds } = source;
  const [from, to] = [source.node.name, target.node.name];
  const arriving = machineOn(target, VM);
  const states = watchStates(source, VM);
  const last = await counts(source);
  await holds('it runs before that', async () => assert.deepEqual(states.lines(), [`running on ${from} (Aligned)`]));
  await migrate(source, VM, 'first');
  await holds('KubeVirt migrates it', async () => {
    assert.equal(await migrationPhase(source, 'first'), 'Succeeded', states.lines().join('; '));
    const { status } = await arriving.vmi();
    assert.equal(status?.nodeName, target.node.name);
    return `${source.node.name} to ${target.node.name}`;
  });
  await holds('its guest keeps counting there', async () => {
    const [first = 0] = countsOf(await arriving.serial());
    assert.ok(first > last, `from ${first}`);
    return `from ${last} to ${first}`;
  });
  await runsAligned(target, arriving);
  await holds('the source is left: no port, and Open vSwitch uses its CPUs', async () => {
    assert.deepEqual(await portsOf(source, 'physnet1'), []);
    await assertOff(source, '');
  });
  await statesWere(source, states, [...onTheWay(from, to), `running on ${to} (Aligned)`]);
}

/** Seconds until `explain` has the state after the last step. What was wrong before stays wrong. */
const LAST_STATE_WITHIN = 60;

async function statesWere(
  { holds }: Scene,
  states: ReturnType<typeof watchStates>,
  inOrder: readonly string[],
): Promise<void> {
  const check = async () => {
    assertStates(states.lines(), inOrder);
    return states.lines().join('; ');
  };
  await holds('each state on the way was right', check, LAST_STATE_WITHIN);
  await states.stop();
}

const onTheWay = (from: string, to: string): readonly string[] => [
  `running on ${from} (Aligned)`,
  `migrating, pending, ${from} to no node (Migrating)`,
  `migrating, scheduling, ${from} to no node (MigrationWaits, target: NotTried)`,
  `migrating, preparing, ${from} to ${to} (Migrating)`,
  `migrating, copying, ${from} to ${to} (Migrating)`,
];

async function refused(source: Scene, target: Scene): Promise<void> {
  const { holds } = source;
  const holder = await target.pods.create('holder', { cpu: '4' });
  await holds('another pod gets the cores near the network', async () => {
    assert.equal(await target.pods.state(holder), 'Running');
    return `${await target.pods.cpus(holder)} of ${target.node.name}`;
  });
  await migrate(source, VM, 'refused');
  await holds('the migration waits for its target, with the reason', async () => {
    const state = await explained(source, VM);
    const waits = `migrating, scheduling, ${source.node.name} to no node (MigrationWaits, target: NoNodeFits)`;
    assert.equal(stateLine(state), waits);
    return state.text;
  });
  await cancelMigration(source, 'refused');
  await staysOn(source, target);
  await target.pods.remove(holder);
  await holds('the cores are free in the report of the other machine', async () => {
    assert.deepEqual((await target.report()).assignments, []);
  });
}

/** At this bandwidth it would never end, because the guest rewrites more memory. */
async function cancelled(source: Scene, target: Scene): Promise<void> {
  const { holds } = source;
  const [from, to] = [source.node.name, target.node.name];
  await limitBandwidth(source, '1Mi');
  const states = watchStates(source, VM);
  await holds('it runs before that', async () => assert.deepEqual(states.lines(), [`running on ${from} (Aligned)`]));
  await migrate(source, VM, 'cancelled');
  await holds('the guest’s memory is being copied', async () => {
    const { migration, text, causes } = await explained(source, VM);
    assert.equal(migration?.phase, 'copying', [text, ...causes.map((cause) => cause.text)].join('; '));
    const copied = /Memory processed: +([1-9].*)/.exec(await machineOn(source, VM).job())?.[1];
    assert.ok(copied, 'QEMU has copied nothing yet');
    return copied;
  });
  await cancelMigration(source, 'cancelled');
  await staysOn(source, target);
  await limitBandwidth(source, null);
  const back = [`migrating, cancelling, ${from} to ${to} (Migrating)`, `running on ${from} (Aligned)`];
  await statesWere(source, states, [...onTheWay(from, to), ...back]);
  await runsAligned(source, machineOn(source, VM));
}

async function staysOn(source: Scene, target: Scene): Promise<void> {
  const { holds } = source;
  const before = await counts(source);
  await holds('when it is cancelled, the VM runs where it was, and its guest keeps counting', async () => {
    assert.equal(stateLine(await explained(source, VM)), `running on ${source.node.name} (Aligned)`);
    const count = countsOf(await machineOn(source, VM).serial()).at(-1) ?? 0;
    assert.ok(count > before, `${count}`);
    return `from ${before} to ${count}`;
  });
  await holds('its target is gone', async () => {
    assert.deepEqual(await portsOf(target, 'physnet1'), []);
    const launcher = await machineOn(target, VM)
      .launcher()
      .catch(() => undefined);
    assert.match(launcher?.status.phase ?? 'Succeeded', /^(Succeeded|Failed)$/);
  });
}
