import assert from 'node:assert/strict';
import fc from 'fast-check';
import { podResourcesOf } from '../../../model/launcher/containers.ts';
import {
  kindOf,
  localnet,
  mutationOf,
  patched,
  podVector,
  requestFor,
  type TestPod,
  viewOf,
} from '../launcher-fixture.ts';

/** A mutating webhook of this test's cluster: returns the changed pod. */
type Mutator = (pod: TestPod) => Promise<TestPod>;

const view = viewOf([kindOf(2, { physnets: { physnet1: '0' } })], { findNad: () => localnet('physnet1') });

const plumbline: Mutator = async (pod) => patched(pod, await mutationOf({ view })(requestFor(pod)));

/** Like the network resources injector: adds the devices of the attached networks to the first container. */
const networkResources: Mutator = async (pod) => {
  const next = structuredClone(pod);
  const { resources } = next.spec.containers[0]!;
  for (const amounts of [resources.requests, resources.limits]) amounts['intel.com/vf'] = '1';
  return next;
};

/** Like a virtiofs appender: adds a container with equal requests and limits, unless it exists. */
const virtiofs: Mutator = async (pod) => {
  const next = structuredClone(pod);
  if (next.spec.containers.some(({ name }) => name === 'virtiofs-data')) return next;
  const amounts = { cpu: '100m', memory: '80M' };
  next.spec.containers.push({ name: 'virtiofs-data', resources: { requests: { ...amounts }, limits: { ...amounts } } });
  return next;
};

const MUTATORS: Record<string, Mutator> = { plumbline, networkResources, virtiofs };

/** Runs the mutators in order, then again those with reinvocation whose pod a later one has changed. */
async function admitted(order: readonly string[], reinvoked: readonly string[]): Promise<TestPod> {
  let pod = podVector();
  const left = new Map<string, string>();
  for (const name of order) {
    pod = await MUTATORS[name]!(pod);
    left.set(name, JSON.stringify(pod));
  }
  for (const name of order) {
    if (reinvoked.includes(name) && left.get(name) !== JSON.stringify(pod)) pod = await MUTATORS[name]!(pod);
  }
  return pod;
}

describe('Plumbline among other mutating webhooks', () => {
  it('W8: produces the same Guaranteed pod in every order, and changes nothing in a second pass', async () => {
    const names = Object.keys(MUTATORS);
    const expected = await admitted(names, names);
    await fc.assert(
      fc.asyncProperty(
        fc.shuffledSubarray(names, { minLength: names.length }),
        fc.subarray(names.filter((name) => name !== 'plumbline')),
        async (order, others) => {
          const pod = await admitted(order, ['plumbline', ...others]);
          assert.deepEqual(pod, expected);
          assert.deepEqual(podResourcesOf(pod as never).obstacles, []);
          assert.deepEqual(await plumbline(pod), pod);
        },
      ),
      { numRuns: 100 },
    );
    assert.equal(expected.spec.containers[0]!.resources.limits['cpu'], '10');
  });
});
