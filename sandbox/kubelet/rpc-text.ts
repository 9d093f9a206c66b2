import { KubeletApiError } from '../../kube/kubelet-api/errors.ts';

/** gRPC status codes by number, as Go names them: what the real kubelet's messages show. */
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

/** A failed call as Go prints it: `rpc error: code = FailedPrecondition desc = …`. */
export function rpcText(error: unknown): string {
  const cause: { code?: unknown; details?: unknown } =
    error instanceof KubeletApiError ? Object(error.cause) : { code: 2, details: (error as Error).message };
  const code = typeof cause.code === 'number' ? cause.code : 2;
  return `rpc error: code = ${GO_CODES[code] ?? 'Unknown'} desc = ${String(cause.details ?? '')}`;
}
