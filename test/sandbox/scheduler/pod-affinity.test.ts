import assert from 'node:assert/strict';
import { groupBy } from '../../../model/lists.ts';
import type { KubeNode, KubePod } from '../../../sandbox/objects.ts';
import { RequiredPodAffinity } from '../../../sandbox/scheduler/pod-affinity.ts';
import {
  AFFINITY_CASES,
  type AffinityPod,
  affinityOf,
  LABELS_OF_NAMESPACES,
  LABELS_OF_NODES,
} from './pod-affinity-fixture.ts';

const nodeOf = (name: string) => ({ metadata: { name, labels: LABELS_OF_NODES[name] } }) as unknown as KubeNode;
const podOf = (pod: AffinityPod) => {
  const { labels, namespace = 'default' } = pod;
  return { metadata: { name: 'pod', namespace, labels }, spec: { affinity: affinityOf(pod) } } as unknown as KubePod;
};

describe('sandbox: required affinity to pods', () => {
  for (const { title, placed, pod, refused } of AFFINITY_CASES) {
    it(title, () => {
      const others = placed.map(({ node = 'a1', ...other }) => ({ pod: podOf(other), node: nodeOf(node) }));
      const affinity = new RequiredPodAffinity(podOf(pod), others, (name) => LABELS_OF_NAMESPACES[name] ?? {});
      const pairs = Object.keys(LABELS_OF_NODES).flatMap((name) =>
        (affinity.misfit(nodeOf(name))?.reasons ?? []).map((reason) => ({ reason, name })),
      );
      const byReason = groupBy(pairs, ({ reason }) => reason);
      const misfits = Object.fromEntries(
        [...byReason].map(([reason, found]) => [reason, found.map(({ name }) => name)]),
      );
      assert.deepEqual(misfits, refused);
    });
  }
});
