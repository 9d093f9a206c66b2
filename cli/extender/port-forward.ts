import type { X509Certificate } from 'node:crypto';
import { type IncomingMessage, request } from 'node:http';
import { Duplex, PassThrough } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import type { KubeConfig } from '@kubernetes/client-node';
import { readText } from '../../kube/calls.ts';
import { KubeError } from '../../kube/client.ts';

interface PodPort {
  readonly namespace: string;
  readonly pod: string;
  readonly port: number;
}

export type OpenPort = (config: KubeConfig, target: PodPort, signal: AbortSignal) => Promise<Duplex>;

/** A kubelet sends at most 32 KiB in one message. */
const MAX_MESSAGE_BYTES = 1024 * 1024;
const DEADLINE_SECONDS = 5;

interface PodRequestOptions {
  readonly requestTimeout?: number | undefined;
  readonly open?: OpenPort | undefined;
}

/** Over a connection of its own. @throws KubeError with the refusal's status or 0; Error if the connection fails */
export function getFromPod(config: KubeConfig, target: PodPort, path: string, options: PodRequestOptions = {}) {
  return overPort(config, target, options, (stream) => getOver(stream, path));
}

/** The certificate that a pod's TLS server presents for a name, trusted or not. @throws as `getFromPod` */
export function certificateOfPod(config: KubeConfig, target: PodPort, name: string, options: PodRequestOptions = {}) {
  return overPort(config, target, options, (stream) => presentedOver(stream, name));
}

async function overPort<T>(
  config: KubeConfig,
  target: PodPort,
  { requestTimeout = DEADLINE_SECONDS, open = openPortForward }: PodRequestOptions,
  use: (stream: Duplex) => Promise<T>,
): Promise<T> {
  const signal = AbortSignal.timeout(requestTimeout * 1000);
  try {
    const stream = await open(config, target, signal);
    try {
      return await use(stream);
    } finally {
      stream.destroy();
    }
  } catch (error) {
    if (signal.aborted) throw new KubeError(0, 'Timeout', 'no answer in time', { cause: error });
    throw error;
  }
}

export function forwardFailure(error: unknown): { readonly status: number; readonly text: string } {
  const { status = 0, message } = error as Error & { readonly status?: number };
  if (status >= 500) return { status, text: `${status}: check that the API server reaches the kubelet of that node` };
  // The kubelet's text of a closed port has the network namespace and both addresses of the pod.
  if (/connect(?:ion)?[: ]+(?:ECONN)?refused/i.test(message)) return { status, text: 'connection refused' };
  return { status, text: message.trim().split('\n')[0] ?? '' };
}

async function getOver(stream: Duplex, path: string): Promise<{ status: number; text: string }> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    // http waits forever for a stream that was destroyed before the request.
    const fail = () => reject(stream.errored ?? new Error('the connection was closed'));
    if (stream.destroyed) return fail();
    stream.once('error', fail).once('close', fail);
    const headers = { host: 'localhost', accept: 'application/json' };
    return request({ createConnection: () => stream, path, headers })
      .on('response', resolve)
      .on('error', reject)
      .end();
  });
  return { status: response.statusCode ?? 0, text: await readText(response) };
}

function presentedOver(stream: Duplex, servername: string): Promise<X509Certificate> {
  return new Promise((resolve, reject) => {
    const fail = () => reject(stream.errored ?? new Error('the connection was closed'));
    if (stream.destroyed) return fail();
    stream.once('error', fail).once('close', fail);
    // Nothing is sent: the certificate is read, and judged by the caller.
    const socket = connectTls({ socket: stream, servername, rejectUnauthorized: false });
    socket.once('error', reject).once('secureConnect', () => {
      const certificate = socket.getPeerX509Certificate();
      if (certificate === undefined) reject(new Error('the server presented no certificate'));
      else resolve(certificate);
    });
    return undefined;
  });
}

/** The used part of a WebSocket of the package `ws`. */
interface Socket {
  terminate(): void;
  onclose: (() => void) | null;
  onerror: ((event: { readonly message: string }) => void) | null;
}

/** PortForward has no end and no deadline. @param signal closes it @throws KubeError, status 0 without one */
async function openPortForward(config: KubeConfig, target: PodPort, signal: AbortSignal): Promise<Duplex> {
  const { namespace, pod, port } = target;
  const [toPod, fromPod, errors] = [new PassThrough(), new PassThrough(), new PassThrough()];
  const { PortForward } = await import('./client-node-port-forward.ts');
  const forward = new PortForward(withLimits(config, signal));
  let socket: Socket;
  try {
    socket = (await forward.portForward(namespace, pod, [port], fromPod, errors, toPod)) as Socket;
  } catch (event) {
    throw refusal(`port ${port} of pod ${namespace}/${pod}`, event);
  }
  const stream = Duplex.from({ writable: toPod, readable: fromPod });
  // The reader takes the error from `errored`, also if it occurs later.
  stream.on('error', () => undefined).once('close', () => socket.terminate());
  signal.addEventListener('abort', () => stream.destroy(signal.reason), { once: true });
  socket.onclose = () => fromPod.end();
  socket.onerror = ({ message }) => stream.destroy(new KubeError(0, 'Unreachable', message));
  errors.on('data', (text: Buffer) => stream.destroy(new KubeError(0, 'PortForward', text.toString().trim())));
  return stream;
}

/** KubeConfig gives the options of the WebSocket; PortForward has no parameter for them. */
function withLimits(config: KubeConfig, signal: AbortSignal): KubeConfig {
  return Object.assign(Object.create(config) as KubeConfig, {
    async applyToHTTPSOptions(options: object) {
      await config.applyToHTTPSOptions(options);
      Object.assign(options, { signal, maxPayload: MAX_MESSAGE_BYTES });
    },
  });
}

/** @param event of a WebSocket that did not open: `Unexpected server response: 403`, or an error of the connection */
function refusal(what: string, event: unknown): KubeError {
  const { message = '', error: cause } = event as { readonly message?: string; readonly error?: unknown };
  const [, status] = /^Unexpected server response: (\d{3})$/.exec(message) ?? [];
  if (status === undefined) return new KubeError(0, 'Unreachable', `${what}: ${message}`, { cause });
  return new KubeError(Number(status), `HTTP${status}`, `${what}: ${status}`);
}
