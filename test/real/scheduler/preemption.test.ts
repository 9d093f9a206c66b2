import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { needs } from '../../support/parts.ts';
import { until } from '../../support/until.ts';
import { type AnsweringExtender, startAnsweringExtender } from './answering-extender.ts';
import { type Stage, startStage } from './stage.ts';

/**
 * The effect of an extender's refusals on a real kube-scheduler when the pod could preempt: the basis of ADR 0022.
 */
describe('preemption by a real kube-scheduler', function () {
  needs('controlPlane');
  needs('kubectl');
  this.timeout(300_000);
  let stage: Stage;
  let extender: AnsweringExtender;
  let answers: Record<string, (names: readonly string[], args: Readonly<Record<string, unknown>>) => object>;

  const passing = (names: readonly string[]) => ({ NodeNames: names, FailedNodes: {}, Error: '' });
  const refusing = (where: 'FailedNodes' | 'FailedAndUnresolvableNodes') => (names: readonly string[]) => ({
    NodeNames: [],
    [where]: Object.fromEntries(names.map((name) => [name, 'too few free whole cores'])),
    Error: '',
  });
  const kinds = () => extender.calls.map(({ verb }) => verb);

  before(async function () {
    this.timeout(300_000);
    stage = await startStage();
    extender = await startAnsweringExtender((verb, args) => answers[verb]?.(args.NodeNames ?? [], args) ?? {});
    const managedResources = [{ name: 'devices.kubevirt.io/kvm' }];
    const settings = { urlPrefix: extender.url, filterVerb: 'filter', nodeCacheCapable: true, managedResources };
    await stage.startScheduler({ name: 'without-preempt', extenders: [settings] });
    await stage.startScheduler({ name: 'with-preempt', extenders: [{ ...settings, preemptVerb: 'preempt' }] });
    const priority = (name: string, value: number) => ({
      apiVersion: 'scheduling.k8s.io/v1',
      kind: 'PriorityClass',
      metadata: { name },
      value,
    });
    await stage.plane.create(priority('low', 10), priority('high', 1000));
    await stage.addNodes([{ name: 'one' }]);
    answers = { filter: passing };
  });
  after(async () => {
    await stage?.stop();
    await extender?.stop();
  });

  const add = async (name: string, cpu: string, schedulerName: string, priorityClassName: string) => {
    extender.calls.length = 0;
    await stage.addPod({ name, cpu, more: { schedulerName, priorityClassName } });
  };
  const isRefused = (name: string) =>
    until(`${name} to be refused`, async () => {
      const { status } = await stage.podOf(name);
      return status.conditions?.some(({ type, status: is }) => type === 'PodScheduled' && is === 'False') ?? false;
    });
  const remove = (name: string) => stage.client.delete(`/api/v1/namespaces/default/pods/${name}`);
  const isBound = (name: string) =>
    until(`${name} to be bound`, async () => (await stage.podOf(name)).spec.nodeName === 'one');

  const messageOf = async (name: string) =>
    (await stage.podOf(name)).status.conditions?.find(({ type }) => type === 'PodScheduled')?.message ?? '';

  it('a refusal in FailedNodes makes it look for victims, find none that its own filters need, and fail', async () => {
    await add('victim', '40', 'with-preempt', 'low');
    await isBound('victim');
    answers = { filter: refusing('FailedNodes') };
    await add('wanting', '8', 'with-preempt', 'high');
    await isRefused('wanting');
    assert.match(await messageOf('wanting'), /preemption: expected at least one victim pod on node "one"/);
    await delay(2000);
    assert.ok(!kinds().includes('preempt'), 'nor is the extender asked whom to kill');
    assert.equal((await stage.podOf('wanting')).status.nominatedNodeName, undefined);
    assert.equal((await stage.podOf('victim')).metadata.deletionTimestamp, undefined);
    await remove('wanting');
  });

  it('a refusal in FailedAndUnresolvableNodes prevents the search', async () => {
    answers = { filter: refusing('FailedAndUnresolvableNodes') };
    await add('wanting', '8', 'with-preempt', 'high');
    await isRefused('wanting');
    assert.match(await messageOf('wanting'), /1 Preemption is not helpful for scheduling/);
    await delay(2000);
    assert.ok(!kinds().includes('preempt'));
    assert.equal((await stage.podOf('victim')).metadata.deletionTimestamp, undefined);
    await remove('wanting');
  });

  it('a preempt verb can prevent evictions if the scheduler itself is short of CPUs', async () => {
    answers = { filter: passing, preempt: () => ({ NodeNameToMetaVictims: {} }) };
    await add('wanting', '40', 'with-preempt', 'high');
    await isRefused('wanting');
    await until('the preempt verb to be called', async () => kinds().includes('preempt'));
    const { args } = extender.calls.find(({ verb }) => verb === 'preempt')!;
    const victim = await stage.podOf('victim');
    assert.deepEqual(args['NodeNameToMetaVictims'], {
      one: { Pods: [{ UID: victim.metadata.uid }], NumPDBViolations: 0 },
    });
    await delay(1000);
    assert.equal((await stage.podOf('victim')).metadata.deletionTimestamp, undefined);
    await remove('wanting');
  });

  it('without a preempt verb the victim is evicted, whatever the extender decides', async () => {
    answers = { filter: refusing('FailedAndUnresolvableNodes') };
    await add('wanting', '40', 'without-preempt', 'high');
    await until('the victim to be gone', () =>
      stage.podOf('victim').then(
        () => false,
        () => true,
      ),
    );
    await isRefused('wanting');
    assert.equal((await stage.podOf('wanting')).spec.nodeName, undefined);
    await remove('wanting');
  });
});
