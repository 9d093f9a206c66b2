import assert from 'node:assert/strict';
import { bypassesOf, schedulerOf } from '../../diagnosis/bypasses.ts';
import type { VmFacts } from '../../diagnosis/facts.ts';
import { placementNeedsOf } from '../../model/placement/preferences.ts';
import type { PodShape } from '../../model/shapes.ts';
import { ANNOTATED, DECIDED, launcher, shown, VM } from './fixture.ts';

const MASKED = { 'plumbline.dev/cpu-mask': '1:2' };
const NETWORKS = { 'k8s.v1.cni.cncf.io/networks': 'fast' };
const AFFINITY = { 'plumbline.dev/numa-affinity': '{}' };
const BOTH = { ...ANNOTATED, ...DECIDED };
const LEFT_ODD = { ...ANNOTATED, 'plumbline.dev/decision': '{"padding":0}' };
const EAST = { 'physnet.plumbline.dev/east': '1' };
const RUNNING = { phase: 'Running' };

type Parts = Parameters<typeof launcher>[0] & { readonly annotations?: Readonly<Record<string, string>> };

function pod({ annotations, metadata, ...parts }: Parts = {}): PodShape {
  return launcher({ ...parts, metadata: { ...metadata, ...(annotations && { annotations }) } });
}
const bypasses = (one: PodShape, facts: Partial<VmFacts> = {}) =>
  bypassesOf({ ...VM, ...facts }, one, placementNeedsOf(one)).map(shown);
const reasons = (one: PodShape, facts?: Partial<VmFacts>) => bypasses(one, facts).map(({ reason }) => reason);

/** Requests and limits in hundredths of a CPU: no dedicated CPUs. */
const shared = { containers: [{ name: 'compute', resources: { requests: { cpu: '200m' } } }] };

const amounts = { cpu: '3', memory: '1Gi' };
const odd = (name: string) => ({ name, resources: { requests: amounts, limits: amounts } });

describe('evidence that the webhook never saw a launcher', () => {
  for (const [title, one, expected] of [
    ['is absent if it has its decision', pod(), []],
    ['is absent if it requests nothing', pod({ annotations: {} }), []],
    ['is a request for whole cores without a decision', pod({ annotations: ANNOTATED }), ['WebhookMissed']],
    ['is not an odd number with a decision: cores may have one thread', pod({ annotations: BOTH, cpus: '3' }), []],
    ['is absent if the decision was to leave it odd', pod({ annotations: LEFT_ODD, cpus: '3' }), []],
    ['is not an odd init container', pod({ annotations: BOTH, spec: { initContainers: [odd('init')] } }), []],
    ['is networks without an effect', pod({ annotations: NETWORKS }), ['NotDecided']],
    ['is an affinity without an effect', pod({ annotations: AFFINITY }), ['NotDecided']],
    ['is absent for networks with an effect', pod({ annotations: NETWORKS, resources: EAST }), []],
    ['is a mask that was not checked', pod({ annotations: MASKED, spec: shared }), ['NotDecided']],
    ['is absent for a mask with a decision', pod({ annotations: { ...MASKED, ...DECIDED }, spec: shared }), []],
    ['is absent for a mask of a running pod', pod({ annotations: MASKED, spec: shared, status: RUNNING }), []],
    ['is shared CPUs where whole cores are requested', pod({ annotations: ANNOTATED, spec: shared }), ['SharedCpus']],
    ['is absent for another pod', pod({ annotations: ANNOTATED, cpus: '3', metadata: { labels: {} } }), []],
    ['is absent for another pod on shared CPUs', pod({ annotations: {}, spec: shared, metadata: { labels: {} } }), []],
  ] as const) {
    it(title, () => assert.deepEqual(reasons(one), expected));
  }

  it('names each container with an odd number, and what has no effect without a decision', () => {
    const text = (one: PodShape) => bypasses(one)[0]?.text.replace('the webhook did not see this launcher: ', '');
    const containers = ['compute', 'log'].map(odd);
    assert.equal(
      text(pod({ annotations: ANNOTATED, spec: { containers } })),
      'it has no decision annotation, and compute asks for 3 CPUs, which are not whole cores, ' +
        'and log asks for 3 CPUs, which are not whole cores',
    );
    const undecided = 'it has no decision annotation';
    assert.equal(text(pod({ annotations: NETWORKS })), `${undecided}, so nothing keeps it near its networks`);
    assert.equal(text(pod({ annotations: MASKED, spec: shared })), `${undecided}, so its CPU mask is not checked`);
  });

  it('says why the API server does not call the webhook now', () => {
    const [{ text } = assert.fail()] = bypasses(pod({ annotations: ANNOTATED }), { webhooksOff: 'switched off' });
    assert.match(text, /^the webhook did not see this launcher: .* \(the webhook is now switched off\)$/);
  });
});

describe('evidence that the extender is not asked about a pod', () => {
  const leads = { scheduler: { leads: true } };
  const named = (schedulerName: string | undefined, parts: Parts = {}) =>
    pod({ ...parts, spec: { schedulerName, ...parts.spec } });

  for (const [title, one, expected] of [
    ['Plumbline’s scheduler', pod(), []],
    ['a bound pod', named('other', { spec: { nodeName: 'n1' } }), []],
    ['another scheduler', named('other'), ['OtherScheduler']],
    ['the default scheduler', named('default-scheduler'), ['ExtenderNotAsked']],
    ['no name', named(undefined), ['ExtenderNotAsked']],
    ['an empty name', named(''), ['ExtenderNotAsked']],
    ['a mask', named('other', { annotations: { ...MASKED, ...DECIDED }, spec: shared }), ['OtherScheduler']],
    ['shared CPUs', named('other', { annotations: {}, spec: shared }), ['SharedCpus']],
  ] as const) {
    it(`while Plumbline’s scheduler leads: ${title}`, () => assert.deepEqual(reasons(one, leads), expected));
  }

  it('names the scheduler that a pod without one gets', () =>
    assert.equal(schedulerOf(named('')), 'default-scheduler'));

  it('advises to create a pod again if it is not a VM', () => {
    const text = 'its scheduler is other, which does not call the extender';
    const expected = [{ reason: 'OtherScheduler', text, remedies: ['name-scheduler'] }];
    assert.deepEqual(bypasses(named('other', { metadata: { labels: {} } }), leads), expected);
  });

  for (const scheduler of [{ leads: false }, undefined]) {
    it(`is absent without a leading scheduler of Plumbline (${JSON.stringify(scheduler)})`, () =>
      assert.deepEqual(bypasses(named('default-scheduler'), { scheduler }), []));
  }
});
