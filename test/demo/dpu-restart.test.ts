import assert from 'node:assert/strict';
import type { DemoNode } from '../../cli/demo/nodes.ts';
import { demoMachine } from '../../cli/demo/vms.ts';
import { watchDpus } from '../../cli/doctor/checks/dpu.ts';
import { readStatus } from '../../cli/status/read.ts';
import { statusLines } from '../../cli/status/run.ts';
import { lineText } from '../../cli/support/terminal.ts';
import { diagnoseDpu } from '../../model/lease/diagnose.ts';
import { parseDpuRun, restartOf } from '../../model/lease/dpu-run.ts';
import { DPU_HOST_LABEL, DPU_LEASE_NAMESPACE, DPU_RESTARTED_CONDITION, DPU_RUN_ANNOTATION } from '../../model/names.ts';
import { EVENTS, LEASES, MIGRATIONS, NODES } from '../../sandbox/api-server/built-in-types.ts';
import { at, type JsonRecord, type KubeMigration } from '../../sandbox/objects.ts';
import { buildOnce } from '../support/bundles.ts';
import { until } from '../support/until.ts';
import { hostOf } from './drains/cluster-fixture.ts';
import { type DrainStage, NAMESPACE, startDrainStage } from './drains/stage.ts';

const DPU = 'with-dpu';
const PLAIN = 'plain';
const plain = (name: string): DemoNode => ({ name, host: hostOf(1, 32, 2), physnets: {}, about: '' });
const DESCRIPTIONS: readonly DemoNode[] = [
  { ...plain(DPU), labels: { [DPU_HOST_LABEL]: '' }, dpu: true },
  plain(PLAIN),
];

describe('a DPU whose Open vSwitch restarts under VMs', function () {
  this.timeout(600_000);
  let stage: DrainStage;
  before(async () => {
    buildOnce();
    stage = await startDrainStage(DESCRIPTIONS);
  });
  after(() => stage?.stop());

  const record = () => {
    const lease = stage.client.get(LEASES, DPU_LEASE_NAMESPACE, `ovn-dpu-${DPU}`);
    return parseDpuRun(lease?.metadata.annotations?.[DPU_RUN_ANNOTATION]);
  };
  const condition = () => {
    const { conditions = [] } = stage.client.get(NODES, undefined, DPU)?.status ?? {};
    return (conditions as readonly JsonRecord[]).find(({ type }) => type === DPU_RESTARTED_CONDITION);
  };
  const lostVms = () => {
    const events = stage.client.list(EVENTS).filter(({ reason }) => reason === 'NetworkLost');
    return events.map(({ involvedObject }) => `${at(involvedObject, 'kind')} ${at(involvedObject, 'name')}`);
  };
  const status = () => readStatus({ client: stage.api }, undefined, Date.now());
  const lost = async () => {
    const vms = (await status()).notAsRequested.filter(({ reason }) => reason === 'NetworkLost');
    return vms.map(({ name, state }) => `${name}: ${state}`).sort();
  };
  const doctor = async () => {
    const seen = await watchDpus(stage.api, DPU_LEASE_NAMESPACE, 0, () => undefined);
    return seen.flatMap((one) => diagnoseDpu(`ovn-dpu-${one.node}`, one).problems).join();
  };
  const startOn = async (node: string, names: readonly string[]) => {
    const other = node === DPU ? PLAIN : DPU;
    await stage.cordon(other, true);
    for (const name of names) assert.ok(await stage.start(demoMachine({ name, annotated: true })), name);
    await stage.cordon(other, false);
  };

  it('the first run that is recorded is no restart', async () => {
    await until('the record', () => record() !== undefined);
    assert.equal(restartOf(record()), undefined);
    await startOn(DPU, ['a', 'b']);
    assert.deepEqual([condition(), await lost(), lostVms()], [undefined, [], []]);
  });

  it('every VM on its node has lost its network, in a condition, Events, status and doctor', async () => {
    const earlier = record();
    stage.restartSwitch();
    await until('the restart', () => restartOf(record()) !== undefined);
    const began = performance.now();
    const { restart, ...run } = record()!;
    assert.deepEqual([restart?.previous.pid, run.bootId], [earlier?.pid, earlier?.bootId]);
    await until('the state', async () => (await lost()).length === 2);
    console.log(`      ${(performance.now() - began).toFixed(0)} ms from the renewal to the state of both VMs`);
    assert.deepEqual(await lost(), ['a: not-as-requested', 'b: not-as-requested']);
    assert.equal(condition()?.['lastTransitionTime'], restart?.at);
    await until('the Events', () => lostVms().length === 2);
    assert.deepEqual(lostVms().sort(), ['VirtualMachineInstance a', 'VirtualMachineInstance b']);
    const [first = []] = statusLines(await status(), undefined, { width: 400, color: false });
    assert.match(lineText(first), /networks on with-dpu \(lost since the restart of its DPU’s Open vSwitch at /);
    assert.match(await doctor(), /2 pods have lost the network since .*demo\/virt-launcher-a-/);
  });

  it('a VM that starts afterwards has its network', async () => {
    // A network made in the restart's second, which is rounded up, counts as lost.
    const restartedAt = Date.parse(restartOf(record())?.at ?? '');
    await until('the second of the restart is over', () => Date.now() >= restartedAt);
    await startOn(DPU, ['new']);
    assert.deepEqual((await lost()).length, 2);
    assert.doesNotMatch(await doctor(), /virt-launcher-new/);
  });

  it('an extender that starts again finds the same, and migrates one VM at a time with --dpu-recovery migrate', async () => {
    let most = 0;
    const isActive = ({ status }: KubeMigration) => !['Succeeded', 'Failed'].includes(status?.phase ?? '');
    const end = stage.client.follow(MIGRATIONS, () => {
      most = Math.max(most, stage.client.list(MIGRATIONS).filter(isActive).length);
    });
    await stage.restartExtender('--dpu-recovery', 'migrate');
    await until('both VMs have left', () => ['a', 'b'].every((vm) => stage.vmi(vm)?.status?.nodeName === PLAIN));
    end();
    const moved = stage.client.list(MIGRATIONS).map(({ spec }) => spec.vmiName);
    assert.deepEqual([moved.sort(), most], [['a', 'b'], 1]);
    assert.equal(stage.vmi('new')?.status?.nodeName, DPU);
    assert.equal(NAMESPACE, stage.vmi('new')?.metadata.namespace);
  });

  it('it ends when no VM is left that lost its network, also after another start of the extender', async () => {
    await until('the condition is gone', () => condition() === undefined);
    assert.deepEqual([await lost(), await doctor()], [[], '']);
    assert.notEqual(restartOf(record()), undefined, 'the Lease still has it');
  });
});
