import assert from 'node:assert/strict';
import type { PodResources } from '../../../kube/kubelet-api/gen/pod-resources.ts';
import { PLACEMENT_ANNOTATION } from '../../../model/names.ts';
import type { NodeNetworks } from '../../../model/networks/reach.ts';
import { MovedNetworks } from '../../../node-agent/device-plugin/moved-networks.ts';
import { UNKNOWN_NETWORKS } from '../../../node-agent/networks/combine.ts';
import { podResourcesOf } from '../../support/pod-resources.ts';
import { vmiOwner } from '../../support/vmi-owner.ts';
import { createFakeApi, type FakeApi } from '../api-stand-in.ts';
import {
  eventually,
  twoCells as host,
  messagesOf,
  recordingEvents,
  recordingLogger,
  set,
  turns,
  useDuties,
} from '../support.ts';

const EAST = 'physnet.plumbline.dev/east';
const physnets = (cells: Record<string, string>, tunnel?: string): NodeNetworks => ({
  physnets: new Map(Object.entries(cells).map(([name, text]) => [name, set(text)])),
  tunnel: tunnel === undefined ? undefined : set(tunnel),
});

describe('networks that move while pods run', () => {
  const start = useDuties();
  let now: NodeNetworks;
  let changed: () => void;
  let pods: PodResources[];
  let lists: number;
  let failing: boolean;
  let isComplete: boolean;
  let logged: ReturnType<typeof recordingLogger>;
  let notified: ReturnType<typeof recordingEvents>['events'];
  let api: FakeApi;

  const holding = (name: string, cpus: string, resource = EAST): PodResources => {
    const devices = [{ resourceName: resource, deviceIds: ['0'] }];
    const container = { name: 'compute', cpuIds: set(cpus).toArray(), devices };
    return podResourcesOf({ name, namespace: 'ns', containers: [container] });
  };
  const store = (name: string, more: object = {}) => {
    const metadata = { name, namespace: 'ns', uid: `uid-${name}`, ...more };
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata, spec: { containers: [{ name: 'compute' }] } };
    api.objects.set(`/api/v1/namespaces/ns/pods/${name}`, pod);
  };

  beforeEach(() => {
    now = physnets({ east: '0' }, '0');
    pods = [holding('vm', '2-3')];
    [lists, failing, isComplete] = [0, false, true];
    const { events, recorder } = recordingEvents();
    notified = events;
    logged = recordingLogger();
    api = createFakeApi('worker-1');
    const list = async () => {
      lists++;
      if (failing) throw new Error('the kubelet restarts');
      return pods;
    };
    const duty = new MovedNetworks({
      networks: {
        view: () => ({ ...UNKNOWN_NETWORKS, networks: now }),
        get isComplete() {
          return isComplete;
        },
        subscribe: (listener) => {
          changed = listener;
          return () => true;
        },
      },
      host: async () => host,
      podResources: () => ({ list, close: () => undefined }),
      client: api.client,
      events: recorder,
      log: logged.log,
    });
    start(duty);
  });

  const change = (networks: NodeNetworks) => {
    now = networks;
    changed();
  };
  /** Ends after the change was processed: the agent lists another pod after it. */
  const settled = async (looks: number) => {
    await eventually(() => lists >= looks, `${looks} looks`);
    await turns();
  };

  it('a move to the other NUMA node records an Event on the launcher and on its VMI', async () => {
    store('vm', { labels: { 'kubevirt.io': 'virt-launcher' }, ownerReferences: [vmiOwner('firewall', 'v1')] });
    change(physnets({ east: '1' }, '0'));
    await eventually(() => notified.length === 2, 'both Events');
    const objects = notified.map(({ about }) => about);
    assert.deepEqual(objects, ['v1 Pod ns/vm uid-vm', 'kubevirt.io/v1 VirtualMachineInstance ns/firewall v1']);
    const { type, reason, message } = notified[0]!;
    assert.deepEqual([type, reason], ['Warning', 'NetworkMoved']);
    assert.equal(
      message,
      'container compute, which runs on CPUs 2-3: physnet east moved from NUMA node 0 to NUMA node 1, away from those CPUs; restart or migrate it to place it again',
    );
  });

  it('a network that leaves the node records an Event, for the tunnel, too', async () => {
    pods.push(holding('overlay', '4-5', 'plumbline.dev/tunnel'));
    for (const name of ['vm', 'overlay']) store(name);
    change(physnets({}));
    await eventually(() => notified.length === 2, 'both Events');
    const texts = notified.map(({ message }) => message).join();
    assert.match(texts, /physnet east, which was on NUMA node 0, has left this node/);
    assert.match(texts, /the tunnel, which was on NUMA node 0, has left this node/);
  });

  it('pods that stay near, share CPUs, use another network or span NUMA nodes get no Event', async () => {
    pods = [holding('near', '4-5'), holding('shared', ''), holding('other', '2-3', 'a/nic'), holding('wide', '2-5')];
    store('wide', { annotations: { [PLACEMENT_ANNOTATION]: '{"spansCells":true}' } });
    change(physnets({ east: '1' }, '0'));
    await settled(1);
    assert.deepEqual(notified, []);
  });

  it('the agent retries a kubelet that does not answer and still reports the move', async () => {
    store('vm');
    failing = true;
    change(physnets({ east: '1' }, '0'));
    await eventually(() => lists >= 2, 'the kubelet was asked');
    assert.equal(messagesOf(logged)[0], '40 finding the pods of a moved network failed; retrying');
    failing = false;
    await eventually(() => notified.length === 1, 'it was asked again');
  });

  it('an Event is recorded and logged for a pod that cannot be read, without its uid', async () => {
    change(physnets({ east: '1' }, '0'));
    await eventually(() => notified.length === 1, 'the Event');
    assert.equal(notified[0]?.about, 'v1 Pod ns/vm undefined');
    const UNREAD = '40 reading a pod whose network moved failed';
    assert.deepEqual(messagesOf(logged), [UNREAD, '40 network moved under a running pod']);
  });

  it('a network that was on no NUMA node in particular moves to one', async () => {
    store('vm');
    change(physnets({ east: '' }, '0'));
    await settled(1);
    assert.equal(notified.length, 0, 'no NUMA node is near any');
    change(physnets({ east: '1' }, '0'));
    await eventually(() => notified.length === 1, 'the Event');
    assert.match(notified[0]?.message ?? '', /moved from no NUMA node in particular to NUMA node 1, away/);
  });

  it('networks that are unknown for a while have not left; where they are afterwards counts', async () => {
    store('vm');
    isComplete = false;
    change(physnets({}));
    await settled(0);
    assert.deepEqual([notified.length, lists], [0, 0]);
    isComplete = true;
    change(physnets({ east: '1' }, '0'));
    await eventually(() => notified.length === 1, 'the move');
  });
});
