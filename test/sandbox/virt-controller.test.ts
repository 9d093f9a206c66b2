import assert from 'node:assert/strict';
import {
  EVENTS,
  MUTATING_WEBHOOKS,
  NETWORK_ATTACHMENT_DEFINITIONS,
  PODS,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
} from '../../sandbox/api-server/built-in-types.ts';
import type { LocalClient } from '../../sandbox/clients/local-client.ts';
import { at, type JsonRecord, type KubeObject, type KubePod } from '../../sandbox/objects.ts';
import { VirtController } from '../../sandbox/virt-controller/virt-controller.ts';
import { until } from '../support/until.ts';
import { definitionOf, useApiServer } from './support.ts';

type StartFailure = { consecutiveFailCount: number; lastFailedVMIUID: string; retryAfterTimestamp: string };

describe('virt-controller: VMs, instances and pods', () => {
  const suite = useApiServer();
  let client: LocalClient;
  let controller: VirtController;
  beforeEach(() => {
    ({ client } = suite);
    controller = new VirtController({ client });
    controller.start();
  });
  afterEach(async () => {
    for (const machine of client.list(VIRTUAL_MACHINES)) await client.delete(VIRTUAL_MACHINES, machine);
    await until('everything is collected', () => {
      // No kubelet runs them.
      for (const pod of client.list(PODS)) void client.delete(PODS, pod, { gracePeriodSeconds: 0 });
      return client.list(VIRTUAL_MACHINES).length === 0;
    });
    assert.equal(client.list(VIRTUAL_MACHINE_INSTANCES).length, 0);
    await controller.stop();
  });
  const machine = (spec: JsonRecord): KubeObject => ({
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name: 'vm', namespace: 'default', annotations: { 'on.the/machine': '1' } },
    spec: {
      template: {
        metadata: { annotations: { 'on.the/template': '1' } },
        spec: { domain: { cpu: { cores: 2, dedicatedCpuPlacement: true } } },
      },
      ...spec,
    },
  });
  /** Its launcher. */
  const start = async (spec: JsonRecord = { running: true }) => {
    await client.create(VIRTUAL_MACHINES, machine(spec));
    return until('there is a pod', () => client.list(PODS)[0]);
  };
  const instance = () => client.get(VIRTUAL_MACHINE_INSTANCES, 'default', 'vm');
  const phase = () => instance()?.status?.phase;
  const machineStatus = () => client.get(VIRTUAL_MACHINES, 'default', 'vm')?.status;
  const startFailure = () => at(machineStatus(), 'startFailure') as StartFailure | undefined;
  const condition = (type: string) => instance()?.status?.conditions?.find((one) => one.type === type);
  const setPhase = (status: { readonly phase: string; readonly reason?: string }) => {
    const change = (pod: KubePod) => Object.assign(pod, { status: { ...pod.status, ...status } });
    return client.edit(PODS, client.list(PODS)[0]!, change, 'status');
  };

  it('a running VM gets an instance with the annotations of its template, and a pod', async () => {
    await start({ runStrategy: 'Always' });
    assert.deepEqual(instance()?.metadata.annotations, { 'on.the/template': '1' });
    await until('it is being scheduled', () => phase() === 'Scheduling');
  });
  it('a stopped VM gets no instance', async () => {
    await client.create(VIRTUAL_MACHINES, machine({ runStrategy: 'Halted' }));
    await until('its status says so', () => at(machineStatus(), 'printableStatus') === 'Stopped');
    assert.equal(client.list(VIRTUAL_MACHINE_INSTANCES).length, 0);
  });
  it('the phase follows the pod, and the gate opens', async () => {
    await client.bind(await start(), 'n1');
    await until('the gate is open', () =>
      client.list(PODS)[0]?.status?.conditions?.some(({ type }) => type === 'kubevirt.io/virtual-machine-unpaused'),
    );
    assert.deepEqual([phase(), instance()?.status?.nodeName], ['Scheduling', undefined], 'its launcher is not ready');
    await setPhase({ phase: 'Running' });
    await until('it runs', () => phase() === 'Running');
    assert.equal(instance()?.status?.nodeName, 'n1');
  });
  it('an instance with a paused start stays paused until it is unpaused once', async () => {
    const template = { spec: { domain: {}, startStrategy: 'Paused' } };
    const pod = await start({ running: true, template });
    const path = '/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachineinstances/vm/unpause';
    const unpause = () => suite.call('PUT', path, {}, { accept: '*/*' });
    assert.match((await unpause()).body.message ?? '', /VMI is not running/);
    await client.bind(pod, 'n1');
    await setPhase({ phase: 'Running' });
    await until('it runs', () => phase() === 'Running');
    const { activePods } = instance()?.status ?? {};
    assert.deepEqual([condition('Paused')?.reason, activePods], ['PausedByUser', { [pod.metadata.uid!]: 'n1' }]);
    assert.equal((await unpause()).status, 202);
    assert.equal(condition('Paused'), undefined);
    const again = await unpause();
    assert.deepEqual([again.status, again.body.reason], [409, 'Conflict']);
    assert.match(again.body.message ?? '', /VMI is not paused/);
  });
  it('an instance is deleted with a launcher that failed before it ran, and the VM waits before it is started again', async () => {
    await start();
    const { uid } = instance()!.metadata;
    const before = Date.now();
    await setPhase({ phase: 'Failed', reason: 'SMTAlignmentError' });
    await until('its launcher is gone', () => {
      // No kubelet ends it.
      for (const pod of client.list(PODS)) void client.delete(PODS, pod, { gracePeriodSeconds: 0 });
      return instance() === undefined;
    });
    await until('the failure is counted', () => startFailure() !== undefined);
    const { consecutiveFailCount, lastFailedVMIUID, retryAfterTimestamp } = startFailure()!;
    assert.deepEqual([consecutiveFailCount, lastFailedVMIUID], [1, uid]);
    const [least, most] = [Date.now(), before].map((now) => (Date.parse(retryAfterTimestamp) - now) / 1000);
    assert.ok(most! > 5 && least! <= 15, `${least} to ${most} s`);
    assert.equal(client.list(VIRTUAL_MACHINE_INSTANCES).length, 0, 'none before then');
  });

  it('a pod that admission refuses causes an Event on the instance, and is retried', async () => {
    const refusing = await client.create(MUTATING_WEBHOOKS, {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'MutatingWebhookConfiguration',
      metadata: { name: 'down' },
      webhooks: [
        {
          name: 'down.example.dev',
          clientConfig: { service: { namespace: 'nowhere', name: 'nothing' } },
          rules: [{ operations: ['CREATE'], apiGroups: [''], apiVersions: ['v1'], resources: ['pods'] }],
          sideEffects: 'None',
          admissionReviewVersions: ['v1'],
        },
      ],
    });
    await client.create(VIRTUAL_MACHINES, machine({ running: true }));
    await until('the Event', () => client.list(EVENTS).some(({ reason }) => reason === 'FailedCreate'));
    assert.equal(client.list(PODS).length, 0);
    await client.delete(MUTATING_WEBHOOKS, refusing);
    await until('there is a pod', () => client.list(PODS).length === 1);
  });

  it('an instance on an undefined network gets no pod, says why, and gets one when the network is defined', async () => {
    const networks = [{ name: 'a', multus: { networkName: 'blue' } }];
    await client.create(VIRTUAL_MACHINES, machine({ running: true, template: { spec: { domain: {}, networks } } }));
    const failed = await until('the reason', () => condition('Synchronized'));
    const why = 'failed to render launch manifest: failed to locate network attachment definition default/blue';
    assert.deepEqual([failed.status, failed.reason, failed.message], ['False', 'FailedCreate', why]);
    assert.equal(client.list(PODS).length, 0);
    await client.create(NETWORK_ATTACHMENT_DEFINITIONS, definitionOf('blue'));
    await until('there is a pod', () => client.list(PODS).length === 1);
  });
  it('a deleted VM and its instance outlive the launcher, which gets no successor', async () => {
    const pod = await start();
    await client.bind(pod, 'n1');
    await client.delete(VIRTUAL_MACHINES, client.list(VIRTUAL_MACHINES)[0]!);
    await until('the launcher is being deleted', () => client.list(PODS)[0]?.metadata.deletionTimestamp !== undefined);
    const [vm] = client.list(VIRTUAL_MACHINES);
    assert.deepEqual(vm?.metadata.finalizers, ['kubevirt.io/virtualMachineControllerFinalize']);
    assert.deepEqual(instance()?.metadata.finalizers, ['kubevirt.io/foregroundDeleteVirtualMachine']);
    assert.ok(vm?.metadata.deletionTimestamp && instance()?.metadata.deletionTimestamp);
    const created: KubePod[] = [];
    const stop = client.follow(PODS, ({ type, object }) => {
      if (type === 'ADDED' && object.metadata.uid !== pod.metadata.uid) created.push(object);
    });
    await client.delete(PODS, pod, { gracePeriodSeconds: 0 });
    await until('the machine is gone', () => client.list(VIRTUAL_MACHINES).length === 0);
    stop();
    assert.deepEqual([client.list(VIRTUAL_MACHINE_INSTANCES), created], [[], []]);
  });
});
