import assert from 'node:assert/strict';
import fc from 'fast-check';
import jsonPatch from 'fast-json-patch';
import type { PodChange } from '../../../model/admission/facts.ts';
import { patchFor, type RawPod } from '../../../webhook/pods/patch.ts';

interface Container {
  resources?: { requests?: Record<string, string> | null; limits?: Record<string, string> | null } | null;
}
interface Pod {
  metadata: { annotations?: Record<string, string> | null };
  spec: { containers: Container[]; initContainers: Container[] };
}

/** The same change, made to a copy in the plain way. */
function changed(pod: Pod, change: PodChange): Pod {
  const target = structuredClone(pod);
  for (const { list, index, cpus, resources } of change.containers) {
    const wanted = {
      ...(cpus === undefined ? {} : { cpu: String(cpus) }),
      ...Object.fromEntries(resources.map((name) => [name, '1'])),
    };
    if (Object.keys(wanted).length === 0) continue;
    const container = target.spec[list][index]!;
    const have = container.resources ?? {};
    container.resources = {
      ...have,
      requests: { ...have.requests, ...wanted },
      limits: { ...have.limits, ...wanted },
    };
  }
  for (const [name, value] of Object.entries(change.annotations)) {
    if (value !== undefined) target.metadata.annotations = { ...target.metadata.annotations, [name]: value };
    else if (target.metadata.annotations) delete target.metadata.annotations[name];
  }
  return target;
}

const name = fc.constantFrom('cpu', 'memory', 'example.com/a~b', 'physnet.plumbline.dev/x', 'plumbline.dev/placed');
const amounts = fc.option(fc.dictionary(name, fc.constantFrom('1', '9', '10', '9000m')), { nil: null });
const resources = fc.option(fc.record({ requests: amounts, limits: amounts }, { requiredKeys: [] }), { nil: null });
const containers = fc.array(fc.record({ resources }, { requiredKeys: [] }), { minLength: 2, maxLength: 3 });
const annotationName = fc.constantFrom('plumbline.dev/decision', 'a/b', 'c~d');
const pod = fc.record({
  metadata: fc.record(
    { annotations: fc.option(fc.dictionary(annotationName, fc.constantFrom('x', '')), { nil: null }) },
    { requiredKeys: [] },
  ),
  spec: fc.record({ containers, initContainers: containers }),
});
const change = fc.record({
  containers: fc.uniqueArray(
    fc.record({
      list: fc.constantFrom('containers' as const, 'initContainers' as const),
      index: fc.nat(1),
      cpus: fc.option(fc.constantFrom(9, 10), { nil: undefined }),
      resources: fc.uniqueArray(name.filter((one) => one.includes('/'))),
    }),
    { selector: ({ list, index }) => `${list}/${index}` },
  ),
  annotations: fc.dictionary(annotationName, fc.option(fc.constantFrom('x', 'y'), { nil: undefined })),
  nodes: fc.constant(undefined),
});

describe('the patch of a pod', () => {
  it('produces the changed pod when it is applied, and is empty the second time', () => {
    fc.assert(
      fc.property(pod, change, (before, wanted) => {
        const given = before as Pod;
        const patch = patchFor(given as unknown as RawPod, wanted);
        const operations = structuredClone(patch) as jsonPatch.Operation[];
        const after = jsonPatch.applyPatch(structuredClone(given), operations, true).newDocument;
        assert.deepEqual(after, changed(given, wanted));
        assert.deepEqual(patchFor(after as unknown as RawPod, wanted), []);
      }),
      { numRuns: 500 },
    );
  });
});
