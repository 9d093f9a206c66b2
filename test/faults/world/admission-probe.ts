import { Agent, request } from 'node:https';
import { requestFor } from '../../webhook/launcher-fixture.ts';
import type { World } from './world.ts';

const AT_ONCE = 2;

const POD = { metadata: { name: 'probe', namespace: 'demo' }, spec: { containers: [{ name: 'c', image: 'none' }] } };
const REVIEW = { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request: requestFor(POD) };

/** Calls the webhook continuously, each time over a new connection that trusts only the authority. */
export function startAdmissionProbe({ cluster, daemons }: World) {
  const ca = cluster.authority.cert;
  const failures: string[] = [];
  let sent = 0;
  let running = true;
  const [path, body] = ['/mutate-pods', JSON.stringify(REVIEW)];
  const loop = async () => {
    while (running) {
      sent++;
      await post(ca, daemons.ports.webhook, path, body).catch((error: Error) => failures.push(error.message));
    }
  };
  const loops = Array.from({ length: AT_ONCE }, loop);
  return {
    async stop() {
      running = false;
      await Promise.all(loops);
      return { sent, failures };
    },
  };
}

function post(ca: string, port: number, path: string, body: string): Promise<void> {
  const agent = new Agent({ ca, keepAlive: false, maxCachedSessions: 0 });
  const headers = { 'content-type': 'application/json' };
  return new Promise((resolve, reject) => {
    const call = request({ host: '127.0.0.1', port, path, method: 'POST', agent, headers }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('error', reject);
      response.on('end', () => {
        if (response.statusCode === 200 && !text.includes('"allowed":false')) resolve();
        else reject(new Error(`${response.statusCode} ${text.slice(0, 200)}`));
      });
    });
    call.setTimeout(10_000, () => call.destroy(new Error('no answer in 10 s')));
    call.on('error', reject);
    call.end(body);
  });
}
