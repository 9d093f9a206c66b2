import { createServer } from 'node:https';
import express from 'express';
import jsonPatch from 'fast-json-patch';
import * as z from 'zod';
import { givenCertificate, listenAndTell } from '../support/serving.ts';

/**
 * The base for the webhook's speed: the cost of a typical mutating webhook without lookups. It parses the review with
 * express 5, checks with zod what it reads, clones the pod, raises the CPUs of its first container in the clone, and
 * compares the two to create the patch.
 */
const amounts = z.record(z.string(), z.string());
const container = z.looseObject({ name: z.string(), resources: z.looseObject({ requests: amounts, limits: amounts }) });
const pod = z.looseObject({
  metadata: z.looseObject({
    name: z.string().optional(),
    namespace: z.string().optional(),
    labels: z.record(z.string(), z.string()).optional(),
    annotations: z.record(z.string(), z.string()).optional(),
  }),
  spec: z.looseObject({ containers: z.array(container).min(1) }),
});
const review = z.looseObject({
  apiVersion: z.literal('admission.k8s.io/v1'),
  kind: z.literal('AdmissionReview'),
  request: z.looseObject({ uid: z.string(), operation: z.string(), object: pod }),
});

const app = express();
app.use(express.json({ limit: '7mb' }));
app.post('/mutate-pods', (request, response) => {
  const { uid, object } = review.parse(request.body).request;
  const target = structuredClone(object);
  const { requests, limits } = target.spec.containers[0]!.resources;
  const cpus = Number(limits['cpu']);
  const aligned = String(cpus + (cpus % 2));
  requests['cpu'] = aligned;
  limits['cpu'] = aligned;
  const patch = jsonPatch.compare(object, target);
  response.json({
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    response: {
      uid,
      allowed: true,
      patchType: 'JSONPatch',
      patch: Buffer.from(JSON.stringify(patch)).toString('base64'),
    },
  });
});

listenAndTell(createServer({ ...givenCertificate(), minVersion: 'TLSv1.3' }, app));
