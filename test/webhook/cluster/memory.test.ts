import assert from 'node:assert/strict';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { monotonicSeconds } from '../../../runtime/time.ts';
import { createVmiLookup } from '../../../webhook/cluster/cluster-facts.ts';
import {
  answerReview,
  kindOf,
  localnet,
  mutationOf,
  podVector,
  requestFor,
  viewOf,
  vmiVector,
} from '../launcher-fixture.ts';

const REVIEWS = 3000;
/** Bytes that each review may leave in memory, measured after a collection, which spreads noise of some kilobytes. */
const MAX_BYTES = 60;

/** The long run, over the wire and 100,000 reviews, is `npm run bench -- webhook.private-memory-growth`. */
describe('the memory of reviews', () => {
  it('is released: every pod differs, and no data of any pod is kept', async function () {
    this.timeout(300_000);
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const vmi = vmiVector();
    const view = viewOf([kindOf(2, { physnets: { physnet1: '0' } })], {
      findVmi: () => vmi,
      findNad: () => localnet('physnet1'),
    });
    const lookUpVmi = createVmiLookup({ client: {} as never, timeout: 1, now: monotonicSeconds, find: view.findVmi });
    const review = mutationOf({ view, lookUpVmi });
    let count = 0;
    const some = async () => {
      for (let i = 0; i < REVIEWS; i++) {
        const pod = podVector();
        pod.metadata.labels['unique'] = `${count}`;
        pod.spec.containers[0]!.resources.limits['memory'] = `${1_000_000 + count}`;
        pod.spec.containers[0]!.resources.requests['memory'] = `${1_000_000 + count++}`;
        const request = requestFor(pod, { uid: `uid-${count}`, dryRun: true });
        const body = JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request });
        assert.equal((await answerReview(Buffer.from(body), review)).outcome, 'patched');
      }
      collect();
      return process.memoryUsage().heapUsed;
    };
    await some();
    const before = await some();
    const grown = ((await some()) - before) / REVIEWS;
    assert.ok(grown < MAX_BYTES, `${grown.toFixed(0)} bytes a review`);
  });
});
