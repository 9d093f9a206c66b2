import { KubeletApiError } from '../../kube/kubelet-api/errors.ts';

/** Names of gRPC status codes in Go, by number, as in the messages of the real kubelet. */
const GO_CODES = [
  'OK',
  'Canceled',
  'Unknown',
  'InvalidArgument',
  'DeadlineExceeded',
  'NotFound',
  'AlreadyExists',
  'PermissionDenied',
  'ResourceExhausted',
  'FailedPrecondition',
  'Aborted',
  'OutOfRange',
  'Unimplemented',
  'Internal',
  'Unavailable',
  'DataLoss',
  'Unauthenticated',
] as const;

/** A failed call in Go's format: `rpc error: code = FailedPrecondition desc = …`. */
export function rpcText(error: unknown): string {
  const cause: { code?: unknown; details?: unknown } =
    error instanceof KubeletApiError ? Object(error.cause) : { code: 2, details: (error as Error).message };
  const code = typeof cause.code === 'number' ? cause.code : 2;
  return `rpc error: code = ${GO_CODES[code] ?? 'Unknown'} desc = ${String(cause.details ?? '')}`;
}
