import { nodeTopology } from '../../kube/node-topology.ts';
import { lease as leaseSchema } from '../../kube/resources.ts';
import { parseMicroTime } from '../../model/lease/renew-time.ts';
import { leaseSeconds } from '../../model/lease/timing.ts';
import { preparedHost } from '../../model/placement/needs.ts';
import { assertBoundedJson } from '../../runtime/json-bounds.ts';
import { createNeedsReader } from '../../scheduler-plugin/cluster/pod-needs.ts';
import { observedPod, podViewOf } from '../../scheduler-plugin/cluster/pod-view.ts';
import { parseExtenderArgs } from '../../scheduler-plugin/extender/args.ts';
import { MAX_BODY_BYTES } from '../../scheduler-plugin/http/app.ts';
import { mutationOf, podVector, requestFor } from '../../test/webhook/launcher-fixture.ts';
import { LARGEST_BODY } from '../../webhook/app.ts';
import { answerReview } from '../../webhook/review/admission-review.ts';
import { uidOf } from '../scheduler-plugin/nodes.ts';
import {
  bytesInput,
  filled,
  type Input,
  type Parser,
  PER_CALL,
  PER_LARGEST,
  PER_OBJECT,
  textInput,
} from './measure.ts';
import { ANNOTATIONS } from './texts.ts';

/** Bytes of the largest object that the API server stores: etcd's limit for requests. */
const OBJECT = 1.5 * 1024 * 1024;
/** Names in a call: three times the number of nodes in the largest supported Kubernetes cluster. */
const NAMES = 15_000;

const report = textInput((text) => preparedHost(nodeTopology.parse(JSON.parse(text)).status!));

/** A report of a host with these numbers of CPUs and cells; cores have two threads. */
function reportText(cpus: number, cells: number, more: object): string {
  const each = cpus / cells;
  return JSON.stringify({
    apiVersion: 'plumbline.dev/v1alpha1',
    kind: 'NodeTopology',
    metadata: { name: 'worker-0', resourceVersion: '1' },
    status: {
      kubeletVersion: 'v1.36.2',
      cells: Array.from({ length: cells }, (_, id) => ({ id, cpus: `${id * each}-${(id + 1) * each - 1}` })),
      cores: Array.from({ length: cpus / 2 }, (_, core) => `${core * 2}-${core * 2 + 1}`),
      reserved: '0-1',
      cpuManager: { policy: 'static', options: { 'full-pcpus-only': 'true' } },
      topologyManager: { policy: 'best-effort', scope: 'container' },
      assignments: [],
      physnets: [{ name: 'east', cells: '0' }],
      ...more,
    },
  });
}

/** The largest number of containers with exclusive CPUs in a report. */
const assigned = (cpus: (index: number) => string, length = 2048) =>
  Array.from({ length }, (_, i) => ({ podUID: `u${i}`, container: 'c', cpus: cpus(i) }));
const groups = (length: number) => Array.from({ length }, (_, id) => ({ id, cpus: `${id * 2}-${id * 2 + 1}` }));

const nodeReport: Parser = {
  name: 'node-report',
  typical: report(reportText(128, 2, { assignments: assigned((i) => `${4 + i * 4}-${7 + i * 4}`, 20) })),
  worst: {
    'the largest host': () => report(reportText(2048, 8, { uncores: groups(1024) })),
    'CPUs far above those of the host': () =>
      report(reportText(16, 1, { assignments: assigned((i) => `${8191 - i}`) })),
    'many ranges and one high CPU each': () =>
      report(
        reportText(16, 1, {
          assignments: assigned((i) => `${filled(999, '0', { joint: ',', most: 64 })},${8191 - i}`, 480),
        }),
      ),
    'as much text as is read': () =>
      report(
        reportText(16, 1, {
          assignments: assigned((i) => filled(650, (n) => `${(i + n * 2) % 8192}`, { joint: ',' }), 100),
        }),
      ),
    'networks of all cells': () =>
      report(
        reportText(2048, 8, {
          physnets: Array.from({ length: 256 }, (_, i) => ({
            name: `p${i}`,
            cells: filled(256, '0-1023', { joint: ',' }),
          })),
        }),
      ),
  },
  milliseconds: PER_OBJECT,
};

const reviewed = mutationOf();
const review = bytesInput((bytes) => {
  assertBoundedJson(bytes);
  return answerReview(bytes, reviewed);
});

/** A review of the recorded launcher with other containers. */
function reviewText(containers: string): string {
  const pod = podVector();
  const marked = { ...pod, spec: { ...pod.spec, containers: '@' } };
  const request = requestFor(marked, { uid: 'u' });
  return JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request }).replace(
    '"@"',
    () => containers,
  );
}
/** Characters in addition to the containers. */
const FRAME = reviewText('').length;
/** Number of JSON values in the containers; together with the rest it stays within the limit. */
const VALUES = 95_000;

const admissionReview: Parser = {
  name: 'admission-review',
  typical: review(reviewText(JSON.stringify(podVector().spec.containers))),
  worst: {
    'as many containers as values allow': () =>
      review(
        reviewText(
          filled(LARGEST_BODY - FRAME, '{"name":"a"}', { head: '[', joint: ',', tail: ']', most: VALUES / 2 }),
        ),
      ),
    'containers with amounts': () =>
      review(
        reviewText(
          filled(
            LARGEST_BODY - FRAME,
            (i) =>
              `{"name":"c${i}","resources":{"requests":{"cpu":"1","memory":"1"},"limits":{"cpu":"1","memory":"1"}}}`,
            { head: '[', joint: ',', tail: ']', most: VALUES / 10 },
          ),
        ),
      ),
  },
  milliseconds: PER_LARGEST,
};

function args(text: string): Input {
  const bytes = Buffer.from(text);
  const parse = () => {
    assertBoundedJson(bytes);
    return parseExtenderArgs(JSON.parse(bytes.toString()));
  };
  return { bytes: bytes.length, parse };
}
function argsText(names: number, containers: string): string {
  const pod = podVector();
  const sent = { ...pod, metadata: { ...pod.metadata, uid: uidOf(0) }, spec: { ...pod.spec, containers: '@' } };
  const NodeNames = Array.from({ length: names }, (_, i) => `worker-${i}.east.example.com`);
  return JSON.stringify({ Pod: sent, Nodes: null, NodeNames }).replace('"@"', () => containers);
}
const OWN = JSON.stringify(podVector().spec.containers);

const extenderArgs: Parser = {
  name: 'extender-args',
  typical: args(argsText(100, OWN)),
  worst: {
    '15,000 names': () => args(argsText(NAMES, OWN)),
    '15,000 names of another order of keys': () =>
      args(argsText(NAMES, OWN).replace(/^\{"Pod"(.*),"NodeNames"(.*)\}$/, '{"NodeNames"$2,"Pod"$1}')),
    '15,000 names and as many containers as values allow': () =>
      args(
        argsText(
          NAMES,
          filled(MAX_BODY_BYTES - argsText(NAMES, '').length, '{"name":"a"}', {
            head: '[',
            joint: ',',
            tail: ']',
            most: (VALUES - NAMES) / 2,
          }),
        ),
      ),
  },
  milliseconds: PER_CALL,
};

const seen = textInput((text) => podViewOf(observedPod.parse(JSON.parse(text)), createNeedsReader('all')));
function podText(containers: string): string {
  const metadata = { name: 'p', namespace: 'n', uid: 'u', resourceVersion: '1' };
  return JSON.stringify({ metadata, spec: { containers: '@' }, status: { phase: 'Pending' } }).replace(
    '"@"',
    () => containers,
  );
}
const containerText = (resources: string) => (i: number) =>
  `{"name":"c${i}","image":"a","resources":${resources},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"}`;
const AMOUNTS = '{"limits":{"cpu":"2","memory":"1Mi"},"requests":{"cpu":"2","memory":"1Mi"}}';

const pod: Parser = {
  name: 'observed-pod',
  typical: seen(JSON.stringify({ ...podVector(), metadata: { ...podVector().metadata, uid: 'u' } })),
  worst: {
    'containers without amounts': () =>
      seen(podText(filled(OBJECT - 200, containerText('{}'), { head: '[', joint: ',', tail: ']' }))),
    'containers with CPUs of their own': () =>
      seen(podText(filled(OBJECT - 200, containerText(AMOUNTS), { head: '[', joint: ',', tail: ']' }))),
    'containers with devices': () =>
      seen(
        podText(
          filled(
            OBJECT - 200,
            (i) => containerText(AMOUNTS.replaceAll('"1Mi"', `"1Mi","physnet.plumbline.dev/p${i}":"1"`))(i),
            { head: '[', joint: ',', tail: ']' },
          ),
        ),
      ),
  },
  milliseconds: PER_LARGEST,
};

const renewed = textInput((text) => {
  const { spec } = leaseSchema.parse(JSON.parse(text));
  return [leaseSeconds(spec?.leaseDurationSeconds), parseMicroTime(spec?.renewTime ?? '')];
});
function leaseText(metadata: string): string {
  return `{"metadata":{"name":"dpu-worker-0","namespace":"plumbline"${metadata}},"spec":{"holderIdentity":"dpu-0","leaseDurationSeconds":40,"renewTime":"2026-01-01T00:00:00.000000Z"}}`;
}
const LEASE_FRAME = leaseText('').length;

const lease: Parser = {
  name: 'lease',
  typical: renewed(leaseText(',"resourceVersion":"1","labels":{"app":"plumbline"}')),
  worst: {
    annotations: () =>
      renewed(leaseText(filled(ANNOTATIONS, (i) => `"a${i}":""`, { head: ',"annotations":{', joint: ',', tail: '}' }))),
    labels: () =>
      renewed(
        leaseText(filled(OBJECT - LEASE_FRAME, (i) => `"a${i}":""`, { head: ',"labels":{', joint: ',', tail: '}' })),
      ),
    owners: () =>
      renewed(
        leaseText(
          filled(OBJECT - LEASE_FRAME, (i) => `{"apiVersion":"v1","kind":"A","name":"a","uid":"${i}"}`, {
            head: ',"ownerReferences":[',
            joint: ',',
            tail: ']',
          }),
        ),
      ),
    'fields that are not read': () =>
      renewed(leaseText(filled(OBJECT - LEASE_FRAME, '[]', { head: ',"managedFields":[', joint: ',', tail: ']' }))),
  },
  milliseconds: PER_LARGEST,
};

export const OBJECTS: readonly Parser[] = [nodeReport, admissionReview, extenderArgs, pod, lease];
