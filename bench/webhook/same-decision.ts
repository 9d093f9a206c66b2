import { createServer } from 'node:https';
import express from 'express';
import { mutationOf, overlay, viewOf, vmiVector } from '../../test/webhook/launcher-fixture.ts';
import { decodeReview, encodeReview } from '../../webhook/review/admission-review.ts';
import { givenCertificate, listenAndTell } from '../support/serving.ts';

/**
 * The base for what the webhook adds to express: a plain express app that checks the review, makes the same decision and
 * compares the same pods, with all facts at hand. It looks nothing up, and has no limits, metrics or log.
 */
const vmi = vmiVector();
const mutation = mutationOf({
  lookUpVmi: async () => ({ kind: 'found', vmi }),
  view: viewOf(undefined, { findNad: () => overlay('dpdk-net-east') }),
  route: { schedulerName: 'plumbline-scheduler', away: undefined },
});

const app = express();
app.use(express.json({ limit: '7mb' }));
app.post('/mutate-pods', async ({ body }, response) => {
  const request = decodeReview(body);
  response.json(encodeReview(request.uid, await mutation(request)));
});

listenAndTell(createServer({ ...givenCertificate(), minVersion: 'TLSv1.3' }, app));
