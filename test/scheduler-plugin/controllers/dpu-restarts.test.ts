import assert from 'node:assert/strict';
import { DpuRestarts } from '../../../scheduler-plugin/controllers/dpu-restarts.ts';
import { recordingLogger } from '../../support/logger.ts';
import { turns, useVirtualClock } from '../../support/virtual-clock.ts';
import { vmiOwner } from '../../support/vmi-owner.ts';

const RESTART = { kind: 'reboot', at: '2026-11-29T10:00:00Z' } as const;
const BEFORE = '2026-11-29T09:00:00Z';
const AFTER = '2026-11-29T11:00:00Z';

const podOn = (name: string, network: string, spec: object = {}, metadata: object = {}) => ({
  metadata: { name, namespace: 'ns', uid: `uid-${name}`, ...metadata },
  spec: { containers: [{ name: 'c' }], ...spec },
  status: {
    phase: 'Running',
    conditions: [{ type: 'PodReadyToStartContainers', status: 'True', lastTransitionTime: network }],
  },
});
const launcher = podOn(
  'virt-launcher-vm',
  BEFORE,
  { containers: [{ name: 'compute' }] },
  { labels: { 'kubevirt.io': 'virt-launcher' }, ownerReferences: [vmiOwner('vm', 'vmi')] },
);

describe('the restart of a node’s DPU', () => {
  let [pods, events, migrated]: [object[], string[], string[]] = [[], [], []];
  let [isDown, isActive, changed] = [false, true, 0];
  let logged: ReturnType<typeof recordingLogger>;
  let restarts: DpuRestarts;
  const { pass } = useVirtualClock();

  beforeEach(() => {
    [pods, events, migrated] = [[], [], []];
    [isDown, isActive, changed] = [false, true, 0];
    logged = recordingLogger();
    const get = async (_path: string, { query }: { query: object }) => {
      if (isDown) throw new Error('the API server is down');
      assert.deepEqual(query, { fieldSelector: 'spec.nodeName=n1', limit: 500, continue: undefined });
      return { metadata: { resourceVersion: '1' }, items: pods };
    };
    restarts = new DpuRestarts({
      client: { get } as never,
      events: { record: ({ kind, name }, { reason }) => void events.push(`${kind} ${name} ${reason}`) },
      scope: 'all',
      active: () => isActive,
      migrate: async (_node, _restart, launchers) =>
        void migrated.push(...launchers.map(({ metadata }) => metadata.name!)),
      log: logged.log,
    });
    restarts.on('changed', () => changed++);
  });
  afterEach(() => restarts.stop());
  const restart = async () => {
    restarts.leaseChanged('n1', RESTART);
    await turns();
  };

  it('is an Event for each pod with an older network, and a condition until the last one has a new network', async () => {
    pods = [podOn('old', BEFORE), podOn('new', AFTER), podOn('host', BEFORE, { hostNetwork: true })];
    assert.equal(restarts.conditionOf('n1'), null);
    restarts.leaseChanged('n1', RESTART);
    assert.equal(restarts.conditionOf('n1'), undefined, 'the pods are not known yet');
    await turns();
    assert.deepEqual(events, ['Pod old NetworkLost']);
    const { at, reason } = restarts.conditionOf('n1') ?? {};
    assert.deepEqual([at, reason], [RESTART.at, 'DPURebooted']);
    await restart();
    await pass(10);
    assert.equal(events.length, 1, 'each pod once');
    pods = [podOn('old', AFTER)];
    await pass(10);
    assert.equal(restarts.conditionOf('n1'), null);
    pods = [podOn('late', BEFORE)];
    await pass(100);
    assert.equal(events.length, 1, 'no pod is added later');
  });

  it('names the VMI of a launcher, which is handed over for migration at each check', async () => {
    pods = [launcher, podOn('pod', BEFORE)];
    await restart();
    await pass(10);
    assert.deepEqual(events, ['VirtualMachineInstance vm NetworkLost', 'Pod pod NetworkLost']);
    assert.deepEqual(migrated, ['virt-launcher-vm', 'virt-launcher-vm']);
  });

  it('is checked again after a failure, which is logged, and by a replica that becomes active', async () => {
    pods = [podOn('old', BEFORE)];
    isDown = true;
    await restart();
    isDown = false;
    isActive = false;
    await pass(10);
    assert.deepEqual(events, []);
    isActive = true;
    restarts.checkAll();
    await turns();
    assert.deepEqual(events, ['Pod old NetworkLost']);
    assert.equal(logged.lines[0]?.msg, 'checking networks failed; retrying');
  });

  it('ends with its record', async () => {
    pods = [podOn('old', BEFORE)];
    await restart();
    const before = changed;
    restarts.leaseChanged('n1', undefined);
    assert.deepEqual([restarts.conditionOf('n1'), changed], [null, before + 1]);
    await pass(100);
    assert.equal(changed, before + 1);
  });
});
