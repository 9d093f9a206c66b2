import { connect, type TLSSocket } from 'node:tls';
import { until } from '../../test/support/until.ts';
import { vector } from '../../test/support/vectors.ts';
import { startBenchCluster } from '../daemons/index.ts';
import type { Running } from '../support/process.ts';

/**
 * A load of reviews over TLS 1.3 on open connections, one review at a time on each. The bytes of a request are created
 * once and responses are only counted, so that the client, which runs on the same machine, costs little compared with
 * the server.
 */
export async function openReviewLoad(
  { port, path, ca }: { readonly port: number; readonly path: string; readonly ca: string },
  body: Buffer,
  concurrency: number,
) {
  const head = `POST ${path} HTTP/1.1\r\nhost: localhost:${port}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`;
  const request = Buffer.concat([Buffer.from(head), body]);
  const sockets = await Promise.all(Array.from({ length: concurrency }, () => opened(port, ca)));
  return {
    /** Sends this number of reviews. @throws if a response is not 200 or has no patch */
    async run(calls: number): Promise<void> {
      let left = calls;
      await Promise.all(
        sockets.map(async (socket) => {
          while (left-- > 0) await exchange(socket, request);
        }),
      );
    },
    close() {
      for (const socket of sockets) socket.destroy();
    },
  };
}

function opened(port: number, ca: string): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, servername: 'localhost', ca, minVersion: 'TLSv1.3' });
    socket.setNoDelay(true);
    socket.once('secureConnect', () => resolve(socket));
    socket.once('error', reject);
  });
}

function exchange(socket: TLSSocket, request: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    let received = '';
    const done = (error?: Error) => {
      socket.off('data', onData);
      socket.off('close', onClose);
      if (error === undefined) resolve();
      else reject(error);
    };
    const onClose = () => done(new Error('the connection was closed'));
    const onData = (chunk: Buffer) => {
      received += chunk.toString('latin1');
      const end = received.indexOf('\r\n\r\n');
      if (end < 0) return;
      const length = /\r\ncontent-length: (\d+)/i.exec(received.slice(0, end))?.[1];
      if (length === undefined) done(new Error('an answer without content-length'));
      else if (received.length >= end + 4 + Number(length)) {
        const right = received.startsWith('HTTP/1.1 200') && received.includes('"JSONPatch"', end);
        done(right ? undefined : new Error(`unexpected answer: ${received.slice(0, 2000)}`));
      }
    };
    socket.on('data', onData);
    socket.on('close', onClose);
    socket.write(request);
  });
}

export const CONCURRENCY = 4;

export type WarmWebhook = Awaited<ReturnType<typeof startWarmWebhook>>;

/** A webhook with the VMI and the network of a launcher in its caches, and the review of that launcher. */
export async function startWarmWebhook() {
  const cluster = await startBenchCluster();
  const body = reviewBody(await cluster.addVmi(launcherVmi()));
  await cluster.addNad(LAUNCHER_NAD);
  const process = await cluster.start('webhook');
  await untilReady(process);
  const load = await openReviewLoad({ port: process.port, path: '/mutate-pods', ca: cluster.ca }, body, CONCURRENCY);
  return {
    cluster,
    process,
    body,
    load,
    async stop() {
      load.close();
      await cluster.stop();
    },
  };
}

/** Waits until a daemon reports that its caches are synced. */
export async function untilReady(daemon: Running): Promise<void> {
  const { probePort } = await daemon.line((line) => typeof line['probePort'] === 'number');
  await until('the daemon to be ready', async () => (await fetch(`http://127.0.0.1:${Number(probePort)}/readyz`)).ok);
}

/** The network of the launcher in test/vectors: the webhook would look up a missing definition in each review. */
export const LAUNCHER_NAD = {
  apiVersion: 'k8s.cni.cncf.io/v1',
  kind: 'NetworkAttachmentDefinition',
  metadata: { name: 'dpdk-net-east', namespace: 'telco-east' },
  spec: { config: JSON.stringify({ type: 'ovn-k8s-cni-overlay', topology: 'layer2', name: 'dpdk-net-east' }) },
};

/** The VMI of that launcher, without what the API server assigns. */
export function launcherVmi() {
  const vmi = vector<{ metadata: Record<string, unknown> }>('vmi.json');
  for (const field of ['resourceVersion', 'finalizers', 'generation', 'uid']) delete vmi.metadata[field];
  return vmi;
}

export function reviewBody(vmiUid: string): Buffer {
  const object = vector<{ metadata: { ownerReferences: { uid: string }[] } }>('virt-launcher-pod.admission.json');
  object.metadata.ownerReferences[0]!.uid = vmiUid;
  const request = {
    uid: 'b2f6d1f0-0000-4000-8000-000000000001',
    kind: { group: '', version: 'v1', kind: 'Pod' },
    operation: 'CREATE',
    namespace: 'telco-east',
    // A dry run, because otherwise each call would write an Event.
    dryRun: true,
    object,
  };
  return Buffer.from(JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request }));
}
