import { httpCall } from '../../support/http-call.ts';
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

async function post(trust: string, port: number, path: string, body: string): Promise<void> {
  const { status, text } = await httpCall({ port, path, body, trust, signal: AbortSignal.timeout(10_000) });
  if (status !== 200 || text.includes('"allowed":false')) throw new Error(`${status} ${text.slice(0, 200)}`);
}
