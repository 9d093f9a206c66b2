import assert from 'node:assert/strict';
import type * as z from 'zod';
import { pod, tolerations } from '../../kube/resources.ts';
import {
  startingInstance,
  virtualMachine,
  virtualMachineInstanceReplicaSet,
  virtualMachinePool,
} from '../../kube/virtual-machines.ts';
import { FULL_PCPUS_LABEL, THREADS_PER_CORE_LABEL } from '../../model/names.ts';
import { EMPTY_CONTEXT } from '../../model/networks/context.ts';
import { monotonicSeconds } from '../../runtime/time.ts';
import { createClusterView } from '../../webhook/cluster/cluster-view.ts';
import { createPodMutation, createPodValidation } from '../../webhook/pods/mutate-pod.ts';
import type { Review } from '../../webhook/review/admission-review.ts';
import { createVmiMutation } from '../../webhook/vms/mutate-vmi.ts';
import { createVmValidation } from '../../webhook/vms/validate-vm.ts';
import { scriptedLists } from '../kube/scripted-api-stand-in.ts';
import { silent } from '../support/logger.ts';
import { collectGarbage, leastProcessorTime, processorTime, processorTimeOf } from '../support/processor-time.ts';
import { answerReview, optionsOf, podVector, requestFor, vmiVector } from '../webhook/launcher-fixture.ts';
import { attacksOn, WATCHED } from './hostile-objects-fixture.ts';

const MAX_TASK_MILLISECONDS = 50;
const MAX_REVIEW_MILLISECONDS = 100;
/** Characters of the JSON of an object with one hostile field, after it was read. */
const MAX_READ_CHARACTERS = 256 * 1024;
const NODES = 1000;
interface Cost {
  readonly label: string;
  readonly milliseconds: number;
  readonly isTooSlow: boolean;
  readonly characters: number;
}
/** Milliseconds of processor time of some work. The first run compiles: only if it is too slow, others count. */
function leastBelow(limit: number, work: () => unknown): number {
  const first = processorTime(work);
  if (first > limit) collectGarbage();
  return first <= limit ? first : leastProcessorTime(work, 3);
}
/** Times the processor time of parsing the same JSON, which a busy or slower machine is allowed. */
const MAX_RATIO_TO_PARSING = 3;
function isTooSlow(limit: number, milliseconds: number, json: string): boolean {
  if (milliseconds <= limit) return false;
  return milliseconds > MAX_RATIO_TO_PARSING * leastProcessorTime(() => JSON.parse(json), 3);
}
describe('objects with a hostile field, generated from the schemas', () => {
  for (const [daemon, schemas] of Object.entries(WATCHED)) {
    for (const [name, schema] of Object.entries(schemas)) {
      const kind = `${daemon}: ${name}`;
      it(`${kind}: no field costs much memory or a long task`, function () {
        this.timeout(300_000);
        const costs = attacksOn(schema).map(({ label, json }): Cost => {
          const text = json({ metadata: { name: 'n', namespace: 'mallory', uid: 'u' } });
          const object: unknown = JSON.parse(text);
          const { data } = schema.safeParse(object);
          const milliseconds = leastBelow(MAX_TASK_MILLISECONDS, () => schema.safeParse(object));
          return {
            label,
            milliseconds,
            isTooSlow: isTooSlow(MAX_TASK_MILLISECONDS, milliseconds, text),
            characters: data === undefined ? 0 : JSON.stringify(data).length,
          };
        });
        const isWhole = (label: string) => label === 'every field at its maximum';
        const costly = costs.filter(
          ({ label, isTooSlow, characters }) => isTooSlow || (characters > MAX_READ_CHARACTERS && !isWhole(label)),
        );
        assert.deepEqual(costly, []);
      });
    }
  }
});
const many = <T>(count: number, create: (index: number) => T) => Array.from({ length: count }, (_, i) => create(i));
const text = (index: number, length = 60) => `${index}`.padStart(length, 'x');
/** A required node affinity of so many terms, each with these requirements. */
const affinityOf = (count: number, matchExpressions: (term: number) => object[]) => ({
  nodeAffinity: {
    requiredDuringSchedulingIgnoredDuringExecution: {
      nodeSelectorTerms: many(count, (term) => ({ matchExpressions: matchExpressions(term) })),
    },
  },
});
const notIn = (key: string, ...values: string[]) => ({ key, operator: 'NotIn', values });
/** Pods whose fields together are at their limits: each is multiplied with the nodes, or with another one. */
const PRODUCTS: Readonly<Record<string, object>> = {
  'requirements and values': {
    affinity: affinityOf(64, (term) => many(4, (i) => notIn('name', ...many(16, (j) => text(term * 64 + i * 16 + j))))),
  },
  'one requirement with all values': { affinity: affinityOf(1, () => [notIn('name', ...many(4096, (i) => text(i)))]) },
  'terms that look like Plumbline’s': {
    affinity: affinityOf(64, (term) => [
      notIn('a', ...many(60, (i) => text(i))),
      ...(term % 2
        ? [notIn(FULL_PCPUS_LABEL, 'true')]
        : many(3, (i) => notIn(THREADS_PER_CORE_LABEL, text(term * 4 + i)))),
    ]),
  },
  selectors: { nodeSelector: Object.fromEntries(many(512, (i) => [`k${text(i)}`, text(i)])) },
  tolerations: { tolerations: many(512, (i) => ({ key: text(i), operator: 'Exists', effect: 'NoSchedule' })) },
  containers: {
    containers: many(512, (i) => {
      const amounts = { cpu: '3', memory: '1Gi' };
      return { name: i === 0 ? 'compute' : `c${i}`, resources: { requests: amounts, limits: amounts } };
    }),
  },
};
const ADMITTED = pod.extend({ spec: pod.shape.spec.extend({ tolerations }) });
const VMI = { metadata: {}, spec: { domain: { cpu: { dedicatedCpuPlacement: true } } } };
type Options = ReturnType<typeof optionsOf>;
/** Each review of an object, with the object that has the hostile field. */
const REVIEWS: Readonly<
  Record<string, readonly [kind: string, schema: z.ZodType, base: object, review: (options: Options) => Review]>
> = {
  'a new pod': ['Pod', ADMITTED, podVector(), createPodMutation],
  'a pod after other webhooks': ['Pod', ADMITTED, podVector(), createPodValidation],
  'a new VMI': ['VirtualMachineInstance', startingInstance, VMI, createVmiMutation],
  'a VMI': ['VirtualMachineInstance', startingInstance, VMI, createVmValidation],
  'a VM': ['VirtualMachine', virtualMachine, {}, createVmValidation],
  'a replica set': ['VirtualMachineInstanceReplicaSet', virtualMachineInstanceReplicaSet, {}, createVmValidation],
  'a pool': ['VirtualMachinePool', virtualMachinePool, {}, createVmValidation],
};
describe('reviews with a hostile field, generated from the schemas', () => {
  const stop = new AbortController();
  after(() => stop.abort());
  let options: Options;

  before(async () => {
    const names = Array.from({ length: NODES }, (_, i) => `node-${i}`);
    const status = {
      cells: [{ id: 0, cpus: '0-7' }],
      cores: ['0,4', '1,5', '2,6', '3,7'],
      reserved: '0',
      cpuManager: { policy: 'static', options: { 'full-pcpus-only': 'true' } },
      assignments: [],
    };
    const labels = { 'kubevirt.io/schedulable': 'true' };
    const { client } = scriptedLists({
      '/api/v1/nodes': names.map((name) => ({ metadata: { name, labels: { ...labels, name } }, status: {} })),
      '/apis/plumbline.dev/v1alpha1/nodetopologies': names.map((name) => ({ metadata: { name }, status })),
      '/api/v1/namespaces': [],
    });
    const onQuarantined = () => undefined;
    const view = createClusterView(
      { ...EMPTY_CONTEXT },
      { client, log: silent, nowSeconds: monotonicSeconds, onQuarantined },
    );
    void view.run(stop.signal);
    while (view.problem !== undefined) await new Promise((resolve) => setImmediate(resolve));
    options = optionsOf({ view, lookUpVmi: async () => ({ kind: 'found', vmi: vmiVector() }) });
  });

  /** Milliseconds of processor time of a review, if it is too slow the least of three, and the characters of its answer. */
  const costOf = async (label: string, review: Review, body: Buffer): Promise<Cost> => {
    let milliseconds = Number.POSITIVE_INFINITY;
    let characters = 0;
    for (let i = 0; i < 3 && milliseconds > MAX_REVIEW_MILLISECONDS; i++) {
      if (i > 0) collectGarbage();
      const used = await processorTimeOf(async () => {
        characters = (await answerReview(body, review)).body.length;
      });
      milliseconds = Math.min(milliseconds, used);
    }
    return { label, milliseconds, isTooSlow: isTooSlow(MAX_REVIEW_MILLISECONDS, milliseconds, `${body}`), characters };
  };

  for (const [name, [kind, schema, base, create]] of Object.entries(REVIEWS))
    it(`${name}: no field costs much time or a long answer with ${NODES} nodes`, async function () {
      this.timeout(300_000);
      const review = create(options);
      const costs: Cost[] = [];
      const products = kind === 'Pod' ? Object.entries(PRODUCTS) : [];
      const attacks = [
        ...attacksOn(schema),
        ...products.map(([label, spec]) => ({
          label,
          json: (object: { spec?: object }) => JSON.stringify({ ...object, spec: { ...object.spec, ...spec } }),
        })),
      ];
      for (const { label, json } of attacks) {
        const request = JSON.stringify({ ...requestFor(undefined), kind: { group: '', version: 'v1', kind } });
        const object = json(base as Record<string, unknown>);
        const body = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":${request.slice(0, -1)},"object":${object}}}`;
        costs.push(await costOf(label, review, Buffer.from(body)));
      }
      const costly = costs.filter(({ isTooSlow, characters }) => isTooSlow || characters > MAX_READ_CHARACTERS);
      assert.deepEqual(costly, []);
    });
});
