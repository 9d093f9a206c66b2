import { createServer } from 'node:https';
import express from 'express';
import jsonPatch from 'fast-json-patch';
import { givenCertificate, listenAndTell } from '../support/serving.ts';

/**
 * The base for the webhook's speed: the cost of a typical mutating webhook without lookups. It parses the review with
 * express 5, clones the pod, raises the CPUs of its first container in the clone, and compares the two to create the
 * patch.
 */
interface Pod {
  spec: { containers: { resources: { requests: Record<string, string>; limits: Record<string, string> } }[] };
}

const app = express();
app.use(express.json({ limit: '7mb' }));
app.post('/mutate-pods', (request, response) => {
  const { uid, object } = (request.body as { request: { uid: string; object: Pod } }).request;
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
