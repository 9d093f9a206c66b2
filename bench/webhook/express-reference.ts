import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import express from 'express';
import jsonPatch from 'fast-json-patch';

/**
 * The base of the webhook's speed: what a mutating webhook costs that is written the usual way and looks nothing up. It
 * parses the review with express 5, clones the pod, raises the CPUs of its first container in the clone, and compares
 * the two for the patch. PLUMBLINE_BENCH_TLS holds certificate and key as JSON. Prints its port.
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

const tls = process.env['PLUMBLINE_BENCH_TLS'] ?? readFileSync(0, 'utf8');
const server = createServer({ ...(JSON.parse(tls) as object), minVersion: 'TLSv1.3' }, app);
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  process.stdout.write(`${JSON.stringify({ port: typeof address === 'object' ? address?.port : 0 })}\n`);
});
