import assert from 'node:assert/strict';
import {
  AFFINITY_CASES,
  affinityOf,
  LABELS_OF_NAMESPACES,
  LABELS_OF_NODES,
} from '../../sandbox/scheduler/pod-affinity-fixture.ts';
import { until } from '../../support/until.ts';
import { type ControlPlane, onControlPlane, startControlPlane } from '../control-plane-stage.ts';
import type { SeenPod } from './stage.ts';

const PODS = '/api/v1/namespaces/default/pods';
const CONTAINERS = [{ name: 'c', image: 'i' }];
/** Nothing makes these nodes ready. */
const TOLERATIONS = [{ operator: 'Exists' }];
/** kube-scheduler’s reasons that these cases are about. */
const OWN = /(\d+) (node\(s\) didn't (?:match pod|satisfy existing)[^,.]*)/g;

/** The table of the embedded cluster’s scheduler. Only the nodes that are refused are offered, or only the others. */
describe('required affinity to pods, as the real kube-scheduler judges it', function () {
  onControlPlane(this);
  let plane: ControlPlane;

  before(async () => {
    plane = await startControlPlane();
    for (const [name, labels] of Object.entries(LABELS_OF_NAMESPACES)) {
      await plane.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } });
    }
    for (const [name, labels] of Object.entries(LABELS_OF_NODES)) {
      await plane.create({ apiVersion: 'v1', kind: 'Node', metadata: { name, labels } });
      const status = {
        allocatable: { cpu: '8', memory: '8Gi', pods: '50' },
        conditions: [{ type: 'Ready', status: 'True' }],
      };
      await plane.client.patch(`/api/v1/nodes/${name}/status`, 'application/merge-patch+json', { status });
    }
    await plane.startScheduler({ profiles: [{ schedulerName: 'default-scheduler' }] });
  });
  after(() => plane?.stop());

  for (const [index, { title, placed, pod, refused }] of AFFINITY_CASES.entries()) {
    it(title, async () => {
      const names: [string, string][] = [];
      const add = async (name: string, { namespace = 'default', ...one }: (typeof placed)[number], more: object) => {
        const metadata = { name, namespace, labels: one.labels };
        const spec = { containers: CONTAINERS, tolerations: TOLERATIONS, affinity: affinityOf(one), ...more };
        await plane.create({ apiVersion: 'v1', kind: 'Pod', metadata, spec });
        names.push([namespace, name]);
      };
      for (const [at, other] of placed.entries())
        await add(`placed-${index}-${at}`, other, { nodeName: other.node ?? 'a1' });
      const excluded = Object.values(refused).flat();
      const open = Object.keys(LABELS_OF_NODES).filter((name) => !excluded.includes(name));
      const tryOn = async (name: string, nodes: readonly string[]) => {
        const terms = [{ matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: nodes }] }];
        const nodeAffinity = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms } };
        await add(name, pod, { affinity: { ...affinityOf(pod), nodeAffinity } });
        return until(`kube-scheduler tries ${name}`, async () => {
          const { spec, status } = (await plane.client.get(`${PODS}/${name}`)) as SeenPod;
          return spec.nodeName ?? status.conditions?.find(({ type }) => type === 'PodScheduled')?.message;
        });
      };
      if (excluded.length > 0) {
        const message = await tryOn(`refused-${index}`, excluded);
        const counts = Object.fromEntries(
          [...message.matchAll(OWN)].map(([, count, reason]) => [reason, Number(count)]),
        );
        assert.deepEqual(
          counts,
          Object.fromEntries(Object.entries(refused).map(([reason, list]) => [reason, list.length])),
        );
      }
      // One by one, as a pod that has a node may change the result of the next.
      for (const node of open) {
        assert.equal(await tryOn(`fits-${index}-${node}`, [node]), node);
        const [namespace, name] = names.pop()!;
        await plane.client.delete(`/api/v1/namespaces/${namespace}/pods/${name}?gracePeriodSeconds=0`);
      }
      for (const [namespace, name] of names)
        await plane.client.delete(`/api/v1/namespaces/${namespace}/pods/${name}?gracePeriodSeconds=0`);
    });
  }
});
