import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { pod, tolerations } from '../../kube/resources.ts';
import { startedInstance } from '../../kube/virtual-machines.ts';
import { observedPod } from '../../scheduler-plugin/cluster/pod-view.ts';
import { onControlPlane } from '../real/control-plane-stage.ts';
import { type Replica, type Stage, startStage, topologyOf } from '../real/scheduler/stage.ts';
import { FOREIGN_DEFINITIONS } from '../real/webhook/crds-fixture.ts';
import { limitsOf } from '../support/reader-limits.ts';
import { until } from '../support/until.ts';

const MERGE = 'application/merge-patch+json';
const CORE = '/api/v1/namespaces/default';
const KUBEVIRT = '/apis/kubevirt.io/v1/namespaces/default';
const DEFINITIONS = '/apis/k8s.cni.cncf.io/v1/namespaces/default/network-attachment-definitions';
const NODE = 'n1';
/** Of the 14 free CPUs of the node. */
const [HELD, LEFT] = ['8', '6'];
/** Until a change of an object is in the extender. */
const WATCH_MILLISECONDS = 60;

/** Items of lists with required fields. */
const ITEMS: Readonly<Record<string, (i: number) => object>> = {
  ownerReferences: (i) => ({ apiVersion: 'v1', kind: 'ConfigMap', name: `n${i}`, uid: `u${i}` }),
  tolerations: (i) => ({ key: `k${i}`, operator: 'Exists' }),
  networks: (i) => ({ name: `n${i}` }),
  conditions: (i) => ({ type: `t${i}`, status: 'True' }),
};
const numbered = <T>(count: number, of: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => of(i));

/** A merge patch that gives the field of a limit this size; undefined for a limit of several fields together. */
function patchOf(path: string, size: number): object | undefined {
  const annotation = /^\.metadata\.annotations\.(.+)$/.exec(path)?.[1];
  if (annotation !== undefined) return { metadata: { annotations: { [annotation]: 'x'.repeat(size) } } };
  const [field = '', counted] = path.split(' ');
  if (counted === 'requirements' || counted === 'values') return undefined;
  const tokens = field.match(/\.\w+|\[\]|\{key\}|\{\}/g) ?? [];
  const fieldOf = ([token, ...rest]: readonly string[], name: string): unknown => {
    if (token === undefined) return 'x'.repeat(size);
    if (token === '[]') {
      const itemOf = ITEMS[name] ?? ((i: number) => ({ name: `n${i}` }));
      if (rest.length === 0 && counted === 'items') return numbered(size, itemOf);
      const item = fieldOf(rest, name);
      return [typeof item === 'object' ? { ...itemOf(0), ...item } : item];
    }
    if (token === '{key}') return { ['x'.repeat(size)]: '1' };
    if (token === '{}') {
      if (counted === 'entries') return Object.fromEntries(numbered(size, (i) => [`k${i}`, '1']));
      return { k: fieldOf(rest, name) };
    }
    return { [token.slice(1)]: fieldOf(rest, token.slice(1)) };
  };
  return fieldOf(tokens, '') as object;
}

/** A merge patch that removes what another one has written. */
function undo(patch: object): object {
  const entries = Object.entries(patch).map(([key, value]) => {
    const isDeeper =
      typeof value === 'object' && !Array.isArray(value) && ['metadata', 'spec', 'annotations'].includes(key);
    return [key, isDeeper ? undo(value as object) : null];
  });
  return Object.fromEntries(entries);
}

/** Fields that the readers limit, and that an author can write. What names the object itself cannot change. */
const writable = (limits: ReadonlyMap<string, number>) =>
  [...limits].filter(
    ([path]) => !/^\.metadata\.(name|namespace|uid|resourceVersion|\w+Timestamp|generateName)$|^\.status/.test(path),
  );
const POD_LIMITS = writable(limitsOf([pod.extend({ spec: pod.shape.spec.extend({ tolerations }) }), observedPod]));
const VMI_LIMITS = writable(limitsOf([startedInstance]));
/** Of objects that the extender does not read, or of which it reads a part. */
const COMMON: readonly (readonly [string, number])[] = [
  ['.metadata.labels{} entries', 1024],
  ['.metadata.labels{} entries', 6000],
  ['.metadata.annotations.plumbline.dev/cpu-mask', 16_384],
  ['.metadata.annotations.example.org/any', 200_000],
  ['.metadata.ownerReferences[] items', 64],
  ['.metadata.ownerReferences[].name', 253],
];

/** Each object of a VM whose launcher has its CPUs, and the fields that grow. */
const OBJECTS: readonly [kind: string, path: string, limits: readonly (readonly [string, number])[]][] = [
  ['Pod', `${CORE}/pods/holder`, [...POD_LIMITS, ...COMMON]],
  ['VirtualMachineInstance', `${KUBEVIRT}/virtualmachineinstances/vm`, [...VMI_LIMITS, ...COMMON]],
  [
    'VirtualMachine',
    `${KUBEVIRT}/virtualmachines/vm`,
    [...VMI_LIMITS.map(([path, max]) => [path.replace('.spec', '.spec.template.spec'), max] as const), ...COMMON],
  ],
  ['PersistentVolumeClaim', `${CORE}/persistentvolumeclaims/disk`, COMMON],
  ['NetworkAttachmentDefinition', `${DEFINITIONS}/net`, [['.spec.config', 256 * 1024], ...COMMON]],
];

/** Without the policies, which refuse most of this: the daemons do not rely on them. */
describe('a VM whose launcher has its CPUs, and whose objects grow to and over each limit of the readers', function () {
  onControlPlane(this);
  let stage: Stage;
  let replica: Replica;
  let accepted = 0;

  before(async () => {
    stage = await startStage();
    await stage.plane.create(...FOREIGN_DEFINITIONS);
    await stage.addNodes([{ name: NODE, topology: topologyOf() }]);
    replica = await stage.startReplica();
    await stage.startScheduler();
    await createObjects(stage);
    await stage.bound('holder');
    await until('the reservation', async () => (await replica.metric('plumbline_extender_reservations')) === 1);
  });
  after(() => stage?.stop());

  /** Whether the extender gives a pod of so many CPUs the node. The second call ends the reservation of the first. */
  const hasRoomFor = async (cpu: string) => {
    const [first] = [await filter(replica.port, cpu, '1'), await filter(replica.port, '400', '2')];
    return first.length > 0;
  };

  for (const [kind, path, limits] of OBJECTS)
    it(`${kind}: no CPU is promised twice, and none is lost`, async () => {
      for (const [field, max] of limits) {
        for (const size of [max, max + 1]) {
          const patch = patchOf(field, size);
          if (patch === undefined) continue;
          const isWritten = await stage.client.patch(path, MERGE, patch).then(
            () => true,
            () => false,
          );
          if (isWritten) await delay(WATCH_MILLISECONDS);
          assert.deepEqual(
            [await hasRoomFor(HELD), await hasRoomFor(LEFT)],
            [false, true],
            `${kind} ${field} with ${size}, ${isWritten ? 'written' : 'refused by the API server'}`,
          );
          if (!isWritten) continue;
          accepted++;
          await stage.client.patch(path, MERGE, undo(patch)).catch(() => undefined);
        }
      }
    });

  it('most of it was written, and the CPUs are free when the launcher is gone', async () => {
    console.log(`      ${accepted} changes were written`);
    assert.ok(accepted > 100, `${accepted} changes were written`);
    await stage.client.delete(`${CORE}/pods/holder`, { body: { gracePeriodSeconds: 0 } });
    await until('the CPUs to be free', () => hasRoomFor(HELD));
  });
});

/** Calls the extender as kube-scheduler does. @returns the nodes */
async function filter(port: number, cpu: string, resourceVersion: string): Promise<readonly string[]> {
  const amounts = { cpu, memory: '64Mi' };
  const containers = [{ name: 'compute', resources: { requests: amounts, limits: amounts } }];
  const metadata = { name: 'probe', namespace: 'victim', uid: 'probe', resourceVersion };
  const body = JSON.stringify({ Pod: { metadata, spec: { containers } }, Nodes: null, NodeNames: [NODE] });
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch(`http://127.0.0.1:${port}/filter`, { method: 'POST', body, headers });
  const { NodeNames, Error: error } = (await answer.json()) as { NodeNames: readonly string[] | null; Error: string };
  assert.equal(error, '');
  return NodeNames ?? [];
}

/** A VM with its instance, a network, and a launcher with a volume that is bound. */
async function createObjects({ plane, client, addPod }: Stage): Promise<void> {
  const metadata = { name: 'vm', namespace: 'default' };
  const spec = { domain: { cpu: { cores: 4 }, devices: {} } };
  const amounts = { accessModes: ['ReadWriteOnce'], storageClassName: '' };
  await plane.create(
    { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', metadata, spec: { template: { spec } } },
    { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', metadata, spec },
    {
      apiVersion: 'k8s.cni.cncf.io/v1',
      kind: 'NetworkAttachmentDefinition',
      metadata: { name: 'net', namespace: 'default' },
      spec: { config: '{}' },
    },
    {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name: 'disk' },
      spec: { ...amounts, capacity: { storage: '1Gi' }, hostPath: { path: '/tmp' } },
    },
    {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: 'disk', namespace: 'default', annotations: { 'pv.kubernetes.io/bind-completed': 'yes' } },
      spec: { ...amounts, volumeName: 'disk', resources: { requests: { storage: '1Gi' } } },
    },
  );
  await client.patch(`${CORE}/persistentvolumeclaims/disk/status`, MERGE, { status: { phase: 'Bound' } });
  const volumes = [{ name: 'disk', persistentVolumeClaim: { claimName: 'disk' } }];
  await addPod({ name: 'holder', cpu: HELD, more: { volumes } });
}
