import { Duplex, PassThrough } from 'node:stream';
import { type KubeConfig, PortForward } from '@kubernetes/client-node';
import { KubeError } from '../../kube/client.ts';

/** Import this file lazily: client-node costs every start of the command a tenth of a second. */

export interface PodPort {
  readonly namespace: string;
  readonly pod: string;
  readonly port: number;
}

/** A kubelet sends at most 32 KiB in one message. */
const MAX_MESSAGE_BYTES = 1024 * 1024;

/** The used part of a WebSocket of the package `ws`. */
interface Socket {
  terminate(): void;
  onclose: (() => void) | null;
  onerror: ((event: { readonly message: string }) => void) | null;
}

/**
 * Connects to a port in a pod, through the API server and the pod's kubelet (`pods/portforward`). PortForward does not
 * tell its streams that the connection has ended, and has no deadline.
 * @param signal closes the connection, also while it is being opened
 * @throws KubeError with the status of the API server's refusal, or with status 0 if there was none
 */
export async function openPortForward(config: KubeConfig, target: PodPort, signal: AbortSignal): Promise<Duplex> {
  const { namespace, pod, port } = target;
  const [toPod, fromPod, errors] = [new PassThrough(), new PassThrough(), new PassThrough()];
  const forward = new PortForward(withLimits(config, signal));
  let socket: Socket;
  try {
    socket = (await forward.portForward(namespace, pod, [port], fromPod, errors, toPod)) as Socket;
  } catch (event) {
    throw refusal(`port ${port} of pod ${namespace}/${pod}`, event, signal);
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
function refusal(what: string, event: unknown, signal: AbortSignal): KubeError {
  const { message = '', error: cause } = event as { readonly message?: string; readonly error?: unknown };
  if (signal.aborted) return new KubeError(0, 'Timeout', `${what}: no answer in time`, { cause });
  const [, status] = /^Unexpected server response: (\d{3})$/.exec(message) ?? [];
  if (status === undefined) return new KubeError(0, 'Unreachable', `${what}: ${message}`, { cause });
  return new KubeError(Number(status), `HTTP${status}`, `${what}: ${status}`);
}
