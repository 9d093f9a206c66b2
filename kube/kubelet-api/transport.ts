import {
  type ChannelOptions,
  type ClientUnaryCall,
  type handleUnaryCall,
  Metadata,
  type Server,
  ServerCredentials,
  type ServiceError,
  type StatusObject,
  status,
} from '@grpc/grpc-js';
import { PlumblineError } from '../../model/errors.ts';

/** Why a call to the kubelet, or from it to a plugin, failed. The values are metric labels. */
const CODES: Readonly<Record<number, string>> = {
  [status.UNAVAILABLE]: 'unavailable',
  [status.DEADLINE_EXCEEDED]: 'deadline',
  [status.RESOURCE_EXHAUSTED]: 'exhausted',
  [status.CANCELLED]: 'cancelled',
  [status.NOT_FOUND]: 'not-found',
  [status.UNIMPLEMENTED]: 'unimplemented',
  [status.FAILED_PRECONDITION]: 'refused',
};

/** A failed call over one of the kubelet's sockets, with the method, the socket and the message of the other side. */
export class KubeletApiError extends PlumblineError {
  constructor(method: string, socketPath: string, cause: { readonly code?: number; readonly details?: string }) {
    const code = CODES[cause.code ?? status.UNKNOWN] ?? 'failed';
    super(code, `${method} on ${socketPath}: ${explain(code, cause.details ?? '')}`, { cause });
  }
}

function explain(code: string, details: string): string {
  switch (code) {
    case 'unavailable':
      return `no answer (${details}); check that the kubelet runs and that its directory is mounted here`;
    case 'deadline':
      return 'no answer in time; the socket accepts connections but the call hangs';
    case 'exhausted':
      return `the kubelet limits how often it may be asked (${details})`;
    default:
      return details || code;
  }
}

/** Bytes. The response of List for 250 pods with many devices exceeds gRPC's default of 4 MiB. */
const MAX_MESSAGE_BYTES = 16 * 1024 * 1024;

const DEFAULT_DEADLINE_SECONDS = 5;

/** Connecting to a local socket is cheap, so the backoff is at most one second instead of gRPC's two minutes. */
export const CHANNEL_OPTIONS: ChannelOptions = {
  'grpc.max_receive_message_length': MAX_MESSAGE_BYTES,
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 1000,
  'grpc.enable_channelz': 0,
  // Clients of one socket must not inherit each other's backoff.
  'grpc.use_local_subchannel_pool': 1,
};

/** Channelz stays enabled: without it grpc-js 1.14 loses track of its sessions, and forceShutdown leaves them open. */
export const SERVER_OPTIONS: ChannelOptions = { 'grpc.max_receive_message_length': MAX_MESSAGE_BYTES };

export interface CallLimits {
  readonly signal?: AbortSignal | undefined;
  readonly deadlineSeconds?: number | undefined;
}

/** The gRPC address of a Unix socket with an absolute path. */
export const unixAddress = (socketPath: string) => `unix:${socketPath}`;

const CANCELLED = { code: 1, details: 'the caller gave up' };

/** @throws KubeletApiError `cancelled` by the signal, `deadline`, or the status from the other side */
export function unary<Request, Response>(
  site: { readonly method: string; readonly socketPath: string },
  request: Request,
  send: (
    request: Request,
    metadata: Metadata,
    options: { deadline: number },
    callback: (error: ServiceError | null, response?: Response) => void,
  ) => ClientUnaryCall,
  limits: CallLimits = {},
): Promise<Response> {
  const { signal, deadlineSeconds = DEFAULT_DEADLINE_SECONDS } = limits;
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(new KubeletApiError(site.method, site.socketPath, CANCELLED));
    const call = send(request, new Metadata(), { deadline: Date.now() + deadlineSeconds * 1000 }, (error, response) => {
      signal?.removeEventListener('abort', cancel);
      if (error) reject(new KubeletApiError(site.method, site.socketPath, error));
      // Without an error there is a response: grpc-js reports a missing message as an error.
      else resolve(response as Response);
    });
    function cancel() {
      call.cancel();
    }
    signal?.addEventListener('abort', cancel);
  });
}

/** Binds a server to a free Unix socket path. The permissions of the kubelet's directory protect it. */
export function bindUnix(server: Server, socketPath: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.bindAsync(unixAddress(socketPath), ServerCredentials.createInsecure(), (error) => {
      if (error) reject(new Error(`cannot listen on ${socketPath}: ${error.message}`, { cause: error }));
      else resolve();
    });
  });
}

/** Stops a server. Running calls get `graceSeconds` to finish; then their connections are closed. */
export function closeServer(server: Server, graceSeconds = 1): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => server.forceShutdown(), graceSeconds * 1000);
    server.tryShutdown(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}

/** An error that a handler throws on purpose, with the gRPC status and the text for the caller. */
export class RpcError extends Error {
  readonly status: number;

  constructor(grpcStatus: number, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'RpcError';
    this.status = grpcStatus;
  }
}

/**
 * Makes a unary gRPC handler from a function. An RpcError keeps its status; any other error becomes INTERNAL.
 * @param answer its signal aborts when the caller cancels, its deadline passes or its connection breaks
 */
export function unaryHandler<Request, Response>(
  answer: (request: Request, signal: AbortSignal) => Response | Promise<Response>,
): handleUnaryCall<Request, Response> {
  return (call, callback) => {
    const controller = new AbortController();
    if (call.cancelled) controller.abort();
    call.on('cancelled', () => controller.abort());
    Promise.resolve()
      .then(() => answer(call.request, controller.signal))
      .then(
        (response) => callback(null, response),
        (error: unknown) => callback(statusOf(error)),
      );
  };
}

function statusOf(error: unknown): Partial<StatusObject> {
  if (error instanceof RpcError) return { code: error.status, details: error.message };
  return { code: status.INTERNAL, details: error instanceof Error ? error.message : String(error) };
}
