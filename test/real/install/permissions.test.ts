import assert from 'node:assert/strict';
import type { DaemonProcess } from '../../../cli/demo/daemons.ts';
import { DPU_READY_CONDITION } from '../../../model/names.ts';
import { needs } from '../../support/parts.ts';
import { until } from '../../support/until.ts';
import { onControlPlane, podOf } from '../control-plane-stage.ts';
import { nodeCondition, report, type SeenPod, topologyOf } from '../scheduler/stage.ts';
import { installInterceptor } from '../virt-api-stage.ts';
import {
  type CreatedPod,
  type CreatedVmi,
  launcherFor,
  localnet,
  sceneOf,
  WHOLE_CORES,
} from '../webhook/objects-fixture.ts';
import { covers, type Grant, grantsOf, grantText } from './audit-log-stage.ts';
import { DPU_WORKER, DPUS, SYSTEM, WORKER } from './daemons-stage.ts';
import { type Installation, install, type SchedulerPair } from './installation-stage.ts';

const ACCOUNTS = [
  { namespace: SYSTEM, name: 'plumbline-webhook' },
  { namespace: SYSTEM, name: 'plumbline-scheduler' },
  { namespace: SYSTEM, name: 'plumbline-node-agent' },
  { namespace: SYSTEM, name: 'plumbline-console' },
  { namespace: DPUS, name: DPU_WORKER },
];
/** Namespaces that the manifests know; a role there could be a role of that namespace. */
const KNOWN = [SYSTEM, DPUS, 'ovn-kubernetes'];
/**
 * Granted in every namespace though used in known ones only: the extender reads the Leases of agents and of DPUs, and
 * where DPUs' are is a setting; a role in a namespace that may not be there could not be installed.
 */
const WIDER = ['leases'];
/** Resources that no request is for: a policy asks whether their verb is given, and what it lets pass is tested here. */
const ASKED_BY_POLICIES = ['pausedstarts'];
/** That no request has: RBAC asks for it where a role is given away. */
const ASKED_BY_RBAC = 'bind';
const LAUNCHER = { labels: { 'kubevirt.io': 'virt-launcher' }, annotations: { 'kubevirt.io/domain': 'vm' } };
const TENANT = '/api/v1/namespaces/tenant';

describe('an installation on a real API server, with the shipped permissions', function () {
  onControlPlane(this);
  needs('musl');
  needs('make');
  let installed: Installation;
  let dpu: DaemonProcess;
  let pair: SchedulerPair;
  let interceptor: Awaited<ReturnType<typeof installInterceptor>>;
  let page: DaemonProcess;

  before(async () => {
    installed = await install();
    const webhook = await installed.startWebhook();
    pair = await installed.startPair('pair-1');
    const agents = [await installed.startAgent(WORKER), await installed.startAgent(DPU_WORKER)];
    dpu = await installed.startDpu();
    const console = await installed.startConsole();
    page = console;
    await Promise.all([webhook, pair.extender, console, ...agents].map((daemon) => daemon.ready()));
    interceptor = await installInterceptor(installed.plane);
  });
  after(async () => {
    await interceptor?.stop();
    await installed?.stop();
  });

  const read = async <T>(path: string): Promise<T> => (await installed.client.get(path)) as T;
  const pod = (name: string) => read<SeenPod>(`${TENANT}/pods/${name}`);
  const eventsOf = async (uid: string) => {
    interface Seen {
      readonly items: readonly { readonly reason: string; readonly involvedObject: { readonly uid?: string } }[];
    }
    const { items } = await read<Seen>(`${TENANT}/events`);
    return items.filter(({ involvedObject }) => involvedObject.uid === uid).map(({ reason }) => reason);
  };
  const condition = async () => (await nodeCondition(installed.client, DPU_WORKER, DPU_READY_CONDITION))?.status;
  const simplePod = (name: string, spec: object, marks: object = {}) => {
    const resources = { limits: { 'devices.kubevirt.io/kvm': '1' } };
    const containers = [{ name: 'main', image: 'none', resources }];
    const object = podOf({ name, ...marks }, { schedulerName: 'plumbline-scheduler', containers, ...spec });
    return installed.client.create(`${TENANT}/pods`, object) as Promise<SeenPod>;
  };
  const onDpuNode = { nodeSelector: { 'kubernetes.io/hostname': DPU_WORKER } };
  let launcher: CreatedPod;

  it('the webhook pads a launcher and requests the device of its network', async () => {
    await installed.plane.create(localnet('tenant', 'data', 'physnet0'));
    const scene = sceneOf(installed.client);
    const created = await scene.vmi('vm', { ...WHOLE_CORES.vmi, networks: { data: 'data' } });
    launcher = await scene.admit(launcherFor(created, WHOLE_CORES));
    const limits = launcher.spec.containers[0]?.resources.limits;
    assert.deepEqual(limits, { cpu: '6', memory: '1Gi', ...WHOLE_CORES.more, 'physnet.plumbline.dev/physnet0': '1' });
    await until('the VMI’s Event', async () => (await eventsOf(created.metadata.uid)).includes('PaddedToWholeCores'));
    // The API server is asked about a VMI and a network that are in no cache.
    const gone = { ...created, metadata: { ...created.metadata, name: 'gone', uid: 'gone' } } as CreatedVmi;
    await scene.admit(launcherFor(gone, WHOLE_CORES));
    await scene.launcher('elsewhere', { ...WHOLE_CORES, vmi: { networks: { data: 'not-there' } } });
  });

  it('the extender places the launcher and labels the nodes', async () => {
    await until('the launcher to be bound', async () => (await pod(launcher.metadata.name)).spec.nodeName === WORKER);
    for (const node of [WORKER, DPU_WORKER]) {
      await until(`labels of ${node}`, async () => {
        const { metadata } = await read<{ metadata: { labels: Record<string, string> } }>(`/api/v1/nodes/${node}`);
        return metadata.labels['plumbline.dev/threads-per-core'] === '2';
      });
    }
  });

  it('the extender explains the placement', async () => {
    const { port } = await pair.extender.ports();
    const answer = await fetch(`http://127.0.0.1:${port}/explain?pod=tenant/${launcher.metadata.name}`);
    assert.match(await answer.text(), new RegExp(WORKER));
  });

  it('the agent reads the kubelet’s configuration and checks the CPUs of the launcher', async () => {
    const { kubelet, answers } = installed.nodes.get(WORKER)!;
    await until('the kubelet’s answer', async () => answers.length > 0);
    assert.deepEqual([...new Set(answers)], [200]);
    const resource = 'physnet.plumbline.dev/physnet0';
    const registered = () => kubelet.registrations.findLast(({ resourceName }) => resourceName === resource);
    await until('the device to be registered', async () => registered() !== undefined);
    const { name, uid } = launcher.metadata;
    const ids = ['physnet0-0'];
    // The other NUMA node.
    kubelet.devices[`tenant/${name}`] = { [resource]: ids };
    const plugin = kubelet.plugin(registered()!.endpoint);
    // The first Event again, after another one, is counted at once.
    for (const [cpus, pool] of [
      ['4-6,12-14', '0-3,7-11,15'],
      ['5-7,13-15', '0-4,8-12'],
      ['4-6,12-14', '0-3,7-11,15'],
    ] as const) {
      kubelet.pods[`tenant/${name}`] = { compute: cpus };
      kubelet.writeCheckpoint(pool, { [uid]: { compute: cpus } });
      await assert.rejects(plugin.preStartContainer(ids), /physnet0/);
      await until('the pod’s Event', async () => (await eventsOf(uid)).length > 0);
    }
    plugin.close();
  });

  it('the agents report, and correct the content of the DPU’s Lease', async () => {
    const lease = '/apis/coordination.k8s.io/v1/namespaces/ovn-kubernetes/leases/ovn-dpu-worker-dpu';
    await until('DPUReady', async () => (await condition()) === 'True');
    const holder = { spec: { holderIdentity: 'another' } };
    await installed.client.patch(lease, 'application/merge-patch+json', holder);
    await until('the holder to be right again', async () => {
      const { spec } = await read<{ spec: { holderIdentity: string } }>(lease);
      return spec.holderIdentity === 'ovnkube-dpu-node';
    });
  });

  it('when a DPU dies, its node is refused and pods that have not started there are evicted', async () => {
    await dpu.stop('SIGKILL');
    await until('DPUReady to be False', async () => (await condition()) === 'False');
    const { metadata } = await simplePod('starting', { nodeName: DPU_WORKER });
    await until('the eviction', async () => (await eventsOf(metadata.uid)).includes('EvictedBeforeStart'));
    await simplePod('waiting', onDpuNode);
    await until('the refusal', async () => {
      const { conditions = [] } = (await pod('waiting')).status;
      return conditions.some(({ message }) => /DPU not ready/.test(message ?? ''));
    });
  });

  it('a launcher whose eviction KubeVirt denies is deleted', async () => {
    const { metadata } = await simplePod('virt-launcher-starting', { nodeName: DPU_WORKER }, LAUNCHER);
    await until('the deletion', async () => (await eventsOf(metadata.uid)).includes('EvictedBeforeStart'));
    assert.ok(interceptor.reviewed.includes('tenant/virt-launcher-starting'));
    const asked = installed.requests().filter(({ uri }) => uri.includes('/pods/virt-launcher-starting'));
    assert.equal(asked.map(({ verb, status }) => `${verb} ${status}`).join(), 'create 429,delete 200');
  });

  it('when the DPU is back, the scheduler retries the waiting pod and places it', async () => {
    dpu = await installed.startDpu();
    await until('the pod to be bound', async () => (await pod('waiting')).spec.nodeName === DPU_WORKER);
  });

  it('a VM with a CPU mask starts paused and resumes when its node’s agent reports it pinned', async () => {
    const { client, plane } = installed;
    const path = '/apis/kubevirt.io/v1/namespaces/tenant/virtualmachineinstances';
    const node = 'masked';
    const annotations = { 'plumbline.dev/cpu-mask': '1-2' };
    await client.create(path, {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachineInstance',
      metadata: { name: 'masked', annotations },
      spec: { domain: { cpu: { cores: 2 }, devices: {} }, networks: [{ name: 'default', pod: {} }] },
    });
    // What virt-controller, virt-handler and that node's agent would say.
    await plane.create({ apiVersion: 'v1', kind: 'Node', metadata: { name: node } });
    const paused = {
      type: 'Paused',
      status: 'True',
      reason: 'PausedByUser',
      lastTransitionTime: '2026-01-01T00:00:00Z',
    };
    const status = { phase: 'Running', nodeName: node, activePods: { 'launcher-uid': node }, conditions: [paused] };
    await client.patch(`${path}/masked`, 'application/merge-patch+json', { status });
    const pinned = {
      podUID: 'launcher-uid',
      namespace: 'tenant',
      podName: 'launcher',
      state: 'pinned',
      vcpus: 2,
    } as const;
    await report(client, node, topologyOf({ pinning: [pinned] }));
    const asked = () => installed.requests().some(({ resource }) => resource === 'virtualmachineinstances/unpause');
    await until('KubeVirt to be asked', async () => asked());
    const { metadata } = await read<{ metadata: { annotations: Record<string, string> } }>(`${path}/masked`);
    assert.equal(metadata.annotations['plumbline.dev/paused-start'], 'paused 2026-01-01T00:00:00Z');
  });

  it('the console shows a user the histories of a node and a VM', async () => {
    const { port } = await page.ports();
    for (const subject of [`node=${WORKER}`, 'vm=tenant/masked']) {
      const response = await fetch(`http://127.0.0.1:${port}/history?${subject}`);
      assert.equal(response.status, 200);
      const { notes } = (await response.json()) as { readonly notes: readonly string[] };
      assert.deepEqual(notes, []);
    }
  });

  it('another launcher of the VM counts in the Event about the first one', async () => {
    const scene = sceneOf(installed.client);
    const vmi = await scene.vmi('vm');
    await scene.admit(launcherFor(vmi, WHOLE_CORES));
    const patched = () =>
      installed.requests().some(({ verb, resource, agent }) => {
        return verb === 'patch' && resource === 'events' && agent.startsWith('plumbline-scheduler-plugin');
      });
    await until('the Event to be counted', async () => patched());
    const reasons = await eventsOf(vmi.metadata.uid);
    assert.equal(reasons.filter((reason) => reason === 'PaddedToWholeCores').length, 1);
  });

  it('no role and no policy forbids a call', () => {
    const refused = installed.requests().filter(({ status }) => status === 401 || status === 403);
    assert.deepEqual(
      refused.map(({ user, verb, uri }) => `${user}: ${verb} ${uri}`),
      [],
    );
  });

  for (const account of ACCOUNTS) {
    const user = `system:serviceaccount:${account.namespace}:${account.name}`;
    // kube-scheduler shares the extender's account; what it does with its own roles says nothing of the extender's.
    const byExtender = ({ role }: Grant) => role === 'ClusterRole plumbline-scheduler-plugin';
    const used = (grant: Grant) =>
      installed
        .requests()
        .filter((one) => one.user === user && covers(grant, one))
        .filter(({ agent }) => !byExtender(grant) || agent.startsWith('plumbline-scheduler-plugin'));

    it(`${account.namespace}/${account.name}: uses every verb that it is granted`, () => {
      const grants = grantsOf(installed.objects, account);
      assert.ok(grants.length > 0);
      const asked = grants.filter(
        ({ resource, verb }) => !ASKED_BY_POLICIES.includes(resource) && verb !== ASKED_BY_RBAC,
      );
      const unused = asked.filter((grant) => used(grant).length === 0);
      console.log(`      ${grants.length} verbs granted, ${unused.length} unused`);
      assert.deepEqual(unused.map(grantText), []);
    });

    it(`${account.namespace}/${account.name}: has no verb in all namespaces that it needs only in known ones`, () => {
      const wide = grantsOf(installed.objects, account).filter(({ namespace, resource }) => {
        return namespace === undefined && !WIDER.includes(resource);
      });
      const narrow = wide.filter((grant) => {
        const namespaces = new Set(used(grant).map(({ namespace }) => namespace));
        return namespaces.size > 0 && [...namespaces].every((namespace) => KNOWN.includes(namespace));
      });
      assert.deepEqual(narrow.map(grantText), []);
    });
  }
});
