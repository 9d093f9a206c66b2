import assert from 'node:assert/strict';
import fc from 'fast-check';
import jsonPatch from 'fast-json-patch';
import type { createWebhookApp } from '../../../webhook/app.ts';
import { createRequirementReview } from '../../../webhook/cluster/requirement.ts';
import { createPodRouting } from '../../../webhook/pods/mutate-pod.ts';
import { type AdmissionRequest, ReviewError } from '../../../webhook/review/admission-review.ts';
import { createVmiMutation } from '../../../webhook/vms/mutate-vmi.ts';
import { createVmValidation } from '../../../webhook/vms/validate-vm.ts';
import { vector } from '../../support/vectors.ts';
import {
  answerReview,
  kindOf,
  localnet,
  mutationOf,
  optionsOf,
  podVector,
  requestFor,
  validationOf,
  viewOf,
  vmiVector,
} from '../../webhook/launcher-fixture.ts';
import type { Target, Verdict } from '../engine.ts';

type Reviews = Parameters<typeof createWebhookApp>[0]['reviews'];
type VmiLookup = Awaited<ReturnType<ReturnType<typeof optionsOf>['lookUpVmi']>>;

const CORPUS: readonly AdmissionRequest[] = [
  requestFor(podVector()),
  requestFor(podVector('virt-launcher-pod.migration-target')),
  requestFor(podVector('hp-volume-pod')),
  requestFor({
    metadata: {
      annotations: { 'plumbline.dev/align': 'whole-cores', 'k8s.v1.cni.cncf.io/networks': 'a,b/c@d' },
      labels: {},
    },
    spec: {
      nodeSelector: { zone: 'a' },
      affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{}] } } },
      containers: [{ name: 'a', resources: { limits: { cpu: '3', memory: '1Gi' }, requests: null } }],
      initContainers: [
        { name: 'i', resources: { limits: { cpu: '1', memory: '1' }, requests: { cpu: 1, memory: '1' } } },
      ],
      resources: null,
    },
  }),
  requestFor(podVector(), { operation: 'UPDATE', subResource: 'resize', oldObject: podVector() }),
  ...['VirtualMachineInstance', 'VirtualMachine'].map((kind) =>
    requestFor(vmObject(kind), {
      kind: { group: 'kubevirt.io', version: 'v1', kind },
      operation: 'UPDATE',
      oldObject: vmObject(kind),
    }),
  ),
  requestFor(
    {
      metadata: { annotations: { 'plumbline.dev/cpu-mask': '0-3:all:1', 'plumbline.dev/paused-start': 'waiting' } },
      spec: { domain: { cpu: { cores: 3 } }, startStrategy: null, livenessProbe: null },
    },
    { kind: { group: 'kubevirt.io', version: 'v1', kind: 'VirtualMachineInstance' } },
  ),
];

function vmObject(kind: string): object {
  const vmi = vector<{ metadata: { annotations: Record<string, string> }; spec: object }>('vmi.json');
  vmi.metadata.annotations['plumbline.dev/cpu-mask'] = '0-3:all:1';
  vmi.metadata.annotations['plumbline.dev/numa-affinity'] = '{"dpdk-east":"required"}';
  return kind === 'VirtualMachine' ? { metadata: vmi.metadata, spec: { template: vmi } } : vmi;
}

const ODD: readonly unknown[] = [
  ...[null, true, 0, -1, 1e308],
  ...['', '9', '9e0', '9000m', '1e99', '-3', '0x9', '\u0000\ud800', 'x'.repeat(5000)],
  ...['{"a":"required"}', '[{"name":"a"}]', '['],
  ...[[], [null], {}, { cpu: '9' }, { __proto__: null, constructor: 1 }, JSON.parse('{"__proto__":{"cpu":"9"}}')],
];

type Edit = { readonly at: number; readonly how: 'replace' | 'delete' | 'duplicate' | 'rename'; readonly odd: number };

const edit: fc.Arbitrary<Edit> = fc.record({
  at: fc.nat(),
  how: fc.constantFrom('replace', 'replace', 'replace', 'delete', 'duplicate', 'rename'),
  odd: fc.nat(ODD.length - 1),
});
const scar = fc.record({ at: fc.nat(), byte: fc.nat(255), cut: fc.boolean() });

const LOOKUPS: Record<VmiLookup['kind'], VmiLookup> = {
  found: { kind: 'found', vmi: vmiVector() },
  absent: { kind: 'absent' },
  replaced: { kind: 'replaced', uid: 'x' },
  unreadable: { kind: 'unreadable', why: 'timeout' },
};

function reviewsFor(lookup: VmiLookup['kind']): Reviews {
  const view = viewOf([kindOf(2, { physnets: { physnet1: '1' } }), kindOf(4)], { findNad: () => localnet('physnet1') });
  const options = optionsOf({ view, lookUpVmi: async () => LOOKUPS[lookup] });
  return {
    mutatePods: mutationOf(options),
    routePods: createPodRouting(options.route),
    validatePods: validationOf(options),
    mutateVmis: createVmiMutation(),
    validateVms: createVmValidation(options),
    require: createRequirementReview(() => undefined),
  };
}

const mutatedReview = fc.record({
  seed: fc.nat(CORPUS.length - 1),
  edits: fc.array(edit, { maxLength: 4 }),
  scars: fc.oneof(
    { weight: 9, arbitrary: fc.constant([]) },
    { weight: 1, arbitrary: fc.array(scar, { maxLength: 3 }) },
  ),
  path: fc.constantFrom(...(Object.keys(reviewsFor('found')) as (keyof Reviews)[])),
  lookup: fc.constantFrom<VmiLookup['kind']>('found', 'found', 'found', 'absent', 'replaced', 'unreadable'),
});
type MutatedReview = typeof mutatedReview extends fc.Arbitrary<infer T> ? T : never;

/** The answer must be an AdmissionReview with the uid and a patch that applies, or a 4xx with a message. */
async function judge({ seed, edits, scars, path, lookup }: MutatedReview): Promise<Verdict> {
  const review = { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request: CORPUS[seed] };
  const body = scarred(Buffer.from(JSON.stringify(edits.reduce(edited, structuredClone(review)))), scars);
  let answer: Awaited<ReturnType<typeof answerReview>>;
  try {
    answer = await answerReview(body, reviewsFor(lookup)[path]);
  } catch (error) {
    assert.ok(error instanceof ReviewError, `${String(error)} is not a ReviewError`);
    assert.ok(error.status >= 400 && error.status < 500 && error.message.length > 0);
    return 'refused';
  }
  const sent = JSON.parse(body.toString()) as { request: { uid: string; object: object } };
  const { kind, response } = JSON.parse(answer.body) as {
    kind: string;
    response: {
      uid: string;
      allowed: boolean;
      patch?: string;
      patchType?: string;
      status?: { message: string; code: number };
    };
  };
  assert.equal(kind, 'AdmissionReview');
  assert.equal(response.uid, sent.request.uid);
  assert.equal(response.patch === undefined, response.patchType === undefined);
  if (!response.allowed) assert.ok((response.status?.message ?? '').length > 0 && (response.status?.code ?? 0) >= 400);
  if (response.patch !== undefined) {
    assert.ok(response.allowed && path.startsWith('mutate'));
    const patch = JSON.parse(Buffer.from(response.patch, 'base64').toString()) as jsonPatch.Operation[];
    jsonPatch.applyPatch(sent.request.object, patch, true);
  }
  return 'accepted';
}

export const admissionReview: Target<MutatedReview> = {
  name: 'admission-review',
  about: 'the webhook answers with the uid of the review and a valid patch, or a 4xx with a message',
  inputs: mutatedReview,
  judge,
};

interface Place {
  readonly holder: Record<string, unknown>;
  readonly key: string;
}

function edited(root: Record<string, unknown>, { at, how, odd }: Edit): Record<string, unknown> {
  const places = [...placesOf(root)];
  const place = places[at % places.length];
  if (place === undefined) return root;
  const { holder, key } = place;
  switch (how) {
    case 'replace':
      holder[key] = structuredClone(ODD[odd]);
      break;
    case 'delete':
      if (Array.isArray(holder)) holder.splice(Number(key), 1);
      else delete holder[key];
      break;
    case 'duplicate':
      if (Array.isArray(holder)) holder.push(structuredClone(holder[Number(key)]));
      else holder[`${key}x`] = structuredClone(holder[key]);
      break;
    case 'rename':
      if (!Array.isArray(holder)) {
        holder[['plumbline.dev/align', 'physnet.plumbline.dev/physnet1', 'cpu', 'plumbline.dev/decision'][odd % 4]!] =
          holder[key];
      }
  }
  return root;
}

function* placesOf(value: unknown): Generator<Place> {
  if (typeof value !== 'object' || value === null) return;
  const holder = value as Record<string, unknown>;
  for (const key of Object.keys(holder)) {
    yield { holder, key };
    yield* placesOf(holder[key]);
  }
}

function scarred(body: Buffer, scars: readonly { at: number; byte: number; cut: boolean }[]): Buffer {
  let result = body;
  for (const { at, byte, cut } of scars) {
    const place = at % Math.max(1, result.length);
    if (cut) result = result.subarray(0, place);
    else result[place] = byte;
  }
  return result;
}
