import { Duplex, PassThrough } from 'node:stream';
import type { KubeConfig } from '@kubernetes/client-node/dist/config.js';
// Imported by file, because through the package's index PortForward adds the models of the whole API, 4 MB, to the
// bundle.
import { WebSocketHandler } from '@kubernetes/client-node/dist/web-socket-handler.js';
import { KubeError } from '../../kube/errors.ts';

/** Import this file lazily: the WebSocket code would cost every start of the command some milliseconds. */

export interface PodPort {
  readonly namespace: string;
  readonly pod: string;
  readonly port: number;
}

/** Channels of one forwarded port in v4.channel.k8s.io. Each starts with the port's number in two bytes. */
const [DATA, ERROR] = [0, 1];
const PORT_BYTES = 2;
/** Bytes of one message: a kubelet sends at most 32 KiB. */
const LARGEST_MESSAGE = 1024 * 1024;

/** The used part of a WebSocket of the package `ws`. */
interface Socket {
  send(data: Uint8Array, sent: (error?: Error) => void): void;
  terminate(): void;
  onclose: (() => void) | null;
  onerror: ((event: { readonly message: string }) => void) | null;
}

/**
 * Connects to a port in a pod, through the API server and the pod's kubelet (`pods/portforward`).
 * @param signal closes the connection, also while it is being opened
 * @throws KubeError with the status of the API server's refusal, or with status 0 if there was none
 */
export async function openPortForward(config: KubeConfig, target: PodPort, signal: AbortSignal): Promise<Duplex> {
  const { namespace, pod, port } = target;
  const path = `/api/v1/namespaces/${namespace}/pods/${pod}/portforward?ports=${port}`;
  const streams = { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough() };
  const handler = new WebSocketHandler(bounded(config, signal), undefined, streams);
  const received = createReceiver();
  let socket: Socket;
  try {
    socket = await handler.connect(path, null, (channel, bytes) => {
      received.message(channel, bytes);
      return true;
    });
  } catch (event) {
    throw refusal(path, event, signal);
  }
  const stream = new Duplex({
    read: () => undefined,
    write: (chunk: Buffer, _, written) =>
      socket.send(Buffer.concat([Buffer.of(DATA), chunk]), (error) => written(error && lost())),
    destroy(error, destroyed) {
      socket.terminate();
      destroyed(error);
    },
    signal,
  });
  // The reader takes the error from `errored`, also if it occurs later.
  stream.on('error', () => undefined);
  socket.onclose = () => stream.push(null);
  socket.onerror = ({ message }) => stream.destroy(new KubeError(0, 'Unreachable', message));
  received.to(stream);
  return stream;
}

const lost = () => new KubeError(0, 'Unreachable', 'the connection was closed');

/** Adds limits that the handler does not set itself. It only uses these two members of a KubeConfig. */
function bounded(config: KubeConfig, signal: AbortSignal): KubeConfig {
  const own: Pick<KubeConfig, 'getCurrentCluster' | 'applyToHTTPSOptions'> = {
    getCurrentCluster: () => config.getCurrentCluster(),
    async applyToHTTPSOptions(options) {
      await config.applyToHTTPSOptions(options);
      const { rejectUnauthorized } = options;
      Object.assign(options, { signal, maxPayload: LARGEST_MESSAGE, rejectUnauthorized: rejectUnauthorized !== false });
    },
  };
  return own as KubeConfig;
}

/** Sorts messages by channel. Messages that arrive before the stream exists are kept for it. */
function createReceiver() {
  const missing = new Map([
    [DATA, PORT_BYTES],
    [ERROR, PORT_BYTES],
  ]);
  const early: (readonly [number, Buffer])[] = [];
  let stream: Duplex | undefined;
  const message = (channel: number, bytes: Buffer): void => {
    if (stream === undefined) {
      early.push([channel, bytes]);
      return;
    }
    const skipped = Math.min(missing.get(channel) ?? 0, bytes.length);
    missing.set(channel, (missing.get(channel) ?? 0) - skipped);
    const rest = bytes.subarray(skipped);
    if (rest.length === 0 || stream.destroyed) return;
    if (channel === DATA) stream.push(rest);
    if (channel === ERROR) stream.destroy(new KubeError(0, 'PortForward', rest.toString().trim()));
  };
  return {
    message,
    to(one: Duplex): void {
      stream = one;
      for (const [channel, bytes] of early.splice(0)) message(channel, bytes);
    },
  };
}

/** @param event of a WebSocket that did not open: `Unexpected server response: 403`, or an error of the connection */
function refusal(path: string, event: unknown, signal: AbortSignal): KubeError {
  const { message = '', error: cause } = event as { readonly message?: string; readonly error?: unknown };
  if (signal.aborted) return new KubeError(0, 'Timeout', `GET ${path}: no answer in time`, { cause });
  const [, status] = /^Unexpected server response: (\d{3})$/.exec(message) ?? [];
  if (status === undefined) return new KubeError(0, 'Unreachable', `GET ${path}: ${message}`, { cause });
  return new KubeError(Number(status), `HTTP${status}`, `GET ${path}: ${status}`);
}
