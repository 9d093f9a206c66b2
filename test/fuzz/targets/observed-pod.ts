import assert from 'node:assert/strict';
import fc from 'fast-check';
import { ZodError } from 'zod';
import { MAX_CONTAINERS, NeedsReader } from '../../../scheduler-plugin/cluster/pod-needs.ts';
import { podViewOf, observedPod as schema } from '../../../scheduler-plugin/cluster/pod-view.ts';
import { podVector } from '../../webhook/launcher-fixture.ts';
import { almost, withLong } from '../mutation.ts';
import type { Target } from '../target.ts';

const metadata = { name: 'p', namespace: 'n', uid: 'u', resourceVersion: '1' };
const amounts = fc.record(
  {
    cpu: fc.constantFrom('1', '2', '500m', '3'),
    memory: fc.constant('1Gi'),
    'physnet.plumbline.dev/east': fc.constant('1'),
  },
  { requiredKeys: ['cpu', 'memory'] },
);
const container = amounts.map((limits) => ({ name: 'c', resources: { limits, requests: limits } }));
const text = fc
  .record({
    containers: fc.array(container, { minLength: 1, maxLength: 3 }),
    initContainers: fc.option(fc.array(container, { maxLength: 2 })),
    phase: fc.constantFrom('Pending', 'Running', 'Failed', 'Succeeded'),
    reason: fc.constantFrom('', 'TopologyAffinityError'),
    node: fc.constantFrom('', 'n1'),
    wishes: fc.constantFrom('{}', '{"preferred":["plumbline.dev/tunnel"]}', '['),
  })
  .map(({ containers, initContainers, phase, reason, node, wishes }) =>
    JSON.stringify({
      metadata: { ...metadata, annotations: { 'plumbline.dev/placement': wishes } },
      spec: { containers, initContainers, nodeName: node },
      status: { phase, reason },
    }),
  );

const [HEAD = '', TAIL = ''] = JSON.stringify({ metadata, spec: { containers: ['@'] } }).split('"@"');
const amountsText = (more: string) =>
  `{"limits":{"cpu":"2","memory":"1Mi"${more}},"requests":{"cpu":"2","memory":"1Mi"${more}}}`;

const read = (json: string) => podViewOf(schema.parse(JSON.parse(json)), new NeedsReader('all'));

export const observedPod: Target<string> = {
  name: 'observed-pod',
  about: 'any pod is stored with its name and a limited number of containers',
  inputs: withLong(
    almost(text, [JSON.stringify({ ...podVector(), metadata })]),
    200_000,
    { head: HEAD, piece: '{"name":"a"}', joint: ',', tail: TAIL },
    { head: HEAD, piece: '{}', joint: ',', tail: TAIL },
    { head: HEAD, piece: (i) => `{"name":"c${i}","resources":${amountsText('')}}`, joint: ',', tail: TAIL },
    {
      head: HEAD,
      piece: (i) => `{"name":"c","resources":${amountsText(`,"physnet.plumbline.dev/p${i}":"1"`)}}`,
      joint: ',',
      tail: TAIL,
    },
    {
      head: `${HEAD}{"name":"c","resources":{"limits":{`,
      piece: (i) => `"a/${i}":"1"`,
      joint: ',',
      tail: `}}}${TAIL}`,
    },
  ),
  judge(json) {
    try {
      const view = read(json);
      if (view === undefined) return 'accepted';
      const sent = (JSON.parse(json) as { metadata: { uid: string } }).metadata;
      assert.equal(view.uid, sent.uid);
      assert.ok(view.needs.request.containers.length <= MAX_CONTAINERS);
      assert.ok(view.padding >= 0 && view.padding <= 4096);
      return 'accepted';
    } catch (error) {
      assert.ok(error instanceof SyntaxError || error instanceof ZodError, String(error));
      return 'refused';
    }
  },
};
