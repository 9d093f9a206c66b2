import {
  type handleUnaryCall,
  type ServerUnaryCall,
  type ServerWritableStream,
  type StatusObject,
  status,
} from '@grpc/grpc-js';

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
 * Makes a unary gRPC handler from an async function. An RpcError keeps its status; any other error becomes INTERNAL.
 */
export function unaryHandler<Request, Response>(
  answer: (request: Request, signal: AbortSignal) => Response | Promise<Response>,
): handleUnaryCall<Request, Response> {
  return (call, callback) => {
    Promise.resolve()
      .then(() => answer(call.request, abortSignalOf(call)))
      .then(
        (response) => callback(null, response),
        (error: unknown) => callback(statusOf(error)),
      );
  };
}

/** A signal that aborts when the caller cancels, its deadline passes or its connection breaks. */
export function abortSignalOf(
  call: ServerUnaryCall<never, never> | ServerUnaryCall<unknown, unknown> | ServerWritableStream<unknown, unknown>,
): AbortSignal {
  const controller = new AbortController();
  if (call.cancelled) controller.abort();
  call.on('cancelled', () => controller.abort());
  return controller.signal;
}

function statusOf(error: unknown): Partial<StatusObject> {
  if (error instanceof RpcError) return { code: error.status, details: error.message };
  return { code: status.INTERNAL, details: error instanceof Error ? error.message : String(error) };
}
