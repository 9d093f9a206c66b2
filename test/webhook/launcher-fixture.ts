import jsonPatch from 'fast-json-patch';
import type { EventRecorder, EventText } from '../../kube/events.ts';
import { type VirtualMachineInstance, virtualMachineInstance } from '../../kube/resources.ts';
import type { AdmissionAnswer, AdmissionRequest } from '../../webhook/admission-review.ts';
import type { ClusterView } from '../../webhook/cluster-view.ts';
import { createPodReviewer, type PodReviewerOptions } from '../../webhook/review-pod.ts';
import { vector } from '../support/vectors.ts';

export interface TestPod {
  metadata: {
    labels: Record<string, string>;
    annotations: Record<string, string>;
    ownerReferences: { name: string; uid: string }[];
    [key: string]: unknown;
  };
  spec: {
    hostname?: string;
    containers: { name: string; resources: { requests: Record<string, string>; limits: Record<string, string> } }[];
    initContainers?: unknown[];
    [key: string]: unknown;
  };
}

export type LauncherVector = 'virt-launcher-pod' | 'virt-launcher-pod.migration-target' | 'hp-volume-pod';

export function podVector(name: LauncherVector = 'virt-launcher-pod'): TestPod {
  return vector<TestPod>(`${name}.admission.json`);
}

export function vmiVector(change: (vmi: VirtualMachineInstance) => void = () => undefined): VirtualMachineInstance {
  const vmi = virtualMachineInstance.parse(vector('vmi.json'));
  change(vmi);
  return vmi;
}

export function requestFor(object: unknown, more: Partial<AdmissionRequest> = {}): AdmissionRequest {
  return {
    uid: 'b2f6d1f0-0000-4000-8000-000000000001',
    kind: { group: '', version: 'v1', kind: 'Pod' },
    operation: 'CREATE',
    namespace: 'telco-east',
    object,
    ...more,
  };
}

export function viewOf(facts: Partial<ClusterView> = {}): ClusterView {
  return {
    run: async () => undefined,
    synced: true,
    findNad: () => undefined,
    threadsPerCore: () => [2],
    reportedNetworks: () => ({ physnets: new Set(), tunnel: false }),
    ...facts,
  };
}

export interface RecordedEvents extends EventRecorder {
  readonly events: EventText[];
}

export function recordedEvents(): RecordedEvents {
  const events: EventText[] = [];
  return { events, record: (_target, event) => void events.push(event), flush: async () => undefined };
}

export function reviewerOf(options: Partial<PodReviewerOptions> = {}) {
  return createPodReviewer({
    lookUpVmi: async () => ({ kind: 'found', vmi: vmiVector() }),
    fetchNad: async () => undefined,
    view: viewOf(),
    events: recordedEvents(),
    gate: true,
    ...options,
  });
}

/** The pod as the API server would store it after that answer. */
export function patched(pod: TestPod, answer: AdmissionAnswer): TestPod {
  const operations = answer.allowed ? (answer.patch ?? []) : [];
  return jsonPatch.applyPatch(structuredClone(pod), structuredClone(operations) as jsonPatch.Operation[], true)
    .newDocument;
}

export function computeCpus(pod: TestPod): { request: string | undefined; limit: string | undefined } {
  const compute = pod.spec.containers.find((container) => container.name === 'compute');
  return { request: compute?.resources.requests['cpu'], limit: compute?.resources.limits['cpu'] };
}
